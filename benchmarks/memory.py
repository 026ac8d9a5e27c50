"""Measure the memory of `nlp.pipe` over a long stream of docs. It should stay constant.

    python benchmarks/memory.py SENTENCES.txt [--tokens 1000000] [--weights DIRECTORY]

SENTENCES.txt has one tokenized sentence per line. The sentences are repeated, each time with a new numbered word, so that
new word types never end.
"""

import argparse
import itertools
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import spacy
from spacy.language import Language
from spacy.tokens import Doc


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sentences", type=Path)
    parser.add_argument("--tokens", type=int, default=1_000_000)
    parser.add_argument("--weights", help="a weights directory instead of the default weights")
    arguments = parser.parse_args()
    sentences = [line.split() for line in arguments.sentences.read_text(encoding="utf8").splitlines() if line.strip()]
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"weights": arguments.weights})
    print("| tokens | tokens/s | resident memory, MB |\n|---|---|---|")
    start, n_tokens, next_row = time.perf_counter(), 0, 0
    with nlp.memory_zone():
        for doc in nlp.pipe(stream(nlp, sentences)):
            n_tokens += len(doc)
            if n_tokens >= next_row:
                print(
                    f"| {n_tokens:,} | {n_tokens / (time.perf_counter() - start):,.0f} | {resident_mb():,.0f} |",
                    flush=True,
                )
                next_row += arguments.tokens // 10
            if n_tokens >= arguments.tokens:
                break


def stream(nlp: Language, sentences: list[list[str]]) -> Iterator[Doc]:
    for i, words in enumerate(itertools.cycle(sentences)):
        yield Doc(nlp.vocab, words=[*words, f"number{i}"])


def resident_mb() -> float:
    """RETURNS (float): The resident memory of this process, from Linux's /proc."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
