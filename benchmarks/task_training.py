"""Measure the time of training a task with ELMo, relative to its baseline, epoch by epoch in one run.

    python benchmarks/task_training.py [--config configs/ner.cfg] [--baseline configs/ner_baseline.cfg] [--train TRAIN.spacy]
        [--weights WEIGHTS] [--epochs 4]

From the second epoch on, the outputs of the frozen biLM come from its cache. The column "ELMo, no cache" has cache_mb = 0.
"""

import argparse
import time
from pathlib import Path
from typing import Any

from spacy.language import Language
from spacy.training import Corpus
from spacy.training.initialize import init_nlp
from spacy.util import load_config, minibatch
from tqdm import tqdm

ROOT = Path(__file__).parents[1]
DOCS_PER_BATCH = 32


def make_nlp(config: Path, train: Path, overrides: dict[str, Any]) -> Language:
    """Initialize a pipeline for training.

    config (Path): Its config.
    train (Path): The training docs.
    overrides (dict): Changes to the config.
    RETURNS (Language): The pipeline.
    """
    paths = {"paths.train": str(train), "paths.dev": str(train)}
    return init_nlp(load_config(config, overrides={**paths, **overrides}, interpolate=True))


def time_epoch(nlp: Language, train: Path, dropout: float) -> float:
    """Train a pipeline for one epoch.

    nlp (Language): The pipeline.
    train (Path): The training docs.
    dropout (float): The dropout rate.
    RETURNS (float): The seconds of the updates, without reading the docs.
    """
    batches = list(minibatch(Corpus(train)(nlp), DOCS_PER_BATCH))
    optimizer = nlp.resume_training()
    start = time.perf_counter()
    for batch in tqdm(batches, leave=False, disable=None):
        nlp.update(batch, drop=dropout, sgd=optimizer)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", type=Path, default=ROOT / "configs" / "ner.cfg")
    parser.add_argument("--baseline", type=Path, default=ROOT / "configs" / "ner_baseline.cfg")
    parser.add_argument("--train", type=Path, default=ROOT / "corpus" / "ner_sample" / "train.spacy")
    parser.add_argument("--weights", default=None)
    parser.add_argument("--epochs", type=int, default=4)
    args = parser.parse_args()
    weights = {"paths.weights": args.weights} if args.weights else {}
    pipelines = {
        "baseline": make_nlp(args.baseline, args.train, {}),
        "ELMo": make_nlp(args.config, args.train, weights),
        "ELMo, no cache": make_nlp(args.config, args.train, {**weights, "components.elmo.cache_mb": 0}),
    }
    for epoch in range(1, args.epochs + 1):
        # In turns, so that other load on the machine affects all of them.
        seconds = {name: time_epoch(nlp, args.train, dropout=0.1) for name, nlp in pipelines.items()}
        ratios = ", ".join(f"{name} {value / seconds['baseline']:.2f}" for name, value in seconds.items())
        print(f"epoch {epoch}: baseline {seconds['baseline']:.2f} s; relative to it: {ratios}")


if __name__ == "__main__":
    main()
