"""The output directory: what may be replaced, and what stays."""

from pathlib import Path
from typing import Any

import pytest
import torch

from spacy_elmo.pretraining.pretrain import pretrain
from spacy_elmo.pretraining.run import PretrainingRun
from spacy_elmo.pretraining.vocabulary import Vocabulary, count_words

from .runs import STEPS, TINY, read_files, read_metrics, read_tensors


def test_a_run_is_replaced_only_on_request(tmp_path: Path, overrides: dict[str, Any]) -> None:
    pretrain(TINY, tmp_path / "out", overrides=overrides)
    with pytest.raises(ValueError, match="There is already a run in"):
        pretrain(TINY, tmp_path / "out", overrides=overrides)
    before, weights = read_metrics(tmp_path / "out"), read_tensors(tmp_path / "out" / "model-last")
    pretrain(TINY, tmp_path / "out", overrides={**overrides, "bilm_training.seed": 1}, overwrite=True)
    after = read_metrics(tmp_path / "out")
    assert [line["step"] for line in after] == list(range(1, STEPS + 1))
    assert all(new["loss"] != old["loss"] for new, old in zip(after, before, strict=True))
    replaced = read_tensors(tmp_path / "out" / "model-last")
    assert not any(torch.equal(weights[name], replaced[name]) for name in weights)


def test_a_run_is_resumed_or_replaced(tmp_path: Path, overrides: dict[str, Any]) -> None:
    pretrain(TINY, tmp_path / "out", overrides=overrides)
    with pytest.raises(ValueError, match=r"is resumed \(--resume\) or replaced \(--overwrite\), not both"):
        pretrain(TINY, tmp_path / "out", overrides=overrides, resume=True, overwrite=True)


@pytest.mark.parametrize("line", ["{}", "[]", "something dear"])
def test_unrelated_metrics_can_be_replaced(tmp_path: Path, overrides: dict[str, Any], line: str) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "metrics.jsonl").write_text(f"{line}\n")
    pretrain(TINY, tmp_path / "out", overrides=overrides, overwrite=True)
    assert len(read_metrics(tmp_path / "out")) == STEPS


def test_leftovers_of_tokenizing_are_removed(tmp_path: Path, overrides: dict[str, Any]) -> None:
    pretrain(TINY, tmp_path / "out", overrides=overrides)
    (kept,) = (tmp_path / "out" / "corpora").glob("train.txt-*")
    half = kept.with_name(f".{kept.name}-abcd1234.draft")
    half.mkdir()
    pretrain(TINY, tmp_path / "out", overrides=overrides, overwrite=True)
    assert not half.exists()
    assert kept.exists()


def test_nothing_is_replaced_by_a_run_that_cannot_start(tmp_path: Path, overrides: dict[str, Any]) -> None:
    output = tmp_path / "out"
    pretrain(TINY, output, overrides=overrides)
    before = {path: path.read_bytes() for path in output.rglob("*") if path.is_file()}
    for wrong in ({"paths.train": "no/such.txt"}, {"bilm_training.optimizer.name": "AdamX"}, {"bilm.cells": 0}):
        with pytest.raises(ValueError, match=r"no corpus at|'AdamX' is not a supported optimizer|cells must be"):
            pretrain(TINY, output, overrides={**overrides, **wrong}, overwrite=True)
    assert {path: path.read_bytes() for path in output.rglob("*") if path.is_file()} == before


def test_unrelated_files_in_the_output_are_kept(tmp_path: Path, overrides: dict[str, Any]) -> None:
    words = count_words([["the", "cat"]], max_size=10)
    words.to_disk(tmp_path / "out" / "vocab.txt")
    overrides["paths.vocab"] = str(tmp_path / "out" / "vocab.txt")
    pretrain(TINY, tmp_path / "out", overrides=overrides)
    assert Vocabulary.from_disk(tmp_path / "out" / "vocab.txt") == words
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "metrics.jsonl").write_text("something dear")
    with pytest.raises(ValueError, match="something else with a metrics.jsonl"):
        pretrain(TINY, tmp_path / "other", overrides=overrides)
    assert (tmp_path / "other" / "metrics.jsonl").read_text() == "something dear"


def test_what_is_added_to_the_models_of_a_run_is_kept(
    tmp_path: Path, overrides: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    added = {"README.md": b"a card", ".DS_Store": b"\0", ".ipynb_checkpoints/vocab.txt": b"old"}
    save_checkpoint = PretrainingRun._save_checkpoint

    def add_files(run: PretrainingRun) -> None:
        save_checkpoint(run)
        for name, data in added.items():
            path = run.output / "model-last" / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(data)

    pretrain(TINY, tmp_path / "whole", overrides=overrides)
    monkeypatch.setattr(PretrainingRun, "_save_checkpoint", add_files)
    pretrain(TINY, tmp_path / "out", overrides=overrides)
    whole = read_files(tmp_path / "whole" / "model-last")
    assert read_files(tmp_path / "out" / "model-last") == whole | added


def test_drafts_of_killed_writers_are_removed(tmp_path: Path, overrides: dict[str, Any]) -> None:
    pretrain(TINY, tmp_path / "out", overrides=overrides)
    for name in (".model-last-abcd1234.draft", ".model-best-abcd1234.draft-old"):
        (tmp_path / "out" / name).mkdir()
        (tmp_path / "out" / name / "model.safetensors").write_bytes(b"half")
    (tmp_path / "out" / ".checkpoint.safetensors-abcd1234.draft").write_bytes(b"half")
    pretrain(TINY, tmp_path / "out", resume=True)
    assert [path.name for path in (tmp_path / "out").glob(".*")] == []
    assert (tmp_path / "out" / "model-best" / "vocab.txt").exists()


def test_the_output_may_not_be_a_file(tmp_path: Path, overrides: dict[str, Any]) -> None:
    (tmp_path / "out").write_text("something dear")
    with pytest.raises(ValueError, match="is a file; a directory is to be written there"):
        pretrain(TINY, tmp_path / "out", overrides=overrides)
    assert (tmp_path / "out").read_text() == "something dear"
