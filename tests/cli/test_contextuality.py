"""`spacy elmo contextuality`, as typed."""

import json
from pathlib import Path

import pytest

from spacy_elmo.bilm.weights import save_weights

from ..command_line import run
from ..helpers import random_bilm


def test_contextuality(weights: str, tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("".join(f"the {word} sleeps\n" for word in ("cat", "dog", "owl", "fox", "hen")), encoding="utf8")
    output = run("contextuality", weights, text, "--tokenized", "--output", tmp_path / "context.json")
    results = json.loads((tmp_path / "context.json").read_text(encoding="utf8"))
    assert (results["kind"], results["weights"]) == ("contextuality", "a")
    assert results["command"] == (
        "python -m spacy elmo contextuality a text.txt --tokenized --limit 10000 --output context.json"
    )
    assert (results["sentences"], results["tokens"], results["words"]) == (5, 15, 2)
    token_layer, first, *_ = results["layers"]
    assert "token layer 1.000" in output
    cells = [f"{first[name]:.3f}" for name in ("same_word", "same_sentence", "random_words")]
    assert f"LSTM layer 1 {' '.join(cells)}" in output
    assert "5 sentences, 15 tokens, 2 words" in output
    output = run("contextuality", weights, text, "--tokenized", "--limit", "2")
    assert "2 sentences, 6 tokens, 0 words" in output
    assert "token layer –" in output


def test_contextuality_warns_of_text_in_another_language(tmp_path: Path) -> None:
    save_weights(random_bilm(0, lang="de"), tmp_path / "weights")
    text = tmp_path / "text.txt"
    text.write_text("Die Katze schläft .\nDer Hund schläft .\n", encoding="utf8")
    with pytest.warns(UserWarning, match="the language 'en', but the weights of 'elmo' are of 'de'"):
        run("contextuality", tmp_path / "weights", text)
    run("contextuality", tmp_path / "weights", text, "--lang", "de")
    run("contextuality", tmp_path / "weights", text, "--tokenized")


def test_contextuality_reports_errors(weights: str, tmp_path: Path) -> None:
    assert "There is no corpus at" in run("contextuality", weights, tmp_path / "nothing.txt", code=1)
    (tmp_path / "empty.txt").write_text("\n", encoding="utf8")
    assert "two are needed, got 0" in run("contextuality", weights, tmp_path / "empty.txt", code=1)
    assert "nolang" in run("contextuality", weights, tmp_path / "empty.txt", "--lang", "nolang", code=1)
    assert "no weights directory" in run("contextuality", "nothing", tmp_path / "empty.txt", code=1)
