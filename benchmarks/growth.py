"""Measure how time and memory of `nlp.pipe` grow with the number of tokens, and with the length of a document.

    python benchmarks/growth.py TEXT.txt [--tokens 10000 100000 1000000] [--lengths 100 1000 10000 100000] [--total 100000]

TEXT.txt has one text per line. The texts are repeated, each time with a new numbered word, so that new word types never
end. The first table has documents of 100 tokens, the second the same number of tokens in documents of different lengths.
Each row is a process of its own. Its time and memory begin when the model has been read. Only on Linux.
"""

import argparse
import itertools
import multiprocessing
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import spacy
from spacy.tokens import Doc

SHORT = 100  # tokens of a document in the first table
# spaCy keeps every word that it has read until the end of a memory zone. Zones of so many tokens, or of one document.
ZONE_TOKENS = 100_000


class Growth(NamedTuple):
    """What one process has measured.

    seconds (float): The time of `nlp.pipe`.
    loaded, end, peak (float): The resident memory in MB: with the model loaded, at the end, and the highest.
    vectors (float): The MB of the vectors of one document.
    """

    seconds: float
    loaded: float
    end: float
    peak: float
    vectors: float


def main() -> None:
    arguments = parse_arguments()
    if arguments.tokens:
        print("| tokens | seconds | tokens/s | memory with the model loaded, MB | at the end | peak |")
        print("|---|---|---|---|---|---|", flush=True)
    for n_tokens in arguments.tokens:
        found = measure_in_process(arguments.text, n_tokens, SHORT)
        print(f"| {n_tokens:,} | {found.seconds:.1f} | {n_tokens / found.seconds:,.0f} ", end="")
        print(f"| {found.loaded:,.0f} | {found.end:,.0f} | {found.peak:,.0f} |", flush=True)
    if arguments.lengths:
        print(f"\n{arguments.total:,} tokens:\n")
        print("| tokens of a document | tokens/s | peak over the model loaded, MB | vectors of a document, MB |")
        print("|---|---|---|---|", flush=True)
    for length in arguments.lengths:
        found = measure_in_process(arguments.text, arguments.total, length)
        print(f"| {length:,} | {arguments.total / found.seconds:,.0f} | {found.peak - found.loaded:,.0f} ", end="")
        print(f"| {found.vectors:,.1f} |", flush=True)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=Path, help="one text per line")
    parser.add_argument("--tokens", type=int, nargs="*", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--lengths", type=int, nargs="*", default=[100, 1_000, 10_000, 100_000])
    parser.add_argument("--total", type=int, default=100_000, help="the tokens of each row of the second table")
    return parser.parse_args()


def measure_in_process(path: Path, n_tokens: int, length: int) -> Growth:
    # A forked process would start with the memory of this one.
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(measure, (path, n_tokens, length))


def measure(path: Path, n_tokens: int, length: int) -> Growth:
    """Measure in this process.

    path (Path): The texts.
    n_tokens (int): The tokens of all documents.
    length (int): The tokens of each document.
    RETURNS (Growth): Time and memory.
    """
    warnings.simplefilter("ignore")
    nlp = spacy.blank("en")
    texts = [
        [token.text for token in nlp(line)] for line in path.read_text(encoding="utf8").splitlines() if line.strip()
    ]
    nlp.add_pipe("sentencizer")
    nlp.add_pipe("elmo", config={"keep_layers": False})
    nlp("This reads the weights.")
    loaded, n_bytes, words, n_docs = read_memory("VmRSS"), 0, stream_words(texts), n_tokens // length
    docs_in_zone = max(1, ZONE_TOKENS // length)
    start = time.perf_counter()
    for first in range(0, n_docs, docs_in_zone):
        with nlp.memory_zone():
            n_zone = min(docs_in_zone, n_docs - first)
            for doc in nlp.pipe(Doc(nlp.vocab, words=list(itertools.islice(words, length))) for _ in range(n_zone)):
                n_bytes = doc.tensor.nbytes
    seconds = time.perf_counter() - start
    return Growth(seconds, loaded, read_memory("VmRSS"), read_memory("VmHWM"), n_bytes / 1e6)


def stream_words(texts: list[list[str]]) -> Iterator[str]:
    for i, words in enumerate(itertools.cycle(texts)):
        yield f"number{i}"
        yield from words


def read_memory(field: str) -> float:
    """RETURNS (float): A field of Linux's /proc/self/status in MB: VmRSS, now, or VmHWM, the highest so far."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:")) * 1024 / 1e6


if __name__ == "__main__":
    main()
