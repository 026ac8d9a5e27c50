"""A word as the ids of its UTF-8 bytes: the alphabet that every ELMo shares.

Ids 0 to 255 are bytes. Published implementations add 1 to every id, so that 0 can mean "no word"; here a batch has
no padding words, so an id is simply a row of the character embedding.
"""

from collections.abc import Sequence
from enum import IntEnum

import numpy
from numpy.typing import NDArray

N_CHARACTERS = 261
BEGIN_WORD, END_WORD, PADDING = 258, 259, 260


class Mark(IntEnum):
    """The words that a sentence starts and ends with. A literal "<S>" in a text is three bytes, never a mark."""

    BEGIN_SENTENCE = 256
    END_SENTENCE = 257


Word = str | Mark


def encode_word(word: Word, max_chars: int) -> list[int]:
    """Spell one word, between marks of its start and end, without padding.

    word (Word): A word, or a sentence mark.
    max_chars (int): The longest spelling, frame included: further bytes are cut off, in the middle of a character if
        it must be, as in the published models. Lone surrogates, which UTF-8 cannot express, are dropped.
    RETURNS (list[int]): Between 2 and max_chars ids.
    """
    if isinstance(word, Mark):
        return [BEGIN_WORD, word, END_WORD]
    return [BEGIN_WORD, *word.encode("utf8", "ignore")[: max_chars - 2], END_WORD]


def pad_spellings(spellings: Sequence[list[int]], length: int) -> NDArray[numpy.int64]:
    """Put spellings into one array.

    spellings (Sequence[list[int]]): The spellings, none longer than `length`.
    length (int): The number of columns.
    RETURNS (NDArray): chars_UC, filled up with PADDING.
    """
    chars_UC = numpy.full((len(spellings), length), PADDING, dtype="int64")
    for row, spelling in zip(chars_UC, spellings, strict=True):
        row[: len(spelling)] = spelling
    return chars_UC
