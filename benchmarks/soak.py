"""Measure whether memory grows in processes that run for long.

    python benchmarks/soak.py CASE TEXT.txt [--minutes 60] [--amount 0] [--every 60] [--skip 0]
        [--train corpus/ner_sample/train.spacy]

Cases: pretrain (steps of a small model, with evaluations and checkpoints), pipe (tokens through `nlp.pipe`, with ever new
words), call (tokens through `nlp()`), train (updates of an ner that listens to elmo), load (pipelines that are loaded, used
once and dropped). A case ends after so many minutes, or after the amount, if one is given; `pretrain` has no amount.

TEXT.txt has one text per line, at least 1,000. The case runs in a process of its own. A row has the highest values that were
seen since the last row, looking every second: anonymous memory, and pages of files, such as a text that is mapped, which the
system can take back. The verdict compares the means of the last and of the first third of the rows, after those that are
skipped because caches are being filled. Only on Linux.
"""

import argparse
import itertools
import multiprocessing
import signal
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import spacy
from growth import ZONE_TOKENS, stream_words
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Corpus
from spacy.util import minibatch, registry
from task_training import DOCS_PER_BATCH, ROOT, make_nlp

from spacy_elmo.pretraining.pretrain import pretrain

ALLOWED_GROWTH = 0.02
DEV_LINES = 500
DOC_TOKENS = 100
# Small, to see many steps. Carried state, because the number of predictions then differs from step to step.
SMALL = {
    "bilm.cells": 128,
    "bilm.projection": 64,
    "bilm_training.batch_size": 16,
    "bilm_training.samples": 512,
    "bilm_training.carry_state": True,
    "bilm_training.epochs": 1000.0,
    "bilm_training.eval_frequency": 50,
    "bilm_training.checkpoint_minutes": 1.0,
    "bilm_training.logger": {"@loggers": "soak.Counter.v1"},
    "vocabulary.max_size": 10_000,
    "corpus.lang": None,  # which would take minutes to tokenize
}


class Memory(NamedTuple):
    """The memory of a process in MB.

    anonymous (float): Its own.
    files (float): Pages of files, which it shares with the system.
    """

    anonymous: float
    files: float


def main() -> None:
    arguments = parse_arguments()
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # ends the process of the case, too
    rows = []
    print("| minutes | done | anonymous memory, MB | pages of files, MB |\n|---|---|---|---|", flush=True)
    for minutes, done, memory in watch(arguments):
        rows.append(memory.anonymous)
        print(f"| {minutes:.1f} | {done:,} | {memory.anonymous:,.0f} | {memory.files:,.0f} |", flush=True)
    rows = rows[arguments.skip :]
    third = len(rows) // 3
    if not third:
        print("\nToo short for a verdict: three rows are needed.")
        return
    first, last = statistics.mean(rows[:third]), statistics.mean(rows[-third:])
    verdict = "holds" if last <= first * (1 + ALLOWED_GROWTH) else "grows"
    print(
        f"\n{arguments.case}: first third {first:,.0f} MB, last third {last:,.0f} MB, {last / first - 1:+.1%}: {verdict}"
    )


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", choices=CASES)
    parser.add_argument("text", type=Path, help="one text per line")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--amount", type=int, default=0, help="tokens, updates or pipelines; 0 for no limit")
    parser.add_argument("--every", type=float, default=60, help="the seconds of a row")
    parser.add_argument("--skip", type=int, default=0, help="rows at the start that the verdict leaves out")
    parser.add_argument("--train", type=Path, default=ROOT / "corpus" / "ner_sample" / "train.spacy")
    return parser.parse_args()


def watch(arguments: argparse.Namespace) -> Iterator[tuple[float, int, Memory]]:
    """Run a case in a process. YIELDS (tuple): For each row, the minutes, the amount that is done, and the highest memory."""
    context = multiprocessing.get_context("spawn")  # a forked process would start with the memory of this one
    done = context.Value("q", 0)
    process = context.Process(target=run, args=(arguments, done), daemon=True)
    process.start()
    while not done.value and process.is_alive():  # until the model is read
        time.sleep(0.1)
    start = time.monotonic()
    try:
        for row in itertools.count(1):
            seen: list[Memory] = []
            # Once at least, also if this process was paused for a whole row.
            while process.is_alive() and (not seen or time.monotonic() < start + row * arguments.every):
                seen.append(read_memory(process.pid))
                time.sleep(1)
            if not process.is_alive() or time.monotonic() > start + 60 * arguments.minutes + arguments.every / 2:
                break
            highest = Memory(*(max(values) for values in zip(*seen, strict=True)))
            yield (time.monotonic() - start) / 60, done.value, highest
    finally:
        process.kill()
        process.join()


def run(arguments: argparse.Namespace, done: Any) -> None:
    """Run a case in this process, up to its amount; `pretrain`, which counts its own steps, up to the last of them."""
    warnings.simplefilter("ignore")
    for n in CASES[arguments.case](arguments, done):
        done.value += n
        if arguments.amount and done.value >= arguments.amount:
            return


def soak_pretrain(arguments: argparse.Namespace, done: Any) -> Iterator[int]:
    """YIELDS (int): Nothing: the logger of the run counts its steps."""

    @registry.loggers("soak.Counter.v1")
    def configure() -> Any:
        def count(info: Any) -> None:
            done.value += 1

        return lambda nlp, stdout, stderr: (count, lambda: None)

    with tempfile.TemporaryDirectory() as directory:
        dev = Path(directory) / "dev.txt"
        with arguments.text.open(encoding="utf8") as file:
            dev.write_text("".join(itertools.islice(file, DEV_LINES)), encoding="utf8")
        paths = {"paths.train": str(arguments.text), "paths.dev": str(dev)}
        pretrain(ROOT / "configs" / "pretrain.cfg", Path(directory) / "run", overrides={**paths, **SMALL})
    yield 0


def soak_pipe(arguments: argparse.Namespace, done: Any) -> Iterator[int]:
    """YIELDS (int): The tokens of a document of `nlp.pipe`."""
    nlp, words = make_elmo(), stream_words(read_words(arguments.text))
    while True:
        with nlp.memory_zone():
            n_docs = ZONE_TOKENS // DOC_TOKENS
            docs = (Doc(nlp.vocab, words=list(itertools.islice(words, DOC_TOKENS))) for _ in range(n_docs))
            for doc in nlp.pipe(docs):
                yield len(doc)


def soak_call(arguments: argparse.Namespace, done: Any) -> Iterator[int]:
    """YIELDS (int): The tokens of a document of `nlp()`."""
    nlp, words = make_elmo(), stream_words(read_words(arguments.text))
    while True:
        with nlp.memory_zone():
            for _ in range(ZONE_TOKENS // DOC_TOKENS):
                yield len(nlp(" ".join(itertools.islice(words, DOC_TOKENS))))


def soak_train(arguments: argparse.Namespace, done: Any) -> Iterator[int]:
    """YIELDS (int): One, for each update."""
    nlp = make_nlp(ROOT / "configs" / "ner.cfg", arguments.train, {})
    optimizer = nlp.resume_training()
    while True:
        for batch in minibatch(Corpus(arguments.train)(nlp), DOCS_PER_BATCH):
            nlp.update(batch, drop=0.1, sgd=optimizer)
            yield 1


def soak_load(arguments: argparse.Namespace, done: Any) -> Iterator[int]:
    """YIELDS (int): One, for each pipeline that was loaded and used."""
    with tempfile.TemporaryDirectory() as directory:
        make_elmo().to_disk(directory)
        while True:
            spacy.load(directory)("This reads the weights.")
            yield 1


CASES = {
    "pretrain": soak_pretrain,
    "pipe": soak_pipe,
    "call": soak_call,
    "train": soak_train,
    "load": soak_load,
}


def make_elmo() -> Language:
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.add_pipe("elmo", config={"keep_layers": False})
    return nlp


def read_words(path: Path) -> list[list[str]]:
    return [line.split() for line in path.read_text(encoding="utf8").splitlines() if line.strip()]


def read_memory(pid: int | None) -> Memory:
    """RETURNS (Memory): What Linux says about a process, in /proc."""
    fields = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return Memory(*(int(fields[name].split()[0]) * 1024 / 1e6 for name in ("RssAnon", "RssFile")))


if __name__ == "__main__":
    main()
