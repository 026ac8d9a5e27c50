"""Words as ids of bytes, or of the characters of a table."""

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from spacy_elmo.bilm.characters import N_CHARACTERS, Alphabet, Mark, Word, encode_word, pad_spellings

from .. import reference


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("", [258, 259]),
        ("a", [258, 97, 259]),
        (" ", [258, 32, 259]),
        ("<S>", [258, 60, 83, 62, 259]),
        ("</S>", [258, 60, 47, 83, 62, 259]),
        ("ï", [258, 195, 175, 259]),
        ("\ud800", [258, 259]),
        ("a\udfffb", [258, 97, 98, 259]),
        ("\0", [258, 0, 259]),
        (Mark.BEGIN_SENTENCE, [258, 256, 259]),
        (Mark.END_SENTENCE, [258, 257, 259]),
    ],
)
def test_encode_word_spells_bytes(word: Word, expected: list[int]) -> None:
    assert encode_word(word, 50) == expected


@pytest.mark.parametrize(
    ("word", "max_chars", "expected"),
    [
        ("abcdef", 8, [258, 97, 98, 99, 100, 101, 102, 259]),
        ("abcdef", 7, [258, 97, 98, 99, 100, 101, 259]),
        ("a", 3, [258, 97, 259]),
        ("日", 4, [258, 230, 151, 259]),  # two of three bytes
        ("日", 5, [258, 230, 151, 165, 259]),
        ("é" * 10_000, 5, [258, 195, 169, 195, 259]),
        (Mark.END_SENTENCE, 3, [258, 257, 259]),
    ],
)
def test_encode_word_cuts_at_bytes(word: Word, max_chars: int, expected: list[int]) -> None:
    assert encode_word(word, max_chars) == expected


def test_encode_word_reads_48_bytes_of_a_published_model() -> None:
    word = "".join(chr(ord("a") + i % 26) for i in range(60))
    assert encode_word(word, 50) == [258, *word[:48].encode(), 259]
    assert encode_word("x" * 10_000, 50) == [258, *[120] * 48, 259]


@given(word=st.text(max_size=12), max_chars=st.integers(3, 20))
def test_encode_word_agrees_with_the_reference(word: str, max_chars: int) -> None:
    ids = encode_word(word, max_chars)
    assert [i + 1 for i in pad_spellings([ids], max_chars)[0]] == reference.spell(reference.word_bytes(word), max_chars)
    assert all(0 <= i < N_CHARACTERS for i in ids)


def test_pad_spellings_fills_up_with_padding() -> None:
    chars_UC = pad_spellings([[258, 259], [258, 97, 98, 259]], 5)
    assert chars_UC.dtype == numpy.int64
    assert_array_equal(chars_UC, [[258, 259, 260, 260, 260], [258, 97, 98, 259, 260]])


def test_pad_spellings_does_not_cut() -> None:
    with pytest.raises(ValueError, match="could not broadcast"):
        pad_spellings([[258, 97, 98, 259]], 3)


@pytest.mark.parametrize(
    ("word", "max_chars", "expected"),
    [
        ("", 50, [5, 6]),
        ("日b", 50, [5, 0, 2, 6]),
        ("日x", 50, [5, 0, 8, 6]),
        ("\ud800", 50, [5, 8, 6]),
        ("aaab", 5, [5, 1, 1, 1, 6]),  # characters, whatever their bytes
        ("日日日日", 5, [5, 0, 0, 0, 6]),
        ("<bos>", 50, [5, 8, 2, 8, 8, 8, 6]),
        (Mark.BEGIN_SENTENCE, 50, [5, 3, 6]),
        (Mark.END_SENTENCE, 3, [5, 4, 6]),
    ],
)
def test_encode_word_looks_characters_up(word: Word, max_chars: int, expected: list[int]) -> None:
    assert encode_word(word, max_chars, Alphabet("日ab")) == expected


def test_alphabets_number_the_marks_in_the_same_order() -> None:
    assert len(Alphabet()) == N_CHARACTERS == 261
    assert len(Alphabet("日ab")) == 3 + 6
    assert_array_equal(pad_spellings([[5, 6]], 4, Alphabet("日ab")), [[5, 6, 7, 7]])
