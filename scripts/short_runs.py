"""Pretrain several small models for the same time, each with one setting changed, as a Markdown table.

A larger model makes fewer steps in the same time. So each run first makes a few steps to measure its speed. It then starts
from scratch with as many steps as fit in its minutes, so that the schedule of the learning rate ends with the run. Use a
machine that does nothing else. The models stay in OUTPUT, for `spacy elmo probe` and `scripts/nearest_uses.py`.
"""

import json
import statistics
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from wasabi import msg

from spacy_elmo.pretraining.output import METRICS, SCORES
from spacy_elmo.pretraining.pretrain import pretrain

Overrides = dict[str, Any]

# The settings of configs/pretrain_paper.cfg, which gives the reasons.
ORIGINAL_OPTIMIZER: Overrides = {
    "bilm_training.optimizer.name": "Adagrad",
    "bilm_training.optimizer.learn_rate": 0.2,
    "bilm_training.optimizer.options": {"initial_accumulator_value": 0.0025, "fused": True},
    "bilm_training.grad_clip": 0.5,
    "bilm_training.schedule": {"@schedules": "spacy_elmo.Constant.v1"},
}
RUNS: dict[str, Overrides] = {
    "as it is": {},
    "carried state": {"bilm_training.carry_state": True},
    "1,024 cells": {"bilm.cells": 1024},
    "256 cells": {"bilm.cells": 256},
    "projection 256": {"bilm.projection": 256},
    "projection 64": {"bilm.projection": 64},
    "1,024 filters": {"bilm.filters": [[1, 32], [2, 64], [3, 128], [4, 256], [5, 544]]},
    "256 filters": {"bilm.filters": [[1, 16], [2, 16], [3, 32], [4, 64], [5, 128]]},
    "32 rows": {"bilm_training.batch_size": 32},
    "128 rows": {"bilm_training.batch_size": 128},
    "unroll 40": {"bilm_training.unroll": 40, "bilm_training.batch_size": 32},
    "512 samples": {"bilm_training.samples": 512},
    "8,192 samples": {"bilm_training.samples": 8192},
    "dropout 0.1": {"bilm_training.dropout": 0.1},
    "rate 0.001": {"bilm_training.optimizer.learn_rate": 0.001},
    "rate 0.006": {"bilm_training.optimizer.learn_rate": 0.006},
    "constant rate": {"bilm_training.schedule": {"@schedules": "spacy_elmo.Constant.v1"}},
    "Adagrad": ORIGINAL_OPTIMIZER,
    # With another vocabulary, perplexities cannot be compared. Probes and senses can.
    "60,000 words": {"paths.vocab": None, "vocabulary.max_size": 60_000},
}
STEPS_TO_MEASURE = 40


def short_runs(
    config: Path,
    output: Path,
    train: Annotated[str, typer.Option()],
    dev: Annotated[str, typer.Option()],
    vocab: str | None = None,
    cache: str | None = None,
    minutes: float = 6.0,
    run: Annotated[list[str] | None, typer.Option()] = None,
) -> None:
    """Pretrain models with one setting changed and print their perplexities.

    config (Path): The pretraining config that is changed.
    output (Path): The directory for the models.
    train, dev (str): The texts.
    vocab (str | None): A vocabulary; by default the words of the training text are counted.
    cache (str | None): The directory for the tokenized text; by default OUTPUT/cache.
    minutes (float): The time of each run, without evaluations.
    run (list[str] | None): The name of a run to make instead of all; may be repeated.
    """
    names = run or list(RUNS)
    if unknown := [name for name in names if name not in RUNS]:
        msg.fail(f"There are no runs with the names {unknown}", f"The runs are: {', '.join(RUNS)}", exits=1)
    paths: Overrides = {
        "paths.train": train,
        "paths.dev": dev,
        "paths.vocab": vocab,
        "paths.cache": cache or str(output / "cache"),
    }
    n_steps = {}
    try:
        for name in names:
            measured = pretrain_steps(STEPS_TO_MEASURE, config, output / "measured" / name, {**paths, **RUNS[name]})
            n_steps[name] = max(1, round(60 * minutes * measured.speed * measured.n_steps / measured.n_words))
        typer.echo("| changed | words per second | steps | words read | minutes | perplexity | forward | backward |")
        typer.echo("|---|---|---|---|---|---|---|---|")
        for name in names:
            outcome = pretrain_steps(n_steps[name], config, output / name, {**paths, **RUNS[name]})
            typer.echo(f"| {name} | {' | '.join(format_cells(outcome))} |")
    except (OSError, ValueError) as error:
        msg.fail(f"Could not make the run {name!r}", str(error), exits=1)


class Outcome(NamedTuple):
    """The measurements of a run.

    n_steps, n_words (int): The number of steps, and of words that they read.
    seconds (float): The time of its steps, without evaluations.
    speed (float): Words per second, as the median of intervals of ten steps: a short disturbance does not change it.
    scores (dict): The scores that the run has written, such as its perplexities.
    """

    n_steps: int
    n_words: int
    seconds: float
    speed: float
    scores: dict[str, float]


def pretrain_steps(n_steps: int, config: Path, output: Path, overrides: Overrides) -> Outcome:
    """Pretrain from scratch for a number of steps.

    n_steps (int): The number of steps.
    config (Path): The pretraining config.
    output (Path): The output directory.
    overrides (Overrides): The settings to change in the config.
    RETURNS (Outcome): The measurements.
    """
    lengths = {"max_steps": n_steps, "eval_frequency": n_steps, "log_frequency": 10}
    overrides = {**overrides, **{f"bilm_training.{key}": value for key, value in lengths.items()}}
    pretrain(config, output, overrides=overrides, overwrite=True)
    lines = [json.loads(line) for line in (output / METRICS).read_text(encoding="utf8").splitlines()]
    n_words = [line["words"] for line in lines]
    speeds = [line["words_per_second"] for line in lines]
    seconds = sum((n - before) / speed for n, before, speed in zip(n_words, [0, *n_words], speeds, strict=False))
    scores = json.loads((output / SCORES).read_text(encoding="utf8"))
    return Outcome(n_steps, n_words[-1], seconds, statistics.median(speeds), scores)


def format_cells(outcome: Outcome) -> list[str]:
    """RETURNS (list[str]): The cells of a run's row, after its name."""
    return [
        f"{outcome.n_words / outcome.seconds:,.0f}",
        f"{outcome.n_steps:,}",
        f"{outcome.n_words / 1e6:.2f}M",
        f"{outcome.seconds / 60:.1f}",
        *(f"{outcome.scores[f'perplexity_{key}']:.1f}" for key in ("mean", "forward", "backward")),
    ]


if __name__ == "__main__":
    typer.run(short_runs)
