"""How a batch of sentences is packed without padding."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_elmo.bilm.packing import Packing


def test_packing_places_each_step_of_all_sentences_together() -> None:
    packing = Packing.from_lengths([4, 2, 1])
    assert packing.sizes == [3, 2, 1, 1]
    assert packing.rows_N.tolist() == [0, 3, 5, 6, 1, 4, 2]
    assert packing.start_B.tolist() == [0, 4, 6]


def test_rows_of_steps_are_given_forwards_and_backwards() -> None:
    packing = Packing.from_lengths([4, 2, 1])
    assert packing.rows_of_steps([3, 1, 0], first=1).tolist() == [[3, 5, 6, 4], [6, 5, 3, 4]]


@given(st.lists(st.integers(1, 9), min_size=1, max_size=9))
def test_packing_gives_each_step_a_row_of_its_own(lengths: list[int]) -> None:
    lengths = sorted(lengths, reverse=True)
    packing = Packing.from_lengths(lengths)
    assert sum(packing.sizes) == sum(lengths)
    assert sorted(packing.rows_N.tolist()) == list(range(sum(lengths)))
    forwards, backwards = packing.rows_of_steps(lengths, first=0).tolist()
    assert forwards == packing.rows_N.tolist()
    for start, length in zip(packing.start_B, lengths, strict=True):
        assert backwards[start : start + length] == forwards[start : start + length][::-1]


@pytest.mark.parametrize("lengths", [[1, 2], [3, 1, 2], [2, 0], [0]])
def test_packing_requires_the_longest_first(lengths: list[int]) -> None:
    with pytest.raises(ValueError, match=r"lengths of 1 or more, longest first, got \["):
        Packing.from_lengths(lengths)
