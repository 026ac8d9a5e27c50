"""A word as the ids of its characters: UTF-8 bytes, as in most ELMo models, or the code points of a table.

Ids 0 to 255 are bytes. Published implementations add 1 to every id and use 0 for padding words. Here a batch has no
padding words, so an id is a row of the character embedding. A table of characters takes the place of the bytes, and the
ids of the marks follow in the same order.
"""

from collections.abc import Sequence
from enum import IntEnum

import numpy
from numpy.typing import NDArray


class Mark(IntEnum):
    """The marks at the start and end of a sentence. A literal "<S>" in a text is three bytes, not a mark."""

    BEGIN_SENTENCE = 256
    END_SENTENCE = 257


Word = str | Mark


class Alphabet:
    """The ids of characters and marks.

    characters (str | None): The characters of a table, each once; None for UTF-8 bytes.
    """

    def __init__(self, characters: str | None = None) -> None:
        self.ids = None if characters is None else {character: i for i, character in enumerate(characters)}
        self.n_characters = 256 if self.ids is None else len(self.ids)
        # Behind the two marks of a sentence. Every byte is known.
        self.begin_word, self.end_word, self.padding, self.unknown = range(self.n_characters + 2, self.n_characters + 6)

    def __len__(self) -> int:
        return self.unknown + (self.ids is not None)


BYTES = Alphabet()
N_CHARACTERS = len(BYTES)


def encode_word(word: Word, max_chars: int, alphabet: Alphabet = BYTES) -> list[int]:
    """List the ids of a word's characters, between those of the start and end of a word, without padding.

    word (Word): A word, or a sentence mark. Lone surrogates, which UTF-8 cannot encode, are dropped.
    max_chars (int): The maximum number of ids. Further bytes are cut off, even within a character, as published models
        do it. With a table, further characters are.
    alphabet (Alphabet): The ids.
    RETURNS (list[int]): Between 2 and max_chars ids.
    """
    ids = alphabet.ids
    if isinstance(word, Mark):
        return [alphabet.begin_word, alphabet.n_characters + word - Mark.BEGIN_SENTENCE, alphabet.end_word]
    if ids is None:
        return [alphabet.begin_word, *word.encode("utf8", "ignore")[: max_chars - 2], alphabet.end_word]
    known = (ids.get(character, alphabet.unknown) for character in word[: max_chars - 2])
    return [alphabet.begin_word, *known, alphabet.end_word]


def pad_spellings(spellings: Sequence[list[int]], length: int, alphabet: Alphabet = BYTES) -> NDArray[numpy.int64]:
    """Put the ids of words into one array.

    spellings (Sequence[list[int]]): The ids of each word, as `encode_word` returns them, at most `length` for a word.
    length (int): The number of columns.
    alphabet (Alphabet): The ids.
    RETURNS (NDArray): chars_UC, padded with the id of padding.
    """
    chars_UC = numpy.full((len(spellings), length), alphabet.padding, dtype="int64")
    for row, spelling in zip(chars_UC, spellings, strict=True):
        row[: len(spelling)] = spelling
    return chars_UC
