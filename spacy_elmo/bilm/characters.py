"""A word as the ids of its UTF-8 bytes. All ELMo models have the same ids.

Ids 0 to 255 are bytes. Published implementations add 1 to every id and use 0 for padding words. Here a batch has no
padding words, so an id is a row of the character embedding.
"""

from collections.abc import Sequence
from enum import IntEnum

import numpy
from numpy.typing import NDArray

N_CHARACTERS = 261
BEGIN_WORD, END_WORD, PADDING = 258, 259, 260


class Mark(IntEnum):
    """The marks at the start and end of a sentence. A literal "<S>" in a text is three bytes, not a mark."""

    BEGIN_SENTENCE = 256
    END_SENTENCE = 257


Word = str | Mark


def encode_word(word: Word, max_chars: int) -> list[int]:
    """List the ids of a word's bytes, between those of the start and end of a word, without padding.

    word (Word): A word, or a sentence mark. Lone surrogates, which UTF-8 cannot encode, are dropped.
    max_chars (int): The maximum number of ids. Further bytes are cut off, even within a character, as published models
        do it.
    RETURNS (list[int]): Between 2 and max_chars ids.
    """
    if isinstance(word, Mark):
        return [BEGIN_WORD, word, END_WORD]
    return [BEGIN_WORD, *word.encode("utf8", "ignore")[: max_chars - 2], END_WORD]


def pad_spellings(spellings: Sequence[list[int]], length: int) -> NDArray[numpy.int64]:
    """Put the ids of words into one array.

    spellings (Sequence[list[int]]): The ids of each word, as `encode_word` returns them, at most `length` for a word.
    length (int): The number of columns.
    RETURNS (NDArray): chars_UC, padded with PADDING.
    """
    chars_UC = numpy.full((len(spellings), length), PADDING, dtype="int64")
    for row, spelling in zip(chars_UC, spellings, strict=True):
        row[: len(spelling)] = spelling
    return chars_UC
