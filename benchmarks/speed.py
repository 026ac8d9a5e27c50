"""Measure all speeds that the package promises, each beside its peer, in one run and one table.

    python -m spacy project run convert-ner
    python benchmarks/speed.py SENTENCES.txt [--peer peer/bin/python --peer-module DIRECTORY] [--rounds 3]
        [--parts published bundled training neighbours growth]

SENTENCES.txt has one tokenized sentence per line, 64 at least. The parts are scripts of their own, which say what they measure
and print more of it: published_sizes.py (and what `--peer` is), bundled.py, training.py with `configs/en_elmo_sm.cfg`,
shared_machine.py, which trains on `corpus/ner_sample`, and growth.py, only on Linux. A ratio is the first number divided by the
second: the median of the rounds' ratios where there are rounds.
"""

import argparse
import statistics
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import bundled
import growth
import published_sizes
import shared_machine
import torch
import training

PRETRAINING = Path(__file__).parents[1] / "configs" / "en_elmo_sm.cfg"
TRAINING_STEPS = 8
FEW, MANY = 10_000, 1_000_000  # tokens
SHORT, LONG = 100, 100_000  # tokens of a document


class Row(NamedTuple):
    """A row of the table."""

    name: str
    ours: float
    compared_with: str
    theirs: float | None = None
    ratio: float | None = None
    note: str = ""


def main() -> None:
    arguments = parse_arguments()
    if "neighbours" in arguments.parts and not (arguments.data / "train.spacy").exists():
        sys.exit(f"{arguments.data} has no train.spacy: run `python -m spacy project run convert-ner`, or set --data.")
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads; {arguments.rounds} rounds\n")
    print("| | | compared with | | ratio | |\n|---|---|---|---|---|---|")
    for part in arguments.parts:
        for row in PARTS[part](arguments):
            numbers = ["" if number is None else bundled.show(number) for number in (row.ours, row.theirs, row.ratio)]
            print(
                f"| {row.name} | {numbers[0]} | {row.compared_with} | {numbers[1]} | {numbers[2]} | {row.note} |",
                flush=True,
            )


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sentences", type=Path, help="one tokenized sentence per line")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=list(PARTS))
    published_sizes.add_arguments(parser)
    shared_machine.add_arguments(parser)
    return parser.parse_args()


def measure_published(arguments: argparse.Namespace) -> Iterator[Row]:
    """The sizes of the published models, compared with AllenNLP."""
    sentences = published_sizes.read_sentences(arguments.sentences)
    for size in arguments.sizes:
        for found in published_sizes.measure(size, sentences, arguments):
            note = f"{found.share:.0%} of the speed of a large product"
            if found.difference is not None:
                note += f", largest difference {found.difference:.1e}"
            name = f"{', '.join(found.label)}, tokens per second"
            yield Row(name, found.ours, "AllenNLP" if arguments.peer else "", found.theirs, found.ratio, note)


def measure_bundled(arguments: argparse.Namespace) -> Iterator[Row]:
    """The bundled model, compared with spaCy's small CNN."""
    for found in bundled.measure(read_texts(arguments), "en_elmo_sm", arguments.rounds):
        yield Row(f"`en_elmo_sm`, {found.name}", found.ours, "HashEmbedCNN, 96 x 4", found.theirs, found.ratio)


def measure_training(arguments: argparse.Namespace) -> Iterator[Row]:
    """Pretraining, compared with a plain loop, and with itself on one thread."""
    n_threads = torch.get_num_threads()
    ours = (training.BFLOAT16, n_threads)
    several = f"{n_threads} threads"
    others = {f"a plain loop, {several}": (training.PLAIN, n_threads), "one thread": (training.BFLOAT16, 1)}
    speeds = training.measure(
        arguments.sentences, PRETRAINING, TRAINING_STEPS, arguments.rounds, [ours, *others.values()]
    )
    torch.set_num_threads(n_threads)
    for other, contestant in others.items():
        pair = speeds[ours], speeds[contestant]
        medians = [statistics.median(values) for values in pair]
        name = f"pretraining, {several}, words per second"
        yield Row(name, medians[0], other, medians[1], training.median_ratio(*pair))


def measure_neighbours(arguments: argparse.Namespace) -> Iterator[Row]:
    """The bundled model on a machine that something else uses, compared with the machine for itself."""
    for measure in shared_machine.MEASUREMENTS.values():
        for name, rounds in measure(read_texts(arguments), arguments):
            found = shared_machine.take_medians(rounds)
            yield Row(f"{name}, seconds", found.shared, "alone", found.alone, found.ratio)


def measure_growth(arguments: argparse.Namespace) -> Iterator[Row]:
    """Many tokens compared with few, and long documents with short ones."""
    few, many = (growth.measure_in_process(arguments.sentences, n, SHORT) for n in (FEW, MANY))
    times = [1e6 * found.seconds / n for found, n in ((many, MANY), (few, FEW))]
    yield Row(f"{MANY:,} tokens, microseconds per token", times[0], f"{FEW:,} tokens", times[1], times[0] / times[1])
    yield Row(f"{MANY:,} tokens, memory in MB at the end", many.end, f"{FEW:,} tokens", few.end, many.end / few.end)
    short, long = (growth.measure_in_process(arguments.sentences, LONG, length) for length in (SHORT, LONG))
    times = [1e6 * found.seconds / LONG for found in (long, short)]
    name = f"a document of {LONG:,} tokens, microseconds per token"
    yield Row(name, times[0], f"documents of {SHORT}", times[1], times[0] / times[1])


def read_texts(arguments: argparse.Namespace) -> list[str]:
    return [line for line in arguments.sentences.read_text(encoding="utf8").splitlines() if line.strip()]


PARTS: dict[str, Callable[[argparse.Namespace], Iterator[Row]]] = {
    "published": measure_published,
    "bundled": measure_bundled,
    "training": measure_training,
    "neighbours": measure_neighbours,
    "growth": measure_growth,
}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
