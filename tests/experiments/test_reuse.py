"""Trials that equal finished ones elsewhere: they are copied, and all others are trained."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from spacy.training.loop import DIR_MODEL_BEST

from spacy_elmo.experiments.trial_id import TRIAL_METRICS, TrialId
from spacy_elmo.files.checksums import checksum

from ..command_line import run
from .tagger import make_trials, run_all

FIRST, SECOND = TrialId(100, 0), TrialId(100, 1)


def test_trials_in_the_output_directory_are_no_others(corpus: Path) -> None:
    for reuse in (corpus / "out", corpus / "out" / "layers"):
        with pytest.raises(ValueError, match=f"{reuse} is in the output directory, whose finished trials are kept"):
            make_trials(corpus, reuse=[reuse]).check()
    make_trials(corpus, reuse=[corpus / "other", corpus / "outer"]).check()


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["", "layers"])
def test_equal_trial_is_copied_with_its_model(variant: str, corpus: Path) -> None:
    (found,) = run_all(make_trials(corpus, output=corpus / "other" / variant))
    source, target = FIRST.directory(corpus / "other" / variant), FIRST.directory(corpus / "out")
    shutil.copy(corpus / "train.spacy", corpus / "copy.spacy")
    # The same data elsewhere are the same data.
    changed = {"overrides": {"paths.train": str(corpus / "copy.spacy")}}
    first, second = run_all(make_trials(corpus, reuse=[corpus / "other"], seeds=2, **changed))
    assert first["copied_from"] == str(source)
    assert first["scores"] == found["scores"]
    assert first["config"] == found["config"] | {
        "train": str(corpus / "copy.spacy"),
        "overrides": found["config"]["overrides"] | changed["overrides"],
    }
    assert json.loads((target / TRIAL_METRICS).read_text(encoding="utf8")) == first
    assert checksum(target / DIR_MODEL_BEST) == checksum(source / DIR_MODEL_BEST)
    assert "copied_from" not in second
    assert checksum(SECOND.directory(corpus / "out") / DIR_MODEL_BEST) != checksum(source / DIR_MODEL_BEST)


@pytest.mark.slow
@pytest.mark.parametrize("change", ["config", "test data", "no model", "damaged", "unfinished"])
def test_other_trials_are_not_copied(change: str, corpus: Path) -> None:
    run_all(make_trials(corpus, output=corpus / "other"))
    source = FIRST.directory(corpus / "other")
    options: dict[str, Any] = {}
    if change == "config":
        options["overrides"] = {"training.dropout": 0.2}
    elif change == "test data":
        options["test_path"] = corpus / "dev.spacy"
    elif change == "no model":
        shutil.rmtree(source / DIR_MODEL_BEST)
    elif change == "damaged":
        (source / TRIAL_METRICS).write_text("[" * 10**6, encoding="utf8")
    else:
        (source / TRIAL_METRICS).unlink()
    (metrics,) = run_all(make_trials(corpus, reuse=[corpus / "other"], **options))
    assert "copied_from" not in metrics


@pytest.mark.slow
def test_trial_is_not_copied_from_itself(corpus: Path) -> None:
    run_all(make_trials(corpus, output=corpus / "all" / "out"))
    again = make_trials(corpus, output=corpus / "all" / "out", reuse=[corpus / "all"], overwrite=True)
    (metrics,) = run_all(again)
    assert "copied_from" not in metrics


@pytest.mark.slow
def test_trial_whose_model_is_dropped_needs_none(corpus: Path) -> None:
    settings: dict[str, Any] = {"fractions": [50.0], "drop_models": True}
    run_all(make_trials(corpus, output=corpus / "other", **settings))
    (metrics,) = run_all(make_trials(corpus, reuse=[corpus / "other"], **settings))
    assert metrics["copied_from"] == str(corpus / "other" / "50" / "0")
    assert [path.name for path in (corpus / "out" / "50" / "0").iterdir()] == [TRIAL_METRICS]


@pytest.mark.slow
def test_command_says_what_it_copied(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(corpus)
    words = ["--test", "test.spacy", "--seeds", "1", "--paths.train", "train.spacy", "--paths.dev", "dev.spacy"]
    run("trials", "tagger.cfg", "other", *words)
    output = run("trials", "tagger.cfg", "out", *words, "--reuse", "other")
    assert "fraction 100%, seed 0: tag_acc" in output
    assert "copied from other/100/0)" in " ".join(output.split())
    assert "does not exist" in " ".join(
        run("trials", "tagger.cfg", "out", *words, "--reuse", "nothing", code=2).split()
    )
