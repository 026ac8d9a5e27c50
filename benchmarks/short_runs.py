"""Short pretrainings that all take the same time, each with one thing changed: what a budget of hours is best spent on.

    python benchmarks/short_runs.py configs/en_elmo_sm.cfg OUTPUT --train train.txt --dev dev.txt [--minutes 6] [--run NAME]

A larger model makes fewer steps in the same time. So all runs first make a few steps to see how fast they are, one after the other
on a machine that should do nothing else then, and start anew with as many as fit in their minutes: the schedule of the learning
rate ends when they do. The models are left in OUTPUT, for `benchmarks/probes.py --weights` and `benchmarks/senses.py --weights`.
"""

import argparse
import json
import statistics
from pathlib import Path
from typing import Any, NamedTuple

from spacy_elmo.pretraining.output import METRICS, SCORES
from spacy_elmo.pretraining.pretrain import pretrain

Overrides = dict[str, Any]

# As in configs/pretrain_paper.cfg, which says why.
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
    # Its perplexity is of other words and not to be compared; its vectors are.
    "60,000 words": {"paths.vocab": None, "vocabulary.max_size": 60_000},
}
STEPS_TO_MEASURE = 40


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--train", required=True)
    parser.add_argument("--dev", required=True)
    parser.add_argument("--vocab", help="a vocabulary; otherwise the words are counted")
    parser.add_argument("--cache", help="where the tokenized text is kept; OUTPUT/cache if not given")
    parser.add_argument("--minutes", type=float, default=6.0)
    parser.add_argument("--run", action="append", choices=list(RUNS), help="only this one (may be repeated)")
    args = parser.parse_args()
    paths: Overrides = {
        "paths.train": args.train,
        "paths.dev": args.dev,
        "paths.vocab": args.vocab,
        "paths.cache": args.cache or str(args.output / "cache"),
    }
    names = args.run or list(RUNS)
    n_steps = {}
    for name in names:
        measured = run(STEPS_TO_MEASURE, args.config, args.output / "measured" / name, {**paths, **RUNS[name]})
        n_steps[name] = round(60 * args.minutes * measured.speed * measured.n_steps / measured.n_words)
    print("| changed | words a second | steps | words read | minutes | perplexity | forward | backward |")
    print("|---|---|---|---|---|---|---|---|")
    for name in names:
        outcome = run(n_steps[name], args.config, args.output / name, {**paths, **RUNS[name]})
        print(describe(name, outcome), flush=True)


class Outcome(NamedTuple):
    """What a run came to.

    n_steps, n_words (int): How far it got.
    seconds (float): The time of its steps, evaluations left out.
    speed (float): Words a second: the median over every ten steps, which a moment of something else does not change.
    scores (dict): What the run says of itself, perplexities among it.
    """

    n_steps: int
    n_words: int
    seconds: float
    speed: float
    scores: dict[str, float]


def run(n_steps: int, config: Path, output: Path, overrides: Overrides) -> Outcome:
    """RETURNS (Outcome): What comes of a number of steps, from random weights."""
    lengths = {"max_steps": n_steps, "eval_frequency": n_steps, "log_frequency": 10}
    overrides = {**overrides, **{f"bilm_training.{key}": value for key, value in lengths.items()}}
    pretrain(config, output, overrides=overrides, overwrite=True)
    lines = [json.loads(line) for line in (output / METRICS).read_text(encoding="utf8").splitlines()]
    n_words = [line["words"] for line in lines]
    speeds = [line["words_per_second"] for line in lines]
    seconds = sum((n - before) / speed for n, before, speed in zip(n_words, [0, *n_words], speeds, strict=False))
    scores = json.loads((output / SCORES).read_text(encoding="utf8"))
    return Outcome(n_steps, n_words[-1], seconds, statistics.median(speeds), scores)


def describe(name: str, outcome: Outcome) -> str:
    cells = [
        name,
        f"{outcome.n_words / outcome.seconds:,.0f}",
        f"{outcome.n_steps:,}",
        f"{outcome.n_words / 1e6:.2f}M",
        f"{outcome.seconds / 60:.1f}",
        *(f"{outcome.scores[f'perplexity_{key}']:.1f}" for key in ("mean", "forward", "backward")),
    ]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
