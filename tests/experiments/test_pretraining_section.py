"""The section about a pretraining shows what its directory has."""

import json
import os
from pathlib import Path

import pytest

from spacy_elmo.experiments.page import figures_of
from spacy_elmo.experiments.pretraining_section import make_pretraining_section

from .written_trials import tables_of

CAPTION = "Perplexity of the best model, on the text of its last evaluation"


def write_pretraining(directory: Path) -> Path:
    """Write the files of a pretraining that the section reads."""
    directory.mkdir()
    line = {"step": 3, "words": 4000, "loss": 5.0, "perplexity": 90.0}
    line |= {f"perplexity_{name}": 90.0 for name in ("forward", "backward", "unigram")}
    (directory / "metrics.jsonl").write_text(json.dumps(line) + "\n", encoding="utf8")
    scores = {"forward": 1234.56, "backward": 80.0, "mean": 85.5, "unigram": 900.0}
    text = json.dumps({f"perplexity_{name}": value for name, value in scores.items()})
    (directory / "perplexity.json").write_text(text, encoding="utf8")
    return directory


def test_learning_curve_and_perplexities(tmp_path: Path) -> None:
    section = make_pretraining_section(write_pretraining(tmp_path / "bilm"))
    assert section.title == "Language model: bilm"
    assert "It was trained on 4,000 words in 3 steps." in str(section.blocks)
    (figure,) = figures_of(section)
    assert "Training loss" in figure.svg
    assert [row[1] for row in tables_of(section)[CAPTION]] == ["1,234.6", "80.0", "85.5", "900.0"]


def test_scores_of_the_pretraining_itself(tmp_path: Path) -> None:
    directory = write_pretraining(tmp_path / "bilm")
    (directory / "metrics.jsonl").unlink()
    (directory / "perplexity.json").rename(directory / "scores.json")
    section = make_pretraining_section(directory)
    assert list(figures_of(section)) == []
    assert tables_of(section)[CAPTION][2] == ["Mean of the two", "85.5"]


def test_newer_scores_are_shown(tmp_path: Path) -> None:
    directory = write_pretraining(tmp_path / "bilm")
    scores = {f"perplexity_{name}": 50.0 for name in ("forward", "backward", "mean", "unigram")}
    (directory / "scores.json").write_text(json.dumps(scores), encoding="utf8")
    for time, expected in ((1, "85.5"), (3, "50.0")):
        os.utime(directory / "perplexity.json", (2, 2))
        os.utime(directory / "scores.json", (time, time))
        assert tables_of(make_pretraining_section(directory))[CAPTION][2] == ["Mean of the two", expected]


def test_directories_without_a_pretraining(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no pretraining in .*no such directory"):
        make_pretraining_section(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match=r"is not the output of a pretraining: it has no metrics\.jsonl and no scores"):
        make_pretraining_section(tmp_path / "empty")
    directory = write_pretraining(tmp_path / "bilm")
    (directory / "perplexity.json").write_text("{", encoding="utf8")
    with pytest.raises(ValueError, match=r"perplexity\.json has no perplexities"):
        make_pretraining_section(directory)
