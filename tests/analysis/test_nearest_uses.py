"""Whether the nearest use of a word has the same sense."""

from pathlib import Path

import numpy
import pytest
import spacy
from numpy.testing import assert_allclose, assert_array_equal
from spacy.language import Language
from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_elmo.analysis.nearest_uses import (
    Use,
    combine_layers,
    count_same_sense,
    first_of_each_sense,
    read_uses,
    score_uses,
    use_combinations,
)
from spacy_elmo.analysis.vectors import Floats


@pytest.fixture
def nlp() -> Language:
    return spacy.blank("en")


def make_uses(*senses: str, word: str = "play") -> list[Use]:
    return [Use(word, sense, Doc(Vocab(), words=[word])[0]) for sense in senses]


def at_angles(*degrees: float) -> Floats:
    radians = numpy.radians(degrees)
    return numpy.stack([numpy.cos(radians), numpy.sin(radians)], axis=1)


def test_sentences_of_the_package_are_balanced(nlp: Language) -> None:
    uses, others = read_uses(nlp)
    assert (len(uses), len(others)) == (60, 21)
    counts: dict[tuple[str, str], int] = {}
    for use in uses:
        assert use.token.text == use.word
        counts[use.word, use.sense] = counts.get((use.word, use.sense), 0) + 1
    assert list(counts.values()) == [6] * 10


def test_sentences_of_a_file(nlp: Language, tmp_path: Path) -> None:
    (tmp_path / "uses.tsv").write_text("play\tverb\tThey play it.\n\t\tIt is far.\n", encoding="utf8")
    uses, others = read_uses(nlp, tmp_path / "uses.tsv")
    assert [(use.word, use.sense, use.token.i) for use in uses] == [("play", "verb", 1)]
    assert [doc.text for doc in others] == ["It is far."]


def test_quotation_marks_are_part_of_the_sentence(nlp: Language, tmp_path: Path) -> None:
    text = 'play\tverb\t"They play," she said.\nplay\tnoun\t"A play\n'
    (tmp_path / "uses.tsv").write_text(text, encoding="utf8")
    uses, _ = read_uses(nlp, tmp_path / "uses.tsv")
    assert [(use.sense, use.token.doc.text) for use in uses] == [
        ("verb", '"They play," she said.'),
        ("noun", '"A play'),
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "play\tThey play it.",
            r"Line 1 of .*uses.tsv must be a word, its sense and a sentence, separated by tabs, got",
        ),
        ("play\tverb\tHe played.", r"The sentence 'He played.' in .*uses.tsv has no token 'play'"),
        ("", r"uses.tsv has no sentence with a word and its sense. Each line should have the three"),
        ("\t\tIt is far.", r"uses.tsv has no sentence with a word and its sense"),
    ],
)
def test_sentences_that_cannot_be_used(nlp: Language, tmp_path: Path, line: str, message: str) -> None:
    (tmp_path / "uses.tsv").write_text(line, encoding="utf8")
    with pytest.raises(ValueError, match=message):
        read_uses(nlp, tmp_path / "uses.tsv")


def test_first_of_each_sense() -> None:
    uses = [*make_uses("verb", "verb", "noun", "noun"), *make_uses("river", word="bank")]
    assert first_of_each_sense(uses, "play") == [uses[0], uses[2]]
    with pytest.raises(ValueError, match="There are no sentences with 'table'. The words are: play, bank"):
        first_of_each_sense(uses, "table")


def test_nearest_uses_are_counted_by_angle_and_within_a_word() -> None:
    uses = [*make_uses("verb", "verb", "noun", "noun"), *make_uses("river", "money", word="bank")]
    # The third use of "play" is nearer to the first two than to the fourth. "bank" has one use of each sense.
    assert count_same_sense(uses, at_angles(0, 10, 30, 80, 1, 2)) == 3
    assert count_same_sense(uses, 9 * at_angles(0, 10, 60, 80, 1, 2)) == 4
    with pytest.raises(ValueError, match="There is only one sentence with 'play'"):
        count_same_sense(make_uses("verb"), at_angles(0))


def test_scores_are_mean_similarities() -> None:
    score = score_uses(make_uses("verb", "verb", "noun"), at_angles(0, 60, 90))
    assert score.n_same_sense == 1  # the second use is nearer to the third
    same, different = score.similarities["play"]
    assert same == pytest.approx(0.5)
    assert different == pytest.approx((0 + 0.75**0.5) / 2)


def test_equal_vectors_have_no_nearest_use() -> None:
    score = score_uses(make_uses("verb", "verb", "noun"), at_angles(45, 45, 45))
    assert score.n_same_sense is None
    assert score.similarities["play"] == pytest.approx((1, 1))


@pytest.mark.parametrize("senses", [["verb", "verb"], ["verb", "noun"], ["verb"]])
def test_words_without_pairs_cannot_be_scored(senses: list[str]) -> None:
    with pytest.raises(ValueError, match=r"Each word needs two senses.*Add sentences with: \['play'\]"):
        score_uses(make_uses(*senses), at_angles(*range(len(senses))))


def test_combinations_of_layers() -> None:
    use = make_uses("verb")[0]
    layers_LW = numpy.asarray([[1.0, 3.0], [4.0, 0.0], [5.0, 6.0]])
    use.token.doc._.elmo_layers = layers_LW[:, None]
    found = {name: combine_layers([use], combine)[0] for name, combine in use_combinations(3).items()}
    assert list(found)[:3] == ["token layer", "LSTM layer 1", "LSTM layer 2"]
    assert_array_equal(list(found.values())[:3], layers_LW)
    assert_allclose(found["mean"], [10 / 3, 3])
    assert_allclose(found["mean of normalized layers"], [-1 / 3, 1 / 3])
    assert_allclose(found["mean of the LSTM layers"], [4.5, 3])
    assert_array_equal(found["side by side"], [1, 3, 4, 0, 5, 6])
