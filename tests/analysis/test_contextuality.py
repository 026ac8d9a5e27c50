"""How much of a vector is context, on vectors whose similarities are known, and against a plain computation."""

from itertools import combinations, product

import numpy
import pytest
import spacy
from spacy.language import Language

from spacy_elmo.analysis.contextuality import PairSums, measure_context
from spacy_elmo.analysis.vectors import Floats


def cosine(one: Floats, other: Floats) -> float:
    return float(one @ other / (numpy.linalg.norm(one) * numpy.linalg.norm(other)))


def test_similarities_are_means_over_all_pairs() -> None:
    random = numpy.random.default_rng(0)
    sentences = [["a", "b", "a", "c"], ["b", "a"], ["a"], ["c", "d", "a"]]
    vectors = [random.standard_normal((len(words), 5)) for words in sentences]
    sums = PairSums({"a", "b"})
    for words, vectors_TV in zip(sentences, vectors, strict=True):
        sums.add(words, vectors_TV)
    # Of a word that is in a sentence twice, one use counts.
    uses = {
        word: [
            vectors_TV[len(words) - 1 - words[::-1].index(word)]
            for words, vectors_TV in zip(sentences, vectors, strict=True)
            if word in words
        ]
        for word in "ab"
    }
    same = [numpy.mean([cosine(*pair) for pair in combinations(uses[word], 2)]) for word in "ab"]
    assert sums.same_word == pytest.approx(numpy.mean(same))
    to_means = [
        numpy.mean([cosine(vector, vectors_TV.mean(axis=0)) for vector in vectors_TV])
        for vectors_TV in vectors
        if len(vectors_TV) > 1
    ]
    assert sums.same_sentence == pytest.approx(numpy.mean(to_means))
    pairs = [cosine(*pair) for one, other in combinations(vectors, 2) for pair in product(one, other)]
    assert sums.random_words == pytest.approx(numpy.mean(pairs))


def test_nothing_to_compare() -> None:
    sums = PairSums({"z"})
    sums.add(["a"], numpy.ones((1, 2)))
    sums.add(["b"], numpy.ones((1, 2)))
    assert (sums.same_word, sums.same_sentence) == (None, None)
    assert sums.random_words == pytest.approx(1)


@pytest.fixture
def nlp(weights: str) -> Language:
    nlp = spacy.blank("xx")
    nlp.add_pipe("elmo", config={"weights": weights})
    return nlp


def test_the_token_layer_has_no_context(nlp: Language) -> None:
    sentences = [["the", word, "sleeps"] for word in ("cat", "dog", "owl", "fox", "hen", "cat")]
    n_calls: list[None] = []
    results = measure_context(nlp, sentences, on_sentence=lambda: n_calls.append(None))
    assert len(n_calls) == 5
    assert (results.n_sentences, results.n_tokens, results.n_words) == (5, 15, 2)  # a repeated sentence counts once
    assert [layer.name for layer in results.layers] == [
        "token layer",
        "LSTM layer 1",
        "LSTM layer 2",
        "mean",
        "side by side",
    ]
    token_layer, first, *_ = results.layers
    assert token_layer.same_word == pytest.approx(1)
    assert first.same_word is not None
    assert first.same_word < 0.9999
    assert first.random_words < first.same_word
    found = results.to_dict()
    assert found["words"] == 2
    assert found["layers"][1]["same_sentence"] == first.same_sentence
    assert found["layers"][1]["layers"] == [1]


def test_one_sentence_is_not_enough(nlp: Language) -> None:
    with pytest.raises(ValueError, match="two are needed, got 1"):
        measure_context(nlp, [["a", "b"], ["a", "b"]])
