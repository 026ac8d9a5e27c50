"""The rows of words in a table of word embeddings. The marks of a sentence and unknown words follow the words."""

from collections.abc import Sequence

from .characters import Mark, Word

N_EXTRA_ROWS = 3


class WordTable:
    """Finds words in a table.

    words (Sequence[str]): The words, in the order of the table.
    """

    def __init__(self, words: Sequence[str]) -> None:
        self._row_by_word = {word: row for row, word in enumerate(words)}
        self._first_mark, self._unknown = len(words), len(words) + 2

    def find_rows(self, words: Sequence[Word], max_chars: int) -> list[int]:
        """Find the rows of words.

        words (Sequence[Word]): The words.
        max_chars (int): The maximum number of characters of a word, two marks included. ELMoForManyLangs cuts words to it
            before it looks them up.
        RETURNS (list[int]): The row of each word.
        """
        return [
            self._first_mark + word - Mark.BEGIN_SENTENCE
            if isinstance(word, Mark)
            else self._row_by_word.get(word[: max_chars - 2], self._unknown)
            for word in words
        ]
