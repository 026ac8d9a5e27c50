"""How a batch of sentences is packed without padding."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_elmo.bilm.packing import Packing


def test_packing_places_each_step_of_all_sentences_together() -> None:
    packing = Packing.from_lengths([4, 2, 1])
    assert packing.sizes == [3, 2, 1, 1]
    assert packing.rows == [[0, 3, 5, 6], [1, 4], [2]]


def test_rows_of_steps_are_given_forwards_and_backwards() -> None:
    packing = Packing.from_lengths([4, 2, 1])
    assert packing.rows_of_steps([3, 1, 0], first=1) == ([3, 5, 6, 4], [6, 5, 3, 4])


@given(st.lists(st.integers(1, 9), min_size=1, max_size=9))
def test_packing_gives_each_step_a_row_of_its_own(lengths: list[int]) -> None:
    lengths = sorted(lengths, reverse=True)
    packing = Packing.from_lengths(lengths)
    assert sum(packing.sizes) == sum(lengths)
    forwards, backwards = packing.rows_of_steps(lengths, first=0)
    assert sorted(forwards) == list(range(sum(lengths)))
    assert forwards == [row for rows in packing.rows for row in rows]
    assert backwards == [row for rows in packing.rows for row in reversed(rows)]


@pytest.mark.parametrize("lengths", [[1, 2], [3, 1, 2], [2, 0], [0]])
def test_packing_requires_the_longest_first(lengths: list[int]) -> None:
    with pytest.raises(ValueError, match=r"lengths of 1 or more, longest first, got \["):
        Packing.from_lengths(lengths)
