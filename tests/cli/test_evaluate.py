"""`spacy elmo evaluate`, as typed."""

import json
import re
from pathlib import Path

import pytest

from spacy_elmo.bilm.weights import save_weights
from spacy_elmo.pretraining.perplexity import Likelihood

from ..command_line import run
from ..helpers import random_bilm


def test_a_model_in_the_package(tmp_path: Path) -> None:
    text, output = tmp_path / "text.txt", tmp_path / "new" / "scores.json"
    text.write_text("It is the capital of France. He was born in London.\n", encoding="utf8")
    assert "15 predictions" in (shown := run("evaluate", "en_elmo_sm", text, "--output", output))
    assert "raw text in the language 'en'" in shown
    scores = json.loads(output.read_text(encoding="utf8"))
    assert scores["n_predicted"] == 15  # 13 tokens and the ends of two sentences
    assert scores["perplexity_mean"] < scores["perplexity_unigram"] / 5
    shown = run("evaluate", "en_elmo_sm", text, "--tokenized")
    assert "12 predictions" in shown  # one sentence of 11 words: "France." is one
    assert "one tokenized sentence per line" in shown


def test_an_infinite_perplexity_is_shown_but_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text, output = tmp_path / "text.txt", tmp_path / "scores.json"
    text.write_text("It is so.\n", encoding="utf8")
    likelihood = Likelihood(forward=4000.0, backward=4.0, unigram=4.0, n_predicted=4)
    monkeypatch.setattr("spacy_elmo.cli.evaluate.evaluate", lambda *_, **__: likelihood)
    assert re.search(r"forward +inf", run("evaluate", "en_elmo_sm", text))
    assert "The perplexity is inf, which JSON cannot hold" in run(
        "evaluate", "en_elmo_sm", text, "--output", output, code=1
    )
    assert not output.exists()


def test_errors_are_reported(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("It is so.\n", encoding="utf8")
    assert "There is no weights directory at" in run("evaluate", tmp_path / "no", tmp_path / "text.txt", code=1)
    assert "Did you mean 'en_elmo_sm'" in run("evaluate", "en_elmo_small", tmp_path / "text.txt", code=1)
    assert "no corpus at" in run("evaluate", "en_elmo_sm", tmp_path / "no.txt", code=1)
    save_weights(random_bilm(1), tmp_path / "vectors")
    assert "have no softmax" in run("evaluate", tmp_path / "vectors", tmp_path / "text.txt", code=1)
