"""Measure what the bundled model loses when something else uses the machine: a second training, other threads, a busy loop.

    python -m spacy project run convert-ner
    python benchmarks/shared_machine.py TEXT.txt [--measure trainings threads loop]

TEXT.txt has one text per line. All run with the default number of threads, unless OMP_NUM_THREADS is set. What runs alone
and what shares the machine take turns, and the table has the medians of the rounds and of their ratios. Trainings that
do not end within the time limit are stopped.
"""

import argparse
import math
import os
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import spacy
import torch
from spacy.language import Language

ROOT = Path(__file__).parents[1]
N_STEPS = 40
N_THREADS = 8
# The seconds of one round: alone and shared.
Round = tuple[float, float]
# What was measured, and its rounds.
Results = Iterator[tuple[str, list[Round]]]


def main() -> None:
    arguments = parse_arguments()
    lines = [line for line in arguments.text.read_text(encoding="utf8").splitlines() if line.strip()]
    texts = lines[: arguments.texts]
    print(
        f"{len(texts)} texts; torch {torch.__version__}, {torch.get_num_threads()} threads, {os.cpu_count()} cores; ",
        end="",
    )
    print(f"median of {arguments.rounds} rounds\n")
    print("| | alone, seconds | shared | ratio |")
    print("|---|---|---|---|", flush=True)
    for name in arguments.measure:
        for what, rounds in MEASUREMENTS[name](texts, arguments):
            found = take_medians(rounds)
            shared = f"{found.shared:.1f} | {found.ratio:.2f}" if math.isfinite(found.shared) else "not done in time |"
            print(f"| {what} | {found.alone:.1f} | {shared} |", flush=True)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=Path, help="one text per line")
    parser.add_argument("--texts", type=int, default=500, help="how many of the texts to use")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--measure", nargs="+", default=list(MEASUREMENTS), choices=list(MEASUREMENTS))
    add_arguments(parser)
    return parser.parse_args()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the trainings."""
    parser.add_argument("--data", type=Path, default=ROOT / "corpus" / "ner_sample", help="train.spacy and dev.spacy")
    parser.add_argument("--limit", type=float, default=120, help="seconds after which trainings are stopped")


def measure_trainings(texts: list[str], arguments: argparse.Namespace) -> Results:
    """One training, and two at once."""
    rounds = [(train(1, arguments), train(2, arguments)) for _ in range(arguments.rounds)]
    yield f"two trainings of {N_STEPS} steps at once", rounds


def train(n_processes: int, arguments: argparse.Namespace) -> float:
    """RETURNS (float): The seconds until all of several trainings have ended, infinite if they are not done in time."""
    command = [sys.executable, "-W", "ignore", "-m", "spacy", "train", str(ROOT / "configs" / "ner.cfg")]
    command += ["--paths.train", str(arguments.data / "train.spacy"), "--paths.dev", str(arguments.data / "dev.spacy")]
    command += ["--training.max_steps", str(N_STEPS)]
    start = time.perf_counter()
    processes = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for _ in range(n_processes)]
    try:
        for process in processes:
            if process.wait(timeout=max(0, start + arguments.limit - time.perf_counter())):
                raise RuntimeError(f"The training failed: {' '.join(command)}")
        return time.perf_counter() - start
    except subprocess.TimeoutExpired:
        return math.inf
    finally:
        for process in processes:
            process.kill()
            process.wait()


def measure_threads(texts: list[str], arguments: argparse.Namespace) -> Results:
    """One thread that calls a pipeline with all texts, and several that share them."""
    nlp = make_pipeline(texts)
    rounds = [(time_calls(nlp, texts), time_threads(nlp, texts)) for _ in range(arguments.rounds)]
    yield f"`nlp(text)` in {N_THREADS} threads with a share of the texts each, instead of one", rounds


def measure_loop(texts: list[str], arguments: argparse.Namespace) -> Results:
    """A pipeline alone, and beside a process that never waits."""
    nlp = make_pipeline(texts)
    rounds: dict[str, list[Round]] = {name: [] for name in CALLS}
    for _ in range(arguments.rounds):
        alone = [call(nlp, texts) for call in CALLS.values()]
        with busy_loop():
            shared = [call(nlp, texts) for call in CALLS.values()]
        for name, *pair in zip(CALLS, alone, shared, strict=True):
            rounds[name].append((pair[0], pair[1]))
    for name, pairs in rounds.items():
        yield f"`{name}` beside a process that uses one core", pairs


@contextmanager
def busy_loop() -> Iterator[None]:
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def make_pipeline(texts: list[str]) -> Language:
    """RETURNS (Language): A pipeline that has seen the texts, so that every round finds the same words in the cache."""
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.add_pipe("elmo", config={"keep_layers": False})
    time_pipe(nlp, texts)
    return nlp


def time_pipe(nlp: Language, texts: list[str]) -> float:
    start = time.perf_counter()
    for _ in nlp.pipe(texts):
        pass
    return time.perf_counter() - start


def time_calls(nlp: Language, texts: list[str]) -> float:
    start = time.perf_counter()
    for text in texts:
        nlp(text)
    return time.perf_counter() - start


def time_threads(nlp: Language, texts: list[str]) -> float:
    start = time.perf_counter()
    with ThreadPoolExecutor(N_THREADS) as pool:
        list(pool.map(lambda i: time_calls(nlp, texts[i::N_THREADS]), range(N_THREADS)))
    return time.perf_counter() - start


class Medians(NamedTuple):
    """The median seconds alone and shared, and the median of the rounds' ratios."""

    alone: float
    shared: float
    ratio: float


def take_medians(rounds: list[Round]) -> Medians:
    alone, shared = (statistics.median(values) for values in zip(*rounds, strict=True))
    return Medians(alone, shared, statistics.median(shared / alone for alone, shared in rounds))


CALLS: dict[str, Callable[[Language, list[str]], float]] = {"nlp.pipe": time_pipe, "nlp(text)": time_calls}
MEASUREMENTS = {"trainings": measure_trainings, "threads": measure_threads, "loop": measure_loop}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
