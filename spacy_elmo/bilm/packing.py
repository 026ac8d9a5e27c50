"""The tokens of a batch of sentences in one long array without padding."""

from itertools import accumulate
from typing import NamedTuple


class Packing(NamedTuple):
    """The rows of a batch's tokens.

    Sentences are sorted by length, longest first. Step t of all sentences precedes step t + 1 of any. Both directions
    have the same packing, because a sentence is as long backwards.

    sizes (list[int]): The number of sentences that have a token at each step.
    rows (list[list[int]]): For each sentence, the row of each of its steps.
    """

    sizes: list[int]
    rows: list[list[int]]

    @classmethod
    def from_lengths(cls, lengths: list[int]) -> "Packing":
        """Compute the packing of a batch. For a short sentence, lists are several times faster than arrays.

        lengths (list[int]): The steps of each sentence, longest first.
        RETURNS (Packing): The packing.
        """
        if lengths[-1] < 1 or lengths != sorted(lengths, reverse=True):
            raise ValueError(f"Expected lengths of 1 or more, longest first, got {lengths!r:.80}.")
        sizes: list[int] = []
        for n_sentences in range(len(lengths), 0, -1):
            sizes += [n_sentences] * (lengths[n_sentences - 1] - len(sizes))
        first_rows = [0, *accumulate(sizes)]
        return cls(sizes, [[row + i for row in first_rows[:length]] for i, length in enumerate(lengths)])

    def rows_of_steps(self, counts: list[int], *, first: int) -> tuple[list[int], list[int]]:
        """Find the rows of some steps, the same number forwards and backwards.

        counts (list[int]): The number of steps of each sentence.
        first (int): The first of them.
        RETURNS (tuple): The rows, sentence by sentence: from the first step to the last, and from the last to the first.
        """
        forwards: list[int] = []
        backwards: list[int] = []
        for rows, count in zip(self.rows, counts, strict=True):
            found = rows[first : first + count]
            forwards += found
            backwards += reversed(found)
        return forwards, backwards
