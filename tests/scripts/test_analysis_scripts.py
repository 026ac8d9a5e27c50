"""The tables that the scripts of analyses print."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import spacy

from scripts.nearest_uses import nearest_uses
from scripts.ngrams import ngrams
from scripts.pretrained_tok2vec import pretrained_tok2vec, separate_tok2vec
from scripts.short_runs import short_runs
from spacy_elmo.bilm.weights import save_weights
from spacy_elmo.pretraining.vocabulary import count_words

from ..helpers import random_bilm
from .script_runner import run_in_one_line, run_script

CONFIGS = Path(__file__).parents[2] / "configs"
SAMPLE = Path(__file__).parents[2] / "assets" / "sample"


def table(output: str) -> list[list[str]]:
    """Read the rows of a Markdown table, without the head."""
    lines = [line for line in output.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    save_weights(random_bilm(1), tmp_path / "weights")
    return tmp_path / "weights"


def test_nearest_uses(weights: Path, tmp_path: Path) -> None:
    rows = table(run_script(nearest_uses, "--weights", weights))
    assert [row[0] for row in rows][:4] == ["token layer", "LSTM layer 1", "LSTM layer 2", "mean"]
    assert rows[0][1:] == ["–"] + ["1.00 / 1.00"] * 5
    assert rows[1][1].endswith(" of 60")
    assert "no weights directory" in run_in_one_line(nearest_uses, "--weights", tmp_path / "nowhere", code=1)
    (tmp_path / "uses.tsv").write_text("play\tverb\tThey play.\n", encoding="utf8")
    message = run_in_one_line(nearest_uses, "--weights", weights, "--sentences", tmp_path / "uses.tsv", code=1)
    assert "Each word needs two senses" in message


def test_ngrams(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("a b c .\na b d .\nd a b .\n" * 5, encoding="utf8")
    vocabulary = count_words((line.split() for line in text.read_text(encoding="utf8").splitlines()), max_size=7)
    vocabulary.to_disk(tmp_path / "vocab.txt")
    ((name, words, unknown, *perplexities),) = table(run_script(ngrams, tmp_path / "vocab.txt", text, text))
    assert (name, words, unknown) == ("text.txt", "75", "6.67%")
    unigram, forward, backward = map(float, perplexities)
    assert 1 < forward < unigram / 2
    assert 1 < backward < unigram / 2
    assert "nothing.txt" in run_in_one_line(ngrams, tmp_path / "vocab.txt", tmp_path / "nothing.txt", text, code=1)
    empty = tmp_path / "empty.txt"
    empty.write_text("", encoding="utf8")
    for texts in ([empty, text], [text, empty]):
        assert "empty.txt has no sentence" in run_in_one_line(ngrams, tmp_path / "vocab.txt", *texts, code=1)


def test_pretrained_tok2vec(tmp_path: Path) -> None:
    run_script(pretrained_tok2vec, CONFIGS / "ner_baseline.cfg", tmp_path / "new.cfg")
    config = spacy.util.load_config(tmp_path / "new.cfg")
    assert config["nlp"]["pipeline"] == ["tok2vec", "ner"]
    assert config["components"]["ner"]["model"]["tok2vec"]["@architectures"] == "spacy.Tok2VecListener.v1"
    assert config["pretraining"]["component"] == "tok2vec"
    with pytest.raises(ValueError, match=r"Expected a pipeline of one component, got \['elmo', 'ner'\]"):
        separate_tok2vec(spacy.util.load_config(CONFIGS / "ner.cfg"))
    (tmp_path / "other.cfg").write_text(
        '[nlp]\npipeline = ["sentencizer"]\n[components]\n[components.sentencizer]\nfactory = "sentencizer"\n'
    )
    message = run_in_one_line(pretrained_tok2vec, tmp_path / "other.cfg", tmp_path / "new.cfg", code=1)
    assert (
        "Expected a component with a tok2vec in its model, which is to be replaced; 'sentencizer' has none." in message
    )


def test_short_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments: list[Any] = [CONFIGS / "pretrain_tiny.cfg", tmp_path / "out", "--train", SAMPLE / "train.txt"]
    arguments += ["--dev", SAMPLE / "dev.txt", "--minutes", "0.002", "--run", "as it is"]
    monkeypatch.setattr("scripts.short_runs.STEPS_TO_MEASURE", 2)
    (row,) = table(run_script(short_runs, *arguments))
    assert row[0] == "as it is"
    assert int(row[2]) > 0
    assert (tmp_path / "out" / "as it is" / "model-best" / "config.json").exists()
    assert "There are no runs with the names ['tiny']" in run_in_one_line(
        short_runs, *arguments, "--run", "tiny", code=1
    )
    message = run_in_one_line(short_runs, *arguments, "--train", tmp_path / "trian.txt", code=1)
    assert "Could not make the run 'as it is'" in message
    assert "trian.txt: neither a file nor a directory" in message


SCRIPTS: list[Callable[..., None]] = [nearest_uses, ngrams, pretrained_tok2vec, short_runs]


@pytest.mark.parametrize("script", SCRIPTS)
def test_help(script: Callable[..., None]) -> None:
    assert "Usage:" in run_script(script, "--help")
