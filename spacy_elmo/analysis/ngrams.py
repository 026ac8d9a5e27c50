"""N-gram language models: the perplexities that a biLM trained on the same text should be below.

A text is given as the ids of its words, sentence by sentence, so that any vocabulary can be used. The trigram model is
interpolated, with modified Kneser-Ney discounts (Chen and Goodman 1999). Trained on reversed sentences, it is the
counterpart of a biLM's backward direction. One detail differs from other implementations: a bigram at the start of a
sentence counts once, like any other after one context, while others count how often it occurs.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy
from numpy.typing import NDArray

Ids = NDArray[numpy.int64]
Floats = NDArray[numpy.float64]


def read_trigrams(sentences: Iterable[Sequence[int]], *, begin: int, end: int, backward: bool = False) -> Ids:
    """List each word of a text, and the end of each sentence, with the two words before it.

    sentences (Iterable[Sequence[int]]): The ids of each sentence's words.
    begin, end (int): The ids of the marks at the start and end of a sentence.
    backward (bool): Whether each sentence is reversed.
    RETURNS (Ids): trigrams_N3. Two marks precede the first word.
    """

    def ids() -> Iterator[int]:
        for words in sentences:
            yield from (begin, begin)
            yield from reversed(words) if backward else words
            yield end

    ids_N = numpy.fromiter(ids(), dtype=numpy.int64)
    trigrams_N3: Ids = numpy.stack([ids_N[:-2], ids_N[1:-1], ids_N[2:]], axis=1)
    predicted_N3: Ids = trigrams_N3[trigrams_N3[:, 2] != begin]
    return predicted_N3


def unigram_perplexity(words_N: Ids, counts: Sequence[int], *, begin: int) -> float:
    """Compute the perplexity of a unigram model with add-one smoothing.

    words_N (Ids): The words to predict.
    counts (Sequence[int]): How often each word of the vocabulary occurs in the training text.
    begin (int): The id of the mark at the start of a sentence, which is never predicted.
    RETURNS (float): The perplexity.
    """
    counts_V = numpy.asarray(counts) + 1
    counts_V[begin] = 0
    return float(numpy.exp(numpy.log(counts_V.sum() / counts_V[words_N]).mean()))


@dataclass(frozen=True)
class Order:
    """The counts of n-grams of one order. The key of an n-gram is a number in base V, the size of the vocabulary.

    keys_K (Ids): The keys of the n-grams, sorted.
    counts_K (Ids): How often each n-gram occurs; for lower orders, the number of different words before it.
    contexts_C (Ids): The keys of the contexts, which are all words of an n-gram but the last, sorted.
    totals_C (Floats): The sum of the counts of each context.
    reserved_C (Floats): The probability mass of each context that is reserved for words that do not occur in it.
    discounts_3 (Floats): The discounts of a count of one, of two, and of three or more.
    """

    keys_K: Ids
    counts_K: Ids
    contexts_C: Ids
    totals_C: Floats
    reserved_C: Floats
    discounts_3: Floats

    @classmethod
    def count(cls, keys_N: Ids, size: int) -> "Order":
        """Count n-grams.

        keys_N (Ids): The key of each occurrence of an n-gram.
        size (int): The size of the vocabulary.
        RETURNS (Order): The counts.
        """
        keys_K, counts_K = numpy.unique(keys_N, return_counts=True)
        discounts_3 = _estimate_discounts(counts_K)
        contexts_C, inverse_K = numpy.unique(keys_K // size, return_inverse=True)
        totals_C = numpy.bincount(inverse_K, weights=counts_K).astype(float)
        taken_C = numpy.bincount(inverse_K, weights=discounts_3[numpy.minimum(counts_K, 3) - 1])
        return cls(keys_K, counts_K, contexts_C, totals_C, taken_C / totals_C, discounts_3)

    def interpolate(self, keys_N: Ids, size: int, lower_N: Floats) -> Floats:
        """Compute the probabilities of n-grams.

        keys_N (Ids): The keys of the n-grams.
        size (int): The size of the vocabulary.
        lower_N (Floats): Their probabilities by the next lower order.
        RETURNS (Floats): p_N.
        """
        at_N, seen_N = _find(self.keys_K, keys_N)
        counts_N = self.counts_K[at_N]
        discounted_N = numpy.where(seen_N, counts_N - self.discounts_3[numpy.minimum(counts_N, 3) - 1], 0.0)
        at_N, seen_N = _find(self.contexts_C, keys_N // size)
        higher_N = discounted_N / self.totals_C[at_N] + self.reserved_C[at_N] * lower_N
        return numpy.where(seen_N, higher_N, lower_N)


def _estimate_discounts(counts_K: Ids) -> Floats:
    one, two, three, four = (int((counts_K == n).sum()) for n in (1, 2, 3, 4))
    if one and two and three:
        rate = one / (one + 2 * two)
        discounts = [1 - 2 * rate * two / one, 2 - 3 * rate * three / two, 3 - 4 * rate * four / three]
        if min(discounts) > 0:
            return numpy.asarray(discounts)
    # Too little is rare to estimate them, as in a vocabulary of frequent words: a few counts can even give negative ones.
    return numpy.asarray([0.5, 1.0, 1.5])


def _find(sorted_K: Ids, keys_N: Ids) -> tuple[Ids, Any]:
    at_N = numpy.minimum(numpy.searchsorted(sorted_K, keys_N), len(sorted_K) - 1)
    return at_N, sorted_K[at_N] == keys_N


@dataclass(frozen=True)
class KneserNey:
    """An interpolated trigram model with modified Kneser-Ney discounts.

    size (int): The size of the vocabulary.
    orders (list[Order]): Unigrams, bigrams and trigrams.
    """

    size: int
    orders: list[Order]

    @classmethod
    def count(cls, trigrams_N3: Ids, size: int) -> "KneserNey":
        """Train the model on a text. An n-gram of a lower order counts once for each word that it follows.

        trigrams_N3 (Ids): The text, as `read_trigrams` returns it.
        size (int): The size of the vocabulary.
        RETURNS (KneserNey): The model.
        """
        trigrams = Order.count((trigrams_N3[:, 0] * size + trigrams_N3[:, 1]) * size + trigrams_N3[:, 2], size)
        bigrams = Order.count(trigrams.keys_K % size**2, size)
        return cls(size, [Order.count(bigrams.keys_K % size, size), bigrams, trigrams])

    def probabilities(self, trigrams_N3: Ids) -> Floats:
        """RETURNS (Floats): p_N, the probability of each last word after the two before it."""
        p_N = numpy.full(len(trigrams_N3), 1 / (self.size - 1))  # the start of a sentence is never predicted
        for n, order in enumerate(self.orders, start=1):
            keys_N = sum(trigrams_N3[:, -i - 1] * self.size**i for i in range(n))
            p_N = order.interpolate(keys_N, self.size, p_N)
        return p_N

    def perplexity(self, trigrams_N3: Ids) -> float:
        """RETURNS (float): The perplexity of a text, given as `read_trigrams` returns it."""
        return float(numpy.exp(-numpy.log(self.probabilities(trigrams_N3)).mean()))
