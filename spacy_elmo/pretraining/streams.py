"""Batches of a corpus: rows that are read side by side, a few tokens at a time, for both directions.

Each row reads the whole corpus in a circle, and the rows start at equal distances. So every batch has text from all parts of
the corpus, nothing is shuffled or held in memory, and the position of a run in its corpus is two numbers per row.

Shape suffixes: A direction (0 forward, 1 backward), T step, B row, N = T * B token, U word type.
"""

import mmap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy
from numpy.typing import NDArray

from ..bilm.characters import Mark, Word
from .vocabulary import Vocabulary

NO_TARGET = -1

Ints = NDArray[numpy.int64]


class Batch(NamedTuple):
    """The tokens of one training step: position by position, all rows of a position together.

    types (list[Word]): The different words.
    types_AN (Ints): The type of each token, in the order in which each direction reads.
    targets_AN (Ints): The id of the word to predict there, or NO_TARGET at the end of a sentence.
    starts_TB (NDArray[bool]): Whether a sentence starts there, in both directions: they read the same sentences, each from
        its own end.
    n_words (int): The number of tokens that are words and not marks.
    """

    types: list[Word]
    types_AN: Ints
    targets_AN: Ints
    starts_TB: NDArray[numpy.bool_]
    n_words: int


class Streams:
    """Rows of a corpus, with their positions.

    path (Path): Tokenized sentences, one per line.
    vocabulary (Vocabulary): The words that are predicted.
    n_rows (int): The number of rows, over all processes.
    rows (range): The rows of this process.
    unroll (int): Tokens of each row in a batch.
    with_end (bool): Whether the mark at the end of a sentence is read as well, though nothing is predicted from it. It must
        be if the next sentence starts from the state of this one.
    """

    def __init__(
        self, path: Path, vocabulary: Vocabulary, *, n_rows: int, rows: range, unroll: int, with_end: bool
    ) -> None:
        self._vocabulary = vocabulary
        self._unroll = unroll
        self._with_end = with_end
        with path.open("rb") as file:
            self._text = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        size = len(self._text)
        # For each row, the first byte of its current sentence, and how many of the sentence's tokens were read.
        self._positions = [(self._line_start(size * row // n_rows), 0) for row in rows]
        self._sentences: list[_TrainingSentence | None] = [None] * len(rows)

    @property
    def marks_in_a_sentence(self) -> int:
        """RETURNS (int): Tokens of a sentence that are not words."""
        return 2 if self._with_end else 1

    @property
    def positions(self) -> Ints:
        """RETURNS (Ints): The position of each row, (B, 2): the first byte of its sentence, and how many of the sentence's
        tokens were read."""
        return numpy.asarray(self._positions, dtype="int64")

    @positions.setter
    def positions(self, positions: Ints) -> None:
        if positions.shape != (len(self._positions), 2):
            raise ValueError(f"Expected the positions of {len(self._positions)} rows, got {positions.shape}.")
        self._positions = [(int(start), int(n_read)) for start, n_read in positions]
        self._sentences = [None] * len(self._positions)

    def __iter__(self) -> Iterator[Batch]:
        while True:
            yield self._next_batch()

    def _next_batch(self) -> Batch:
        unroll, n_rows = self._unroll, len(self._positions)
        types: dict[Word, int] = {}
        types_ATB = numpy.empty((2, unroll, n_rows), dtype="int64")
        targets_ATB = numpy.empty_like(types_ATB)
        starts_TB = numpy.zeros((unroll, n_rows), dtype=bool)
        n_words = 0
        for row in range(n_rows):
            step = 0
            while step < unroll:
                start, n_read = self._positions[row]
                sentence = self._sentences[row] or self._read(start)
                stop = min(n_read + unroll - step, sentence.length)
                steps = slice(step, step + stop - n_read)
                for direction in (0, 1):
                    words = sentence.inputs[direction][n_read:stop]
                    types_ATB[direction, steps, row] = [types.setdefault(word, len(types)) for word in words]
                    targets_ATB[direction, steps, row] = sentence.targets[direction][n_read:stop]
                starts_TB[step, row] = n_read == 0
                n_words += max(0, min(stop, sentence.n_words + 1) - max(n_read, 1))
                step = steps.stop
                if stop == sentence.length:
                    self._positions[row], self._sentences[row] = (sentence.next_start, 0), None
                else:
                    self._positions[row], self._sentences[row] = (start, stop), sentence
        return Batch(list(types), types_ATB.reshape(2, -1), targets_ATB.reshape(2, -1), starts_TB, n_words)

    def _read(self, start: int) -> "_TrainingSentence":
        end = self._text.find(b"\n", start)
        words = self._text[start:end].decode("utf8").split(" ")
        next_start = 0 if end + 1 == len(self._text) else end + 1
        return _TrainingSentence(words, self._vocabulary, self._with_end, next_start)

    def _line_start(self, position: int) -> int:
        """Find the start of the first line at or after a position, or of the first line of all if there is none."""
        start = 0 if position == 0 else self._text.find(b"\n", position - 1) + 1
        return 0 if start == len(self._text) else start


class _TrainingSentence:
    """The inputs and targets of a sentence in both directions: forward up to its end, backward up to its start."""

    def __init__(self, words: Sequence[str], vocabulary: Vocabulary, with_end: bool, next_start: int) -> None:
        ids = [vocabulary.id_of(word) for word in words]
        begin, end = [Mark.BEGIN_SENTENCE], [Mark.END_SENTENCE]
        self.inputs: tuple[list[Word], list[Word]] = ([*begin, *words], [*end, *reversed(words)])
        self.targets = ([*ids, vocabulary.END], [*reversed(ids), vocabulary.BEGIN])
        if with_end:
            for inputs, targets, mark in zip(self.inputs, self.targets, (end, begin), strict=True):
                inputs.extend(mark)
                targets.append(NO_TARGET)
        self.n_words, self.length = len(words), len(self.targets[0])
        self.next_start = next_start
