"""The model that counts, which perplexities are compared with, is a model: its probabilities are those of something."""

import random
from pathlib import Path

import numpy
import pytest

from benchmarks.ngrams import KneserNey, read_grams
from spacy_elmo.pretraining.vocabulary import Vocabulary, count_words

SIZE = 20


@pytest.fixture
def text(tmp_path: Path) -> Path:
    pick = random.Random(0)
    sentences = [" ".join(f"w{int(pick.expovariate(0.3))}" for _ in range(pick.randint(1, 9))) for _ in range(200)]
    (tmp_path / "text.txt").write_text("\n".join(sentences), encoding="utf8")
    return tmp_path / "text.txt"


@pytest.fixture
def vocabulary(text: Path) -> Vocabulary:
    return count_words((line.split() for line in text.read_text(encoding="utf8").splitlines()), max_size=SIZE)


def test_grams_are_words_after_the_two_before_them(tmp_path: Path, vocabulary: Vocabulary) -> None:
    (tmp_path / "two.txt").write_text("w1 w2\nw3\n", encoding="utf8")
    begin, end = vocabulary.BEGIN, vocabulary.END
    one, two, three = map(vocabulary.id_of, ["w1", "w2", "w3"])
    forward = [[begin, begin, one], [begin, one, two], [one, two, end], [begin, begin, three], [begin, three, end]]
    assert read_grams(tmp_path / "two.txt", vocabulary, backward=False).tolist() == forward
    assert read_grams(tmp_path / "two.txt", vocabulary, backward=True).tolist()[:3] == [
        [begin, begin, two],
        [begin, two, one],
        [two, one, end],
    ]


@pytest.mark.parametrize("backward", [False, True])
def test_probabilities_of_all_words_sum_to_one(text: Path, vocabulary: Vocabulary, backward: bool) -> None:
    grams_N3 = read_grams(text, vocabulary, backward)
    model = KneserNey.count(grams_N3, len(vocabulary))
    words = [i for i in range(len(vocabulary)) if i != vocabulary.BEGIN]
    seen = {(int(a), int(b)) for a, b, _ in grams_N3}
    unseen = {(a, b) for a in words for b in words} - seen
    assert seen
    assert unseen
    for context in seen | unseen:
        p_K = model.probabilities(numpy.asarray([[*context, word] for word in words]))
        assert p_K.min() > 0
        assert p_K.sum() == pytest.approx(1)


def test_what_was_seen_is_likelier(text: Path, vocabulary: Vocabulary) -> None:
    grams_N3 = read_grams(text, vocabulary, backward=False)
    model = KneserNey.count(grams_N3, len(vocabulary))
    in_order = numpy.log(model.probabilities(grams_N3)).mean()
    shuffled_N3 = grams_N3.copy()
    numpy.random.default_rng(0).shuffle(shuffled_N3[:, 2])
    assert in_order > numpy.log(model.probabilities(shuffled_N3)).mean() + 0.5
