"""The tokens of a batch of sentences in one long array without padding."""

from typing import NamedTuple

import numpy
from numpy.typing import NDArray

Ints = NDArray[numpy.int64]


class Packing(NamedTuple):
    """The rows of a batch's tokens.

    Sentences are sorted by length, longest first. Step t of all sentences precedes step t + 1 of any. Both directions
    have the same packing, because a sentence is as long backwards.

    sizes (list[int]): The number of sentences that have a token at each step.
    rows_N (NDArray): The row of each step of each sentence, sentence by sentence.
    start_B (NDArray): The first step of each sentence in `rows_N`.
    """

    sizes: list[int]
    rows_N: Ints
    start_B: Ints

    @classmethod
    def from_lengths(cls, lengths: list[int]) -> "Packing":
        """Compute the packing of a batch.

        lengths (list[int]): The steps of each sentence, longest first.
        RETURNS (Packing): The packing.
        """
        length_B = numpy.asarray(lengths)
        if (numpy.diff(length_B) > 0).any() or length_B[-1] < 1:
            raise ValueError(f"Expected lengths of 1 or more, longest first, got {lengths!r:.80}.")
        step_T = numpy.arange(length_B[0])
        has_step_BT = length_B[:, None] > step_T
        size_T = has_step_BT.sum(axis=0)
        rows_BT = numpy.cumsum(size_T) - size_T + numpy.arange(len(lengths))[:, None]
        return cls(size_T.tolist(), rows_BT[has_step_BT], numpy.cumsum(length_B) - length_B)

    def rows_of_steps(self, counts: list[int], *, first: int) -> Ints:
        """Find the rows of some steps, the same number forwards and backwards.

        counts (list[int]): The number of steps of each sentence.
        first (int): The first of them.
        RETURNS (NDArray): rows_AN, sentence by sentence: from the first step to the last, and from the last to the first.
        """
        count_B = numpy.asarray(counts)
        before_N = numpy.arange(count_B.sum()) - numpy.repeat(numpy.cumsum(count_B) - count_B, count_B)
        after_N = numpy.repeat(count_B, count_B) - 1 - before_N
        steps_AN = numpy.repeat(self.start_B, count_B) + first + numpy.stack([before_N, after_N])
        rows_AN: Ints = self.rows_N[steps_AN]
        return rows_AN
