"""A resumed run can be made longer, and only that."""

from math import inf
from pathlib import Path
from typing import Any

import pytest
from confection import Config

from spacy_elmo.bilm.weights import save_weights
from spacy_elmo.pretraining.checkpoint import Checkpoint
from spacy_elmo.pretraining.length import Extension, count_steps, count_steps_before
from spacy_elmo.pretraining.pretrain import pretrain

from ..helpers import random_bilm
from .runs import (
    CONSOLE_LOGGER,
    FINETUNE,
    STEPS,
    TINY,
    assert_same_weights,
    read_metrics,
    read_tensors,
    stop_run,
)

LONGER = 14
CONSTANT = {"@schedules": "spacy_elmo.Constant.v1"}
# The rate of the first six of eight steps, and of the first ten of fourteen, is the same.
STABLE = {
    "@schedules": "spacy_elmo.WarmupStableDecay.v1",
    "warmup_steps": 0,
    "decay_fraction": 0.25,
    "final_share": 0.1,
}


def extend(output: Path, n_steps: int = LONGER, config: Path = TINY) -> list[str]:
    """Resume a run with more steps, and say what was reported."""
    lines: list[str] = []
    overrides = {"bilm_training.max_steps": n_steps, "bilm_training.logger": CONSOLE_LOGGER}
    pretrain(config, output, overrides=overrides, resume=True, report=lines.append)
    return lines


@pytest.mark.parametrize(
    ("epochs", "max_steps", "n_steps"), [(1, 0, 11), (2, 0, 21), (2, 15, 15), (1, 15, 11), (0.001, 0, 1), (0.5, 1, 1)]
)
def test_number_of_steps(epochs: float, max_steps: int, n_steps: int) -> None:
    assert count_steps({"epochs": epochs, "max_steps": max_steps}, steps_per_epoch=10.5) == n_steps


@pytest.mark.parametrize(
    ("epochs", "max_steps", "message"),
    [
        (
            1,
            0,
            r"epochs was 2 and is 1, so that it would have 10 steps instead of 20\. Both epochs and max_steps limit",
        ),
        (2, 19, r"max_steps was 0 and is 19, so that it would have 19 steps instead of 20"),
        (3, 20, r"epochs was 2 and is 3 and max_steps was 0 and is 20, so that it would have 20 steps instead of 20"),
    ],
)
def test_a_run_is_not_made_shorter(epochs: float, max_steps: int, message: str) -> None:
    before = {"epochs": 2, "max_steps": 0}
    with pytest.raises(ValueError, match=rf"^A run can be made longer, not shorter: {message}"):
        count_steps_before({"epochs": epochs, "max_steps": max_steps}, before, steps_per_epoch=10)
    assert count_steps_before({"epochs": 2.5, "max_steps": 0}, before, steps_per_epoch=10) == 20
    assert count_steps_before(before, before, steps_per_epoch=10) == 20


@pytest.mark.parametrize(
    ("rate", "change"), [(0.5, "rises from 0.1 to 0.5"), (0.1, "stays at 0.1"), (0.05, "falls from 0.1 to 0.05")]
)
def test_what_becomes_of_the_learning_rate(rate: float, change: str) -> None:
    text = Extension(n_before=1000, n_steps=3000, next_step=1001, rate_before=0.1, rate=rate).describe()
    assert text == (
        f"The run is made longer: 3,000 steps instead of 1,000. The learning rate {change}, which is that of step 1,001 in a "
        f"run of 3,000 steps"
    )


def test_a_finished_run_is_made_longer(tmp_path: Path, overrides: dict[str, Any]) -> None:
    overrides["bilm_training.schedule"] = CONSTANT
    pretrain(TINY, tmp_path / "whole", overrides={**overrides, "bilm_training.max_steps": LONGER})
    pretrain(TINY, tmp_path / "out", overrides=overrides)
    before = read_metrics(tmp_path / "out")
    assert "stays at 0.005" in extend(tmp_path / "out")[-2]
    assert_same_weights(tmp_path / "whole" / "model-last", tmp_path / "out" / "model-last")
    lines, whole = read_metrics(tmp_path / "out"), read_metrics(tmp_path / "whole")
    assert lines[:STEPS] == before
    assert lines[STEPS:] == whole[STEPS:]
    assert [line["step"] for line in lines if "perplexity" in line] == [3, 6, STEPS, 9, 12, LONGER]
    config = Config().from_disk(tmp_path / "out" / "config.cfg")
    assert config["bilm_training"]["max_steps"] == LONGER
    # The new length is that of the run from now on.
    reported: list[str] = []
    pretrain(TINY, tmp_path / "out", resume=True, report=reported.append)
    assert reported[-1] == f"The run is finished: all {LONGER} steps are done"
    assert not any("made longer" in line for line in reported)


def test_a_run_that_is_made_longer_before_its_decay_is_the_longer_run(
    tmp_path: Path, overrides: dict[str, Any]
) -> None:
    overrides["bilm_training.schedule"] = STABLE
    pretrain(TINY, tmp_path / "whole", overrides={**overrides, "bilm_training.max_steps": LONGER})
    stop_run(5, TINY, tmp_path / "parts", overrides)
    extend(tmp_path / "parts")
    for name in ("model-best", "model-last"):
        assert_same_weights(tmp_path / "whole" / name, tmp_path / "parts" / name)
    assert_same_weights(tmp_path / "whole", tmp_path / "parts")
    assert read_metrics(tmp_path / "whole") == read_metrics(tmp_path / "parts")


def test_a_falling_rate_rises_again(tmp_path: Path, overrides: dict[str, Any]) -> None:
    pretrain(TINY, tmp_path / "out", overrides=overrides)
    whole = pretrain(TINY, tmp_path / "whole", overrides={**overrides, "bilm_training.max_steps": LONGER})
    assert f"{LONGER} steps instead of {STEPS}. The learning rate rises from 0.0001 to" in extend(tmp_path / "out")[-2]
    lines = read_metrics(tmp_path / "out")
    assert lines[STEPS]["learn_rate"] > lines[STEPS - 1]["learn_rate"]
    rates = [[line["learn_rate"] for line in read_metrics(tmp_path / name)[STEPS:]] for name in ("out", "whole")]
    assert rates[0] == pytest.approx(rates[1])
    assert whole.likelihood.n_predicted > 0


def test_more_epochs_make_a_run_longer(tmp_path: Path, overrides: dict[str, Any]) -> None:
    overrides |= {"bilm_training.max_steps": 0, "bilm_training.epochs": 0.1}
    pretrain(TINY, tmp_path / "out", overrides=overrides)
    pretrain(TINY, tmp_path / "out", overrides={"bilm_training.epochs": 0.2}, resume=True)
    assert read_metrics(tmp_path / "out")[-1]["epoch"] == pytest.approx(0.2, abs=0.02)
    with pytest.raises(ValueError, match=r"longer, not shorter: epochs was 0\.2 and is 0\.1"):
        pretrain(TINY, tmp_path / "out", overrides={"bilm_training.epochs": 0.1}, resume=True)


def test_the_best_model_may_be_of_the_first_part(
    tmp_path: Path, overrides: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    pretrain(TINY, tmp_path / "out", overrides=overrides)
    best = read_tensors(tmp_path / "out" / "model-best")
    path = tmp_path / "out" / "checkpoint.safetensors"
    checkpoint = Checkpoint.from_disk(path)
    assert 1 < checkpoint.progress.best_perplexity < inf
    checkpoint.progress.best_perplexity = 1.0  # nothing is better
    checkpoint.to_disk(path)
    extend(tmp_path / "out")
    after = read_tensors(tmp_path / "out" / "model-best")
    assert all(best[name].equal(after[name]) for name in best)


def test_the_perplexity_before_is_kept_after_a_stop_between_two_lines_of_metrics(
    tmp_path: Path, finetuning: dict[str, Any]
) -> None:
    save_weights(random_bilm(3), tmp_path / "weights")
    finetuning |= {
        "paths.weights": str(tmp_path / "weights"),
        "bilm_training.log_frequency": 100,
        "bilm_training.eval_frequency": 100,
        "bilm_training.checkpoint_minutes": 1e-9,  # after every step
    }
    stop_run(7, FINETUNE, tmp_path / "out", finetuning)
    path = tmp_path / "out" / "checkpoint.safetensors"
    checkpoint = Checkpoint.from_disk(path)
    assert checkpoint.n_steps_done == 6
    extend(tmp_path / "out", n_steps=20, config=FINETUNE)
    assert Checkpoint.from_disk(path).progress.initial_perplexity == checkpoint.progress.initial_perplexity is not None
    assert [line["step"] for line in read_metrics(tmp_path / "out")] == [4, 20]


def test_the_softmax_is_not_trained_alone_again(tmp_path: Path, finetuning: dict[str, Any]) -> None:
    save_weights(random_bilm(3), tmp_path / "weights")
    finetuning["paths.weights"] = str(tmp_path / "weights")
    stop_run(5, FINETUNE, tmp_path / "out", finetuning)  # the softmax was alone up to step 4, where the checkpoint is
    before = read_tensors(tmp_path / "out" / "model-last")
    initial = Checkpoint.from_disk(tmp_path / "out" / "checkpoint.safetensors").progress.initial_perplexity
    lines = extend(tmp_path / "out", n_steps=20, config=FINETUNE)  # half of these are 10
    assert not any("trained alone" in line for line in lines)
    metrics = read_metrics(tmp_path / "out")
    assert [line["step"] for line in metrics if "perplexity" in line] == [3, 4, 6, 9, 12, 15, 18, 20]
    after = read_tensors(tmp_path / "out" / "model-last")
    assert not any(before[name].equal(after[name]) for name in before)
    found = Checkpoint.from_disk(tmp_path / "out" / "checkpoint.safetensors").progress.initial_perplexity
    assert found == initial is not None
