"""A resumed run is the same run: it ends with the same weights, or is refused with a reason."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from spacy_elmo.bilm.weights import load_config
from spacy_elmo.pretraining import pretrain as pretrain_module
from spacy_elmo.pretraining.pretrain import pretrain
from spacy_elmo.pretraining.vocabulary import count_words

from .runs import (
    CONSOLE_LOGGER,
    TINY,
    assert_same_weights,
    command_line,
    make_text,
    read_metrics,
    read_tensors,
    resume_run,
    stop_run,
)


@pytest.mark.parametrize(
    "changes",
    [
        {"carry_state": True, "dropout": 0.2, "samples": 5},
        {"carry_state": False, "dropout": 0.2, "samples": 0},
        {"precision": "bfloat16", "samples": 5},
        {"optimizer.name": "Adagrad", "optimizer.options": {"initial_accumulator_value": 0.1}},
        {"optimizer.name": "SGD", "optimizer.options": {"momentum": 0.9}},
    ],
)
def test_a_resumed_run_is_the_same_run(tmp_path: Path, overrides: dict[str, Any], changes: dict[str, Any]) -> None:
    overrides |= {f"bilm_training.{name}": value for name, value in changes.items()}
    pretrain(TINY, tmp_path / "whole", overrides=overrides)
    stop_run(5, TINY, tmp_path / "parts", overrides)  # two steps after the checkpoint
    assert [line["step"] for line in read_metrics(tmp_path / "parts")] == [1, 2, 3, 4, 5]
    resume_run(TINY, tmp_path / "parts")
    for name in ("model-best", "model-last"):
        assert_same_weights(tmp_path / "whole" / name, tmp_path / "parts" / name)
    assert_same_weights(tmp_path / "whole", tmp_path / "parts")  # the optimizer's averages, positions and states
    assert read_metrics(tmp_path / "parts") == read_metrics(tmp_path / "whole")


def test_a_run_that_was_given_max_chars_is_resumed_by_a_config_that_leaves_it_open(
    tmp_path: Path, overrides: dict[str, Any]
) -> None:
    config = tmp_path / "config.cfg"
    config.write_text(
        TINY.read_text(encoding="utf8").replace("max_chars = null", "max_chars = 20").replace("segmenter = null", ""),
        encoding="utf8",
    )
    del overrides["bilm.max_chars"]
    stop_run(4, config, tmp_path / "out", overrides)
    resume_run(TINY, tmp_path / "out")
    assert load_config(tmp_path / "out" / "model-last").max_chars == 20
    config.write_text(TINY.read_text(encoding="utf8").replace("max_chars = null", "max_chars = 21"), encoding="utf8")
    with pytest.raises(ValueError, match="bilm.max_chars was 20 and is 21"):
        resume_run(config, tmp_path / "out")


def test_a_resumed_run_says_where_it_continues(tmp_path: Path, overrides: dict[str, Any]) -> None:
    stop_run(4, TINY, tmp_path / "out", overrides)
    lines: list[str] = []
    pretrain(
        TINY, tmp_path / "out", overrides={"bilm_training.logger": CONSOLE_LOGGER}, resume=True, report=lines.append
    )
    assert lines[-1] == "Resuming after step 3"


def test_a_finished_run_is_not_changed(tmp_path: Path, overrides: dict[str, Any]) -> None:
    first = pretrain(TINY, tmp_path / "out", overrides=overrides)
    before = read_tensors(tmp_path / "out" / "model-last")
    assert pretrain(TINY, tmp_path / "out", resume=True) == first
    after = read_tensors(tmp_path / "out" / "model-last")
    assert all(torch.equal(before[name], after[name]) for name in before)


@pytest.mark.slow
def test_a_killed_run_is_resumed_to_the_same_weights(tmp_path: Path, overrides: dict[str, Any]) -> None:
    # Checkpoints come by the clock, at steps that no two runs share, and a few at evaluations.
    changes = {"max_steps": 400, "eval_frequency": 70, "samples": 5, "carry_state": True, "checkpoint_minutes": 0.001}
    overrides |= {f"bilm_training.{name}": value for name, value in changes.items()}
    pretrain(TINY, tmp_path / "whole", overrides=overrides)
    output = tmp_path / "killed"
    command = [sys.executable, "-m", "spacy", "elmo", "pretrain", str(TINY), str(output)]
    wait = random.Random(0)
    arguments = command_line(overrides)
    for number, code in (
        (signal.SIGKILL, -signal.SIGKILL),
        (signal.SIGTERM, 143),
        (signal.SIGINT, 130),
        (signal.SIGKILL, -signal.SIGKILL),
    ):
        seen = (output / "checkpoint.safetensors").stat().st_mtime_ns if "--resume" in arguments else 0
        process = subprocess.Popen([*command, *arguments], stdout=subprocess.PIPE, text=True)
        wait_for_checkpoint(process, output, seen)
        time.sleep(wait.uniform(0.0, 0.1))
        process.send_signal(number)
        printed, _ = process.communicate(timeout=300)
        assert process.returncode == code, printed
        assert ("with --resume" in printed) == (number != signal.SIGKILL)
        arguments = ["--resume"]
    subprocess.run([*command, *arguments], check=True, stdout=subprocess.DEVNULL)
    for name in ("model-best", "model-last"):
        assert_same_weights(tmp_path / "whole" / name, output / name)
    assert read_metrics(output) == read_metrics(tmp_path / "whole")


def wait_for_checkpoint(process: subprocess.Popen[str], output: Path, seen: int) -> None:
    """Wait until a run has written a checkpoint that is newer than one that was seen."""
    path = output / "checkpoint.safetensors"
    while not path.exists() or path.stat().st_mtime_ns == seen:
        assert process.poll() is None, "the run ended before it was stopped"
        time.sleep(0.005)


@pytest.mark.slow
@pytest.mark.parametrize("to_all", [True, False])
def test_two_processes_stop_together(tmp_path: Path, overrides: dict[str, Any], to_all: bool) -> None:
    changes = {"max_steps": 300, "eval_frequency": 70, "log_frequency": 4, "checkpoint_minutes": 0.001}
    overrides |= {f"bilm_training.{name}": value for name, value in changes.items()}
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command = [*torchrun, "-m", "spacy", "elmo", "pretrain", str(TINY)]
    arguments = command_line(overrides)
    subprocess.run([*command, str(tmp_path / "whole"), *arguments], check=True, capture_output=True)
    output = tmp_path / "stopped"
    process = subprocess.Popen(
        [*command, str(output), *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    wait_for_checkpoint(process, output, seen=0)
    receiver = process.pid if to_all else max(children_of(process.pid))
    os.kill(receiver, signal.SIGTERM)  # torchrun passes it on to all
    printed, _ = process.communicate(timeout=300)
    assert process.returncode != 0
    assert printed.count("with --resume") == 1, printed
    subprocess.run([*command, str(output), "--resume"], check=True, capture_output=True)
    for name in ("model-best", "model-last"):
        assert_same_weights(tmp_path / "whole" / name, output / name)
    assert read_metrics(output) == read_metrics(tmp_path / "whole")


def children_of(pid: int) -> list[int]:
    """List the processes that a process has started."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bilm.cells": 11}, r"has another config: bilm.cells was 10 and is 11"),
        ({"bilm_training.batch_size": 8}, r"bilm_training.batch_size was 4 and is 8"),
        ({"bilm_training.optimizer.learn_rate": 0.5}, r"optimizer.learn_rate was 0.005 and is 0.5"),
    ],
)
def test_a_run_is_not_resumed_with_another_config(
    tmp_path: Path, overrides: dict[str, Any], changes: dict[str, Any], message: str
) -> None:
    pretrain(TINY, tmp_path / "out", overrides=overrides)
    with pytest.raises(ValueError, match=message):
        pretrain(TINY, tmp_path / "out", overrides=changes, resume=True)


def test_a_setting_that_was_added_later_has_its_default(
    tmp_path: Path, overrides: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    # This one may change, and so would not be compared.
    compared = tuple(name for name in pretrain_module.MAY_DIFFER_ON_RESUME if "checkpoint_minutes" not in name)
    monkeypatch.setattr(pretrain_module, "MAY_DIFFER_ON_RESUME", compared)
    earlier = tmp_path / "earlier.cfg"
    earlier.write_text(TINY.read_text(encoding="utf8").replace("checkpoint_minutes = 10\n", ""), encoding="utf8")
    pretrain(earlier, tmp_path / "out", overrides=overrides)
    pretrain(TINY, tmp_path / "out", resume=True)
    with pytest.raises(ValueError, match=r"bilm_training\.checkpoint_minutes was 10\.0 and is 3"):
        pretrain(TINY, tmp_path / "out", overrides={"bilm_training.checkpoint_minutes": 3}, resume=True)
    monkeypatch.undo()
    pretrain(TINY, tmp_path / "out", overrides={"bilm_training.checkpoint_minutes": 3}, resume=True)


def test_a_run_is_not_resumed_with_another_corpus(tmp_path: Path, overrides: dict[str, Any]) -> None:
    pretrain(TINY, tmp_path / "out", overrides=overrides)
    other = {"paths.train": str(make_text(tmp_path / "other.txt", 120, seed=5))}
    with pytest.raises(ValueError, match="was started with another training text"):
        pretrain(TINY, tmp_path / "out", overrides=other, resume=True)
    words = tmp_path / "words.txt"
    count_words([["the", "cat"]], max_size=10).to_disk(words)
    with pytest.raises(ValueError, match="was started with another vocabulary"):
        pretrain(TINY, tmp_path / "out", overrides={"paths.vocab": str(words)}, resume=True)


def test_a_run_is_not_resumed_with_another_dev_text(tmp_path: Path, overrides: dict[str, Any]) -> None:
    pretrain(TINY, tmp_path / "out", overrides=overrides)
    other = {"paths.dev": str(make_text(tmp_path / "other.txt", 30, seed=5))}
    with pytest.raises(ValueError, match="was started with another dev text"):
        pretrain(TINY, tmp_path / "out", overrides=other, resume=True)


def test_a_resumed_run_has_the_text_that_it_started_with(tmp_path: Path, overrides: dict[str, Any]) -> None:
    pretrain(TINY, tmp_path / "whole", overrides=overrides)
    stop_run(5, TINY, tmp_path / "parts", overrides)
    make_text(Path(overrides["paths.train"]), 50, seed=9)
    resume_run(TINY, tmp_path / "parts")
    assert_same_weights(tmp_path / "whole" / "model-last", tmp_path / "parts" / "model-last")


def test_a_moved_corpus_is_still_the_same(tmp_path: Path, overrides: dict[str, Any]) -> None:
    first = pretrain(TINY, tmp_path / "out", overrides=overrides)
    moved = Path(overrides["paths.train"]).rename(tmp_path / "moved.txt")
    assert pretrain(TINY, tmp_path / "out", overrides={"paths.train": str(moved)}, resume=True) == first


def test_resuming_needs_a_checkpoint(tmp_path: Path, overrides: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="There is no checkpoint .* Start without --resume"):
        pretrain(TINY, tmp_path / "out", overrides=overrides, resume=True)


def test_a_model_that_was_being_replaced_is_recovered(tmp_path: Path, overrides: dict[str, Any]) -> None:
    first = pretrain(TINY, tmp_path / "out", overrides=overrides)
    for name in ("model-best", "model-last"):  # killed in the instant before the new one took its place
        (tmp_path / "out" / name).rename(tmp_path / "out" / f".{name}-abcd1234.draft-old")
    assert pretrain(TINY, tmp_path / "out", resume=True) == first


def test_runs_that_share_a_cache_do_not_lose_their_text(tmp_path: Path, overrides: dict[str, Any]) -> None:
    overrides["paths.cache"] = str(tmp_path / "cache")
    pretrain(TINY, tmp_path / "whole", overrides={**overrides, "paths.cache": None})
    stop_run(5, TINY, tmp_path / "parts", overrides)
    pretrain(TINY, tmp_path / "other", overrides={**overrides, "corpus.lang": "en"})
    for name in ("paths.train", "paths.dev"):
        make_text(Path(overrides[name]), 50, seed=9)
    pretrain(TINY, tmp_path / "another", overrides=overrides)
    resume_run(TINY, tmp_path / "parts")
    assert_same_weights(tmp_path / "whole" / "model-last", tmp_path / "parts" / "model-last")
    assert read_metrics(tmp_path / "whole") == read_metrics(tmp_path / "parts")
