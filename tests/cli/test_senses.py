"""`spacy elmo senses`, as typed."""

import json
from pathlib import Path

from ..command_line import run

SAMPLE = Path(__file__).parents[2] / "assets" / "senses_sample"
TRAIN, TEST, FIRST = SAMPLE / "train.jsonl", SAMPLE / "test.jsonl", SAMPLE / "first_senses.tsv"


def test_senses_of_the_sample(tmp_path: Path) -> None:
    output = run("senses", "en_elmo_sm", TRAIN, TEST, "--first-senses", FIRST, "--output", tmp_path / "senses.json")
    results = json.loads((tmp_path / "senses.json").read_text(encoding="utf8"))
    assert (results["kind"], results["weights"]) == ("senses", "en_elmo_sm")
    assert results["command"] == (
        "python -m spacy elmo senses en_elmo_sm train.jsonl test.jsonl --first-senses first_senses.tsv --output senses.json"
    )
    assert results["train"] == {"instances": 352, "senses": 88, "lemmas": 40, "unknown_keys": 0}
    assert results["first_senses"] == "first_senses.tsv"
    assert results["tests"] == [{"name": "test", "instances": 176, "unseen_lemmas": 0, "unknown_keys": 0}]
    f1 = {each["name"]: each["f1"]["test"] for each in results["baselines"] + results["layers"]}
    assert f1["first sense"] < 50
    assert f1["token layer"] < f1["LSTM layer 2"]
    assert f1["LSTM layer 2"] > 75
    for name, value in f1.items():
        assert f"{name} {value:.1f}" in output
    assert "352 uses in the training data, of 88 senses of 40 lemmas" in output


def test_unknown_keys_are_counted(weights: str, tmp_path: Path) -> None:
    (tmp_path / "index.sense").write_text("bank%1:17:01:: 09213565 1 25\n", encoding="utf8")
    output = run("senses", weights, TRAIN, TEST, "--first-senses", tmp_path / "index.sense")
    assert "index.sense lacks 348 of the keys of the training data" in output
    assert "They are left out." in output
    assert "index.sense lacks 174 of the keys of test" in output
    assert "Nothing can match them." in output


def test_senses_report_errors(weights: str, tmp_path: Path) -> None:
    assert "The names of test sets should differ, got test, test" in run("senses", weights, TRAIN, TEST, TEST, code=1)
    assert "nothing.jsonl cannot be read" in run("senses", weights, tmp_path / "nothing.jsonl", TEST, code=1)
    (tmp_path / "empty.jsonl").write_text("", encoding="utf8")
    assert "empty.jsonl has no annotated sense" in run("senses", weights, TRAIN, tmp_path / "empty.jsonl", code=1)
    assert "no weights directory" in run("senses", "nothing", TRAIN, TEST, code=1)
    assert "Without --first-senses" in run("senses", weights, TRAIN, TEST)
