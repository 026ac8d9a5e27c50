"""N-gram models, whose perplexities are compared with those of a biLM."""

import random

import numpy
import pytest

from spacy_elmo.analysis.ngrams import Ids, KneserNey, Order, read_trigrams, unigram_perplexity

BEGIN, END = 0, 1
SIZE = 20


@pytest.fixture(scope="module")
def sentences() -> list[list[int]]:
    pick = random.Random(0)
    return [[2 + min(int(pick.expovariate(0.3)), SIZE - 3) for _ in range(pick.randint(1, 9))] for _ in range(200)]


def trigrams(sentences: list[list[int]], *, backward: bool = False) -> Ids:
    return read_trigrams(sentences, begin=BEGIN, end=END, backward=backward)


def test_trigrams_are_words_after_the_two_before_them() -> None:
    text = [[2, 3], [4]]
    forward = [[BEGIN, BEGIN, 2], [BEGIN, 2, 3], [2, 3, END], [BEGIN, BEGIN, 4], [BEGIN, 4, END]]
    assert trigrams(text).tolist() == forward
    assert trigrams(text, backward=True).tolist() == [[BEGIN, BEGIN, 3], [BEGIN, 3, 2], [3, 2, END], *forward[3:]]


@pytest.mark.parametrize("backward", [False, True])
def test_probabilities_of_all_words_sum_to_one(sentences: list[list[int]], backward: bool) -> None:
    trigrams_N3 = trigrams(sentences, backward=backward)
    model = KneserNey.count(trigrams_N3, SIZE)
    words = [i for i in range(SIZE) if i != BEGIN]
    seen = {(int(a), int(b)) for a, b, _ in trigrams_N3}
    unseen = {(a, b) for a in words for b in words} - seen
    assert seen
    assert unseen
    for context in seen | unseen:
        p_K = model.probabilities(numpy.asarray([[*context, word] for word in words]))
        assert p_K.min() > 0
        assert p_K.sum() == pytest.approx(1)


def test_discounts_are_positive() -> None:
    # Two n-grams occur once, one twice, twenty three times: the estimate for two would be 2 - 3 * 1/2 * 20 = -28.
    keys_N = numpy.repeat(numpy.arange(23), [1, 1, 2, *[3] * 20])
    order = Order.count(keys_N, 30)
    assert order.discounts_3.tolist() == [0.5, 1.0, 1.5]
    p_K = order.interpolate(numpy.arange(30), 30, numpy.full(30, 1 / 30))
    assert p_K.min() > 0
    assert p_K.sum() == pytest.approx(1)


def test_seen_trigrams_are_likelier(sentences: list[list[int]]) -> None:
    trigrams_N3 = trigrams(sentences)
    model = KneserNey.count(trigrams_N3, SIZE)
    shuffled_N3 = trigrams_N3.copy()
    numpy.random.default_rng(0).shuffle(shuffled_N3[:, 2])
    assert 1.6 * model.perplexity(trigrams_N3) < model.perplexity(shuffled_N3)


def test_perplexity_is_the_inverse_geometric_mean_of_probabilities(sentences: list[list[int]]) -> None:
    trigrams_N3 = trigrams(sentences)
    model = KneserNey.count(trigrams_N3, SIZE)
    product = model.probabilities(trigrams_N3[:5]).prod()
    assert model.perplexity(trigrams_N3[:5]) == pytest.approx(product ** (-1 / 5))


def test_unigram_perplexity() -> None:
    # With one added to each count but that of the mark: 3, 1 and 4 of 8.
    counts, words_N = [9, 2, 0, 3], numpy.asarray([1, 2, 3])
    assert unigram_perplexity(words_N, counts, begin=0) == pytest.approx((3 / 8 * 1 / 8 * 4 / 8) ** (-1 / 3))
