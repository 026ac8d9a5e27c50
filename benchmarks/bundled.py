"""Measure the speed of the bundled model, and of the tok2vec of small spaCy pipelines in the same run.

    python benchmarks/bundled.py TEXT.txt [--weights en_elmo_sm] [--rounds 3]

TEXT.txt has one text per line. All pipelines tokenize raw text, split sentences and compute one vector for each token.
The peer's tok2vec is a HashEmbedCNN of width 96 and depth 4, as in en_core_web_sm. Its weights are random, because the
speed does not depend on them. `elmo` in float32, in int8 and the peer take turns, and the table has the medians of the rounds and of their
ratios. `elmo` has keep_layers = false, since the peer has no layers to keep.
"""

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import spacy
import torch
from spacy.language import Language

SENTENCE = "The children play in the garden every afternoon."
N_SINGLE = 200  # calls with one sentence
PEER = {"@architectures": "spacy.HashEmbedCNN.v2", "width": 96, "depth": 4, "embed_size": 2000, "window_size": 1}
PEER |= {"maxout_pieces": 3, "subword_features": True, "pretrained_vectors": None}
LOAD = """
import time, spacy
nlp = spacy.blank("en"); nlp.add_pipe("elmo")
import torch  # takes a second, with any pipeline that has a network
start = time.perf_counter(); nlp("Hello"); print(time.perf_counter() - start)
"""


def main() -> None:
    arguments = parse_arguments()
    texts = [line for line in arguments.text.read_text(encoding="utf8").splitlines() if line.strip()]
    print(f"{len(texts)} texts, {count_tokens(texts):,} tokens; torch {torch.__version__}, ", end="")
    print(f"{torch.get_num_threads()} threads; median of {arguments.rounds} rounds\n")
    print("| | elmo | HashEmbedCNN, 96 x 4 | ratio |")
    print("|---|---|---|---|")
    for found in measure(texts, arguments.weights, arguments.rounds):
        print(f"| {found.name} | {show(found.ours)} | {show(found.theirs)} | {show(found.ratio)} |")
    load = statistics.median(time_load() for _ in range(arguments.rounds))
    print(f"| first use, which reads the weights, seconds | {load:.2f} | | |")


def show(number: float) -> str:
    """RETURNS (str): A number of any size, as a table shows it."""
    return f"{number:,.0f}" if number >= 1000 else f"{number:.3g}"


class Compared(NamedTuple):
    """The medians of `elmo` and its peer, and of the ratios of the rounds."""

    name: str
    ours: float
    theirs: float
    ratio: float


def measure(texts: list[str], weights: str, n_rounds: int) -> Iterator[Compared]:
    """Measure both precisions and the peer, in turns. YIELDS (Compared): Tokens per second, then the milliseconds of one
    short sentence."""
    n_tokens, tokens_of_sentence = count_tokens(texts), count_tokens([SENTENCE])
    ours = {precision: make_ours(weights, precision) for precision in ("float32", "int8")}
    pipelines = [*ours.values(), make_peer()]
    batches, singles = [], []
    for _ in range(n_rounds):
        batches.append([n_tokens / time_batch(nlp, texts) for nlp in pipelines])
        singles.append([1000 * time_single(nlp) for nlp in pipelines])
    for name, rounds in (
        ("`nlp.pipe`, {}, tokens per second", batches),
        (f"one sentence of {tokens_of_sentence} tokens, {{}}, milliseconds", singles),
    ):
        for i, precision in enumerate(ours):
            one, other = (statistics.median(values[j] for values in rounds) for j in (i, -1))
            ratio = statistics.median(values[i] / values[-1] for values in rounds)
            yield Compared(name.format(precision), one, other, ratio)


def count_tokens(texts: list[str]) -> int:
    tokenizer = spacy.blank("en").tokenizer  # a separate one, because a tokenizer caches words
    return sum(len(tokenizer(text)) for text in texts)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=Path, help="one text per line")
    parser.add_argument("--weights", default="en_elmo_sm", help="a weights directory, or the name of a bundled model")
    parser.add_argument("--rounds", type=int, default=3)
    return parser.parse_args()


def make_ours(weights: str, precision: str) -> Language:
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.add_pipe("elmo", config={"weights": weights, "precision": precision, "keep_layers": False})
    nlp(SENTENCE)
    return nlp


def make_peer() -> Language:
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.add_pipe("tok2vec", config={"model": PEER})
    nlp.initialize()
    nlp(SENTENCE)
    return nlp


def time_batch(nlp: Language, texts: list[str]) -> float:
    start = time.perf_counter()
    for _ in nlp.pipe(texts):
        pass
    return time.perf_counter() - start


def time_single(nlp: Language) -> float:
    start = time.perf_counter()
    for _ in range(N_SINGLE):
        nlp(SENTENCE)
    return (time.perf_counter() - start) / N_SINGLE


def time_load() -> float:
    return float(subprocess.run([sys.executable, "-W", "ignore", "-c", LOAD], capture_output=True, check=True).stdout)


if __name__ == "__main__":
    main()
