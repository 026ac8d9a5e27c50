"""`spacy elmo probe`, as typed."""

import json
from pathlib import Path

import pytest
import spacy
from spacy.tokens import Doc, DocBin

from ..command_line import run


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    vocab = spacy.blank("en").vocab
    for name, words in {"train": "a b a b c", "dev": "a b", "test": "a d"}.items():
        tags = ["NN" if word == "a" else "VB" for word in words.split()]
        DocBin(docs=[Doc(vocab, words=words.split(), tags=tags)]).to_disk(tmp_path / f"{name}.spacy")
    return [tmp_path / f"{name}.spacy" for name in ("train", "dev", "test")]


def test_probe(weights: str, paths: list[Path], tmp_path: Path) -> None:
    output = run("probe", weights, *paths, "--seeds", "2", "--epochs", "3", "--output", tmp_path / "probe.json")
    assert "5 tokens to train on, 2 to test on, 1 of them (50.0%) words that are not in the training data" in output
    assert "majority 50.00 100.00" in output
    assert "each word's most frequent label 100.00 100.00" in output
    results = json.loads((tmp_path / "probe.json").read_text(encoding="utf8"))
    assert (results["kind"], results["weights"], results["attribute"]) == ("probe", "a", "tag")
    # Absolute paths are reduced to names.
    assert results["command"] == (
        "python -m spacy elmo probe a train.spacy dev.spacy test.spacy --attr tag --seeds 2 --epochs 3 --output probe.json"
    )
    names = ["token layer", "LSTM layer 1", "LSTM layer 2", "mean", "side by side", "learned mix"]
    assert [each["name"] for each in results["probes"]] == names
    assert len(results["probes"][0]["unseen"]["seeds"]) == 2
    mix = results["probes"][-1]
    assert f"{mix['all']['mean']:.2f} ± {mix['all']['deviation']:.2f}" in output
    assert ", ".join(f"{weight:.2f}" for weight in mix["weights"]) in output


def test_labels_only_in_test(weights: str, paths: list[Path]) -> None:
    doc = Doc(spacy.blank("en").vocab, words=["a", "b", "b"], tags=["NN", "XX", "XX"])
    DocBin(docs=[doc]).to_disk(paths[2])
    output = run("probe", weights, *paths, "--seeds", "1", "--epochs", "1")
    assert "Labels that are not in the training data: XX" in output
    assert "All predictions for them are wrong: 2 tokens." in output


def test_probe_reports_errors(weights: str, paths: list[Path], tmp_path: Path) -> None:
    assert "has the attribute 'dep'" in run("probe", weights, *paths, "--attr", "dep", code=1)
    assert "no attribute 'no_such'" in run("probe", weights, *paths, "--attr", "no_such", code=1)
    assert "nothing.spacy cannot be read" in run("probe", weights, *paths[:2], tmp_path / "nothing.spacy", code=1)
    (tmp_path / "bad.spacy").write_bytes(b"no docs")
    assert "bad.spacy is not a file that spaCy's DocBin wrote" in run(
        "probe", weights, *paths[:2], tmp_path / "bad.spacy", code=1
    )
    DocBin().to_disk(tmp_path / "empty.spacy")
    assert "empty.spacy has no tokens" in run("probe", weights, *paths[:2], tmp_path / "empty.spacy", code=1)
    assert "no weights directory" in run("probe", "nothing", *paths, code=1)
