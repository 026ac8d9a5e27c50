"""How well layers, and ways to put them together, tell the senses of words apart, on the sentences of `spacy elmo demo`.

    python benchmarks/senses.py

For each of the uses of five words with two senses: is the closest other use of the word one of the same sense? And how close are
uses of the same sense, and of the other one, on average?
"""

import argparse
import itertools
import statistics
from collections.abc import Callable
from typing import Any

import numpy

from spacy_elmo.cli.demo import Use, count_same_sense, read_uses

Vector = Any  # a NumPy array
Mix = Callable[[Vector], Vector]  # layers_LW to a vector


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weights", help="a weights directory instead of the default weights")
    uses, others = read_uses(parser.parse_args().weights)
    docs = [*(use.token.doc for use in uses), *others]
    sizes = [numpy.mean([abs(doc._.elmo_layers[i]).mean() for doc in docs]) for i in range(n_layers(uses))]
    print(f"Mean absolute values of the layers: {', '.join(f'{size:.2f}' for size in sizes)}\n")
    words = sorted({use.word for use in uses})
    print(f"| vectors | closest use has the sense | {' | '.join(words)} |")
    print(f"|---|---|{'---|' * len(words)}")
    for name, mix in make_mixes(n_layers(uses)).items():
        vectors = [unit(mix(use.token.doc._.elmo_layers[:, use.token.i])) for use in uses]
        cells = [describe(word, uses, vectors) for word in words]
        # With vectors that are all the same, none is the closest.
        right = "–" if set(cells) == {"1.00 / 1.00"} else f"{count_same_sense(uses, vectors)} of {len(uses)}"
        print(f"| {name} | {right} | {' | '.join(cells)} |")


def n_layers(uses: list[Use]) -> int:
    return int(uses[0].token.doc._.elmo_layers.shape[0])


def make_mixes(n: int) -> dict[str, Mix]:
    def only(i: int) -> Mix:
        return lambda layers_LW: layers_LW[i]

    mixes = {("token layer" if i == 0 else f"LSTM layer {i}"): only(i) for i in range(n)}
    mixes["mean (the default)"] = lambda layers_LW: layers_LW.mean(axis=0)
    mixes["mean of normalized layers"] = lambda layers_LW: normalize(layers_LW).mean(axis=0)
    mixes["mean of the LSTM layers"] = lambda layers_LW: layers_LW[1:].mean(axis=0)
    mixes["side by side"] = lambda layers_LW: layers_LW.reshape(-1)
    return mixes


def normalize(layers_LW: Vector) -> Vector:
    return (layers_LW - layers_LW.mean(axis=1, keepdims=True)) / layers_LW.std(axis=1, keepdims=True)


def unit(vector_W: Vector) -> Vector:
    return vector_W / numpy.linalg.norm(vector_W)


def describe(word: str, uses: list[Use], vectors: list[Vector]) -> str:
    """RETURNS (str): The mean similarity of uses of the same sense, and of uses of different senses."""
    same: list[float] = []
    different: list[float] = []
    of_word = [(use.sense, vector) for use, vector in zip(uses, vectors, strict=True) if use.word == word]
    for (sense, vector), (other_sense, other) in itertools.combinations(of_word, 2):
        (same if sense == other_sense else different).append(float(vector @ other))
    return f"{statistics.mean(same):.2f} / {statistics.mean(different):.2f}"


if __name__ == "__main__":
    main()
