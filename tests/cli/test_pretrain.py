"""`spacy elmo pretrain`, as typed."""

from pathlib import Path

import pytest

from ..command_line import run
from ..pretraining.runs import TINY, command_line, make_overrides


def test_a_run_is_reported(tmp_path: Path) -> None:
    overrides = command_line(make_overrides(tmp_path))
    output = run("pretrain", TINY, tmp_path / "out", *overrides)
    assert "words in 120 sentences: 8 steps of 4 rows and 5 tokens" in output
    assert f"The best model is {tmp_path / 'out' / 'model-best'}" in output
    assert "Learning curve: " in output
    assert "There is already a run in" in run("pretrain", TINY, tmp_path / "out", *overrides, code=1)
    assert "The run is finished: all 8 steps are done" in run("pretrain", TINY, tmp_path / "out", "--resume")


def test_wrong_settings_are_reported(tmp_path: Path) -> None:
    overrides = make_overrides(tmp_path) | {"bilm_training.epochs": 0, "bilm_training.dropout": True}
    message = run("pretrain", TINY, tmp_path / "out", *command_line(overrides), code=1)
    assert "[bilm_training] epochs must be a number above 0, and finite, got 0." in message
    assert "[bilm_training] dropout must be a number, at least 0 and below 1, got True." in message


def test_checkpoint_of_the_run_to_be_replaced_is_not_recommended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    overrides = command_line(make_overrides(tmp_path))
    run("pretrain", TINY, tmp_path / "out", *overrides)

    def fail(*_: object, **__: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr("spacy_elmo.pretraining.pretrain.prepare_corpus", fail)
    message = run("pretrain", TINY, tmp_path / "out", "--overwrite", *overrides, code=1)
    assert "No space left on device There is no checkpoint of this run yet to resume from." in " ".join(message.split())
    assert (tmp_path / "out" / "checkpoint.safetensors").exists()


def test_errors_are_reported_once_on_each_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = tmp_path / "missing.txt"
    arguments = ("pretrain", TINY, tmp_path / "out", "--paths.train", missing, "--paths.dev", missing)
    assert "missing.txt" in run(*arguments, code=1)
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert run(*arguments, code=1) == ""
