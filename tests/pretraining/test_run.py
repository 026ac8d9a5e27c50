"""A run: what it trains, what it measures, and how it stops."""

import errno
import gc
import json
import os
import subprocess
import sys
from contextlib import nullcontext
from copy import deepcopy
from dataclasses import replace
from math import log
from pathlib import Path
from typing import Any

import pytest
import spacy
import torch

from spacy_elmo.bilm.weights import load_weights
from spacy_elmo.pretraining import checkpoint as checkpoint_module
from spacy_elmo.pretraining.model_files import load_language_model
from spacy_elmo.pretraining.perplexity import Likelihood, measure_likelihood
from spacy_elmo.pretraining.pretrain import pretrain
from spacy_elmo.pretraining.run import PretrainingRun

from ..helpers import SIZES
from .runs import (
    TINY,
    assert_same_tensors,
    assert_same_weights,
    command_line,
    read_files,
    read_metrics,
    read_tensors,
)


def test_a_model_learns_to_predict(tmp_path: Path, overrides: dict[str, Any]) -> None:
    learning = {"max_steps": 300, "eval_frequency": 100, "dropout": 0.0, "optimizer.learn_rate": 0.02}
    learning = {f"bilm_training.{name}": value for name, value in learning.items()}
    larger = {"bilm.projection": 16, "bilm.cells": 32, "bilm.cell_clip": 3.0, "bilm.projection_clip": 3.0}
    result = pretrain(TINY, tmp_path / "out", overrides={**overrides, **learning, **larger})
    scores = result.likelihood.perplexities
    # What can be known: who (3), what (3), whom (4) and how it ends (3), and nothing else, over 7 to 9 predictions.
    assert scores["forward"] < 2.2
    assert scores["backward"] < 2.2
    assert scores["unigram"] > 10
    metrics = [line for line in read_metrics(tmp_path / "out") if "perplexity" in line]
    assert [line["step"] for line in metrics] == [100, 200, 300]
    assert metrics[-1]["perplexity"] < metrics[0]["perplexity"]
    written = json.loads((tmp_path / "out" / "scores.json").read_text())
    assert written["perplexity_mean"] == pytest.approx(scores["mean"])
    assert written["n_unknown"] == 0
    assert "<svg" in (tmp_path / "out" / "learning-curve.svg").read_text()


def test_the_result_gives_vectors_and_perplexity(tmp_path: Path, overrides: dict[str, Any]) -> None:
    result = pretrain(TINY, tmp_path / "out", overrides=overrides)
    for name in ("model-best", "model-last"):
        model, vocabulary = load_language_model(tmp_path / "out" / name)
        dev = [line.split() for line in Path(overrides["paths.dev"]).read_text().splitlines()]
        found = measure_likelihood(model, vocabulary, dev).perplexities
        if name == "model-best":
            assert found == pytest.approx(result.likelihood.perplexities)
        else:
            assert found["mean"] >= result.likelihood.perplexities["mean"]
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"weights": str(tmp_path / "out" / "model-best")})
    assert nlp("the cat sees us .").tensor.shape == (5, 2 * SIZES["projection"])


def test_the_number_of_steps_follows_from_the_corpus(tmp_path: Path, overrides: dict[str, Any]) -> None:
    changes = {"bilm_training.max_steps": 0, "bilm_training.epochs": 2, "bilm_training.eval_frequency": 1000}
    pretrain(TINY, tmp_path / "out", overrides={**overrides, **changes})
    lines = Path(overrides["paths.train"]).read_text().splitlines()
    n_tokens = sum(len(line.split()) + 1 for line in lines)
    last = read_metrics(tmp_path / "out")[-1]
    assert last["step"] == -(-2 * n_tokens // (4 * 5))
    assert last["epoch"] == pytest.approx(2, abs=0.05)
    # Read twice, to within what the rows have read more or less of.
    assert last["words"] == pytest.approx(2 * (n_tokens - len(lines)), rel=0.05)


def test_the_best_model_is_kept(tmp_path: Path, overrides: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    weights, perplexities = [], iter([30.0, 10.0, 20.0])

    def evaluate(run: PretrainingRun) -> Likelihood:
        weights.append(run.model.softmax.weight.detach().clone())
        loss = log(next(perplexities))
        return Likelihood(loss, loss, loss, n_predicted=1)

    monkeypatch.setattr(PretrainingRun, "evaluate", evaluate)
    pretrain(TINY, tmp_path / "out", overrides=overrides)
    (best, _), (last, _) = (load_language_model(tmp_path / "out" / name) for name in ("model-best", "model-last"))
    assert torch.equal(best.softmax.weight, weights[1])
    assert torch.equal(last.softmax.weight, weights[2])
    assert not torch.equal(weights[1], weights[2])


@pytest.mark.parametrize("carry_state", [True, False])
def test_an_evaluation_changes_nothing(
    tmp_path: Path, overrides: dict[str, Any], carry_state: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluate, output, n_calls = PretrainingRun.evaluate, tmp_path / "out", 0

    def evaluate_twice(run: PretrainingRun, **kwargs: Any) -> Likelihood:
        nonlocal n_calls
        n_calls += 1
        before = deepcopy((run.learner.to_checkpoint(run.processes, **fields_of(run)), read_files(output)))
        likelihood = evaluate(run, **kwargs)
        after = (run.learner.to_checkpoint(run.processes, **fields_of(run)), read_files(output))
        assert_same_tensors(after[0].tensors, before[0].tensors)
        assert replace(after[0], tensors={}) == replace(before[0], tensors={})
        assert after[1] == before[1]
        assert evaluate(run, **kwargs) == likelihood
        return likelihood

    def fields_of(run: PretrainingRun) -> dict[str, Any]:
        run_fields = {"identity": run.identity, "softmax_is_new": run.softmax_is_new, "progress": run.progress}
        return {**run_fields, "totals": run.totals.to_tensor()}

    monkeypatch.setattr(PretrainingRun, "evaluate", evaluate_twice)
    pretrain(TINY, output, overrides={**overrides, "bilm_training.carry_state": carry_state})
    assert n_calls == 3


def test_carried_state_gives_an_initial_state(tmp_path: Path, overrides: dict[str, Any]) -> None:
    for carry_state in (True, False):
        output = tmp_path / f"carry-{carry_state}"
        pretrain(TINY, output, overrides={**overrides, "bilm_training.carry_state": carry_state})
        assert (load_weights(output / "model-best").initial_hidden is not None) == carry_state


def test_a_full_disk_leaves_the_last_checkpoint(
    tmp_path: Path, overrides: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    pretrain(TINY, tmp_path / "whole", overrides=overrides)
    save_file = checkpoint_module.save_file
    written: list[Path] = []

    def save_to_a_small_disk(tensors: Any, path: Path, metadata: Any) -> None:
        if written:
            path.write_bytes(b"half a checkpoint")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written.append(path)
        save_file(tensors, path, metadata=metadata)

    monkeypatch.setattr(checkpoint_module, "save_file", save_to_a_small_disk)
    with pytest.raises(OSError, match="could not be written: .*No space left.* The checkpoint before it is unchanged"):
        pretrain(TINY, tmp_path / "out", overrides=overrides)
    assert [path.name for path in (tmp_path / "out").glob(".*")] == []
    monkeypatch.undo()
    pretrain(TINY, tmp_path / "out", resume=True)
    assert_same_weights(tmp_path / "whole" / "model-last", tmp_path / "out" / "model-last")


@pytest.mark.parametrize("learn_rate", [0.1, 1e30])
def test_a_run_that_ends_leaves_garbage_collection_as_it_was(
    tmp_path: Path, overrides: dict[str, Any], learn_rate: float
) -> None:
    assert gc.get_freeze_count() == 0
    with nullcontext() if learn_rate < 1 else pytest.raises(FloatingPointError, match="the loss is"):
        pretrain(TINY, tmp_path / "out", overrides={**overrides, "bilm_training.optimizer.learn_rate": learn_rate})
    assert gc.get_freeze_count() == 0


def test_objects_that_the_host_has_frozen_stay_so(tmp_path: Path, overrides: dict[str, Any]) -> None:
    gc.freeze()
    try:
        n_frozen = gc.get_freeze_count()
        pretrain(TINY, tmp_path / "out", overrides=overrides)
        assert 0.9 * n_frozen < gc.get_freeze_count() <= n_frozen  # some of them have been deleted
    finally:
        gc.unfreeze()


def test_a_loss_that_is_not_a_number_stops_the_run(tmp_path: Path, overrides: dict[str, Any]) -> None:
    with pytest.raises(FloatingPointError, match=r"At step \d+ the loss is .*Its batch starts with: '\w+ "):
        pretrain(TINY, tmp_path / "out", overrides={**overrides, "bilm_training.optimizer.learn_rate": 1e30})
    # Nothing that is not a number was saved.
    for tensors in (read_tensors(tmp_path / "out" / name) for name in ("model-best", "model-last")):
        assert all(torch.isfinite(tensor).all() for tensor in tensors.values())


def test_diverged_weights_are_not_saved(tmp_path: Path, overrides: dict[str, Any]) -> None:
    # So large that one step makes the weights diverge. The evaluation detects it.
    diverging = {"bilm_training.optimizer.learn_rate": 1e38, "bilm_training.eval_frequency": 1}
    with pytest.raises(
        FloatingPointError,
        match=r"After step 1 the dev perplexity is nan.*: the training has diverged\. Its weights were not saved",
    ):
        pretrain(TINY, tmp_path / "out", overrides={**overrides, **diverging})
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["config.cfg", "corpora"]


@pytest.mark.slow
@pytest.mark.parametrize("carry_state", [True, False])
def test_two_processes_train_what_one_does_with_twice_the_batch(
    tmp_path: Path, overrides: dict[str, Any], carry_state: bool
) -> None:
    overrides |= {"bilm_training.dropout": 0.0, "bilm_training.samples": 5, "bilm_training.carry_state": carry_state}
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node"]
    for name, n_processes, batch_size in (("one", 1, 8), ("two", 2, 4)):
        values = {**overrides, "bilm_training.batch_size": batch_size}
        arguments = command_line(values)
        command = [*torchrun, str(n_processes), "-m", "spacy", "elmo", "pretrain", str(TINY), str(tmp_path / name)]
        result = subprocess.run([*command, *arguments], capture_output=True, text=True)
        assert result.returncode == 0, result.stdout + result.stderr
    one, two = read_tensors(tmp_path / "one" / "model-last"), read_tensors(tmp_path / "two" / "model-last")
    for name in one:
        torch.testing.assert_close(two[name], one[name], rtol=1e-4, atol=1e-5)
    for ours, theirs in zip(read_metrics(tmp_path / "two"), read_metrics(tmp_path / "one"), strict=True):
        assert ours == pytest.approx(theirs, rel=1e-4)
