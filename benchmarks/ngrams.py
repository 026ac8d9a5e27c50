"""Perplexities of language models that count: what a biLM of the same text has to beat.

    python benchmarks/ngrams.py VOCAB.txt TRAIN.txt TEST.txt...

Texts have one tokenized sentence per line, such as the sentences.txt that pretraining keeps, and may be gzipped; VOCAB.txt is the
biLM's, so that both predict the same words: those of a sentence and its end, with all that are not in the vocabulary as one.
The trigram model is an interpolated one with modified Kneser-Ney discounts (Chen and Goodman 1999), from the text as it stands
and from each sentence reversed: the two directions of a biLM. Bigrams at the start of a sentence count once, as all others do after
one word; other implementations take how often they occur.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy
import numpy.typing

from spacy_elmo.corpora.read import read_corpus
from spacy_elmo.pretraining.vocabulary import Vocabulary

Ids = numpy.typing.NDArray[numpy.int64]
Floats = numpy.typing.NDArray[numpy.float64]


def main() -> None:
    arguments = parse_arguments()
    vocabulary = Vocabulary.from_disk(arguments.vocabulary)
    models = [KneserNey.count(read_grams(arguments.train, vocabulary, back), len(vocabulary)) for back in (False, True)]
    print("| text | words | unknown | unigrams | trigrams, forward | trigrams, backward |")
    print("|---|---|---|---|---|---|")
    for path in arguments.texts:
        losses = []
        for model, back in zip(models, (False, True), strict=True):
            grams_N3 = read_grams(path, vocabulary, back)
            losses.append(-numpy.log(model.probabilities(grams_N3)).mean())
        words_N = grams_N3[:, 2]
        counts = numpy.asarray(vocabulary.counts) + 1
        counts[vocabulary.BEGIN] = 0
        unigram = numpy.log(counts.sum() / counts[words_N]).mean()
        unknown = (words_N == vocabulary.UNKNOWN).mean()
        row = (f"{numpy.exp(loss):,.1f}" for loss in (unigram, *losses))
        print(f"| {path.name} | {len(words_N):,} | {unknown:.2%} | {' | '.join(row)} |", flush=True)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vocabulary", type=Path, help="the biLM's vocab.txt")
    parser.add_argument("train", type=Path, help="the text to count in")
    parser.add_argument("texts", type=Path, nargs="+", help="the texts to predict")
    return parser.parse_args()


def read_grams(path: Path, vocabulary: Vocabulary, backward: bool) -> Ids:
    """RETURNS (Ids): Each word of a text, and the end of each sentence, after the two that come before it.

    *Shape*: (words, 3).
    """
    ids_N = numpy.fromiter(_read_ids(path, vocabulary, backward), dtype=numpy.int64)
    grams_N3: Ids = numpy.stack([ids_N[:-2], ids_N[1:-1], ids_N[2:]], axis=1)
    predicted_N3: Ids = grams_N3[grams_N3[:, 2] != vocabulary.BEGIN]
    return predicted_N3


def _read_ids(path: Path, vocabulary: Vocabulary, backward: bool) -> Iterator[int]:
    for words in read_corpus(path, lang=None):
        yield from (vocabulary.BEGIN, vocabulary.BEGIN)
        yield from map(vocabulary.id_of, reversed(words) if backward else words)
        yield vocabulary.END


@dataclass(frozen=True)
class Order:
    """The counts of n-grams of one order, by key: the n-gram as a number to the base of the vocabulary's size.

    keys_K, counts_K (Ids): The n-grams, sorted, and how often each occurs; for lower orders, after how many words.
    contexts_C (Ids): What comes before the last word of one of them, sorted.
    totals_C (Floats): The counts of all n-grams of a context.
    reserved_C (Floats): The share of them that is left for words that were not seen in the context.
    discounts_3 (Floats): What is taken from a count of one, of two and of more.
    """

    keys_K: Ids
    counts_K: Ids
    contexts_C: Ids
    totals_C: Floats
    reserved_C: Floats
    discounts_3: Floats

    @classmethod
    def count(cls, keys_N: Ids, size: int) -> "Order":
        """RETURNS (Order): The counts of n-grams, given once for each time that they occur."""
        keys_K, counts_K = numpy.unique(keys_N, return_counts=True)
        one, two, three, four = (int((counts_K == n).sum()) for n in (1, 2, 3, 4))
        if one and two and three:
            rate = one / (one + 2 * two)
            discounts = [1 - 2 * rate * two / one, 2 - 3 * rate * three / two, 3 - 4 * rate * four / three]
        else:  # unigrams of a vocabulary of frequent words: nothing is rare enough to learn the discounts from
            discounts = [0.5, 1.0, 1.5]
        discounts_3 = numpy.asarray(discounts)
        contexts_C, inverse_K = numpy.unique(keys_K // size, return_inverse=True)
        totals_C = numpy.bincount(inverse_K, weights=counts_K).astype(float)
        taken_C = numpy.bincount(inverse_K, weights=discounts_3[numpy.minimum(counts_K, 3) - 1])
        return cls(keys_K, counts_K, contexts_C, totals_C, taken_C / totals_C, discounts_3)

    def interpolate(self, keys_N: Ids, size: int, lower_N: Floats) -> Floats:
        """RETURNS (Floats): The probabilities of n-grams, given what the next lower order makes of them."""
        at_N, seen_N = _find(self.keys_K, keys_N)
        counts_N = self.counts_K[at_N]
        discounted_N = numpy.where(seen_N, counts_N - self.discounts_3[numpy.minimum(counts_N, 3) - 1], 0.0)
        at_N, seen_N = _find(self.contexts_C, keys_N // size)
        higher_N = discounted_N / self.totals_C[at_N] + self.reserved_C[at_N] * lower_N
        return numpy.where(seen_N, higher_N, lower_N)


def _find(sorted_K: Ids, keys_N: Ids) -> tuple[Ids, Any]:
    at_N = numpy.minimum(numpy.searchsorted(sorted_K, keys_N), len(sorted_K) - 1)
    return at_N, sorted_K[at_N] == keys_N


@dataclass(frozen=True)
class KneserNey:
    """A trigram model.

    size (int): The size of the vocabulary.
    orders (list[Order]): Unigrams, bigrams and trigrams.
    """

    size: int
    orders: list[Order]

    @classmethod
    def count(cls, grams_N3: Ids, size: int) -> "KneserNey":
        """RETURNS (KneserNey): The model of a text. An n-gram of a lower order counts once for each word that it follows."""
        trigrams = Order.count((grams_N3[:, 0] * size + grams_N3[:, 1]) * size + grams_N3[:, 2], size)
        bigrams = Order.count(trigrams.keys_K % size**2, size)
        return cls(size, [Order.count(bigrams.keys_K % size, size), bigrams, trigrams])

    def probabilities(self, grams_N3: Ids) -> Floats:
        """RETURNS (Floats): The probability of each last word after the two before it."""
        p_N = numpy.full(len(grams_N3), 1 / (self.size - 1))  # the start of a sentence is never predicted
        for n, order in enumerate(self.orders, start=1):
            keys_N = sum(grams_N3[:, -i - 1] * self.size**i for i in range(n))
            p_N = order.interpolate(keys_N, self.size, p_N)
        return p_N


if __name__ == "__main__":
    main()
