"""How the LSTM packs a batch of sentences, and computes its gates in blocks."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from spacy_elmo.bilm import lstm
from spacy_elmo.bilm.embed import run_batch
from spacy_elmo.bilm.lstm import Packing
from spacy_elmo.bilm.model import BiLM

from .models import SENTENCES, random_state


def test_packing_places_each_step_of_all_sentences_together() -> None:
    packing = Packing.from_lengths([4, 2, 1], torch.device("cpu"))
    assert packing.sizes == [3, 2, 1, 1]
    assert packing.rows_N.tolist() == [0, 3, 5, 6, 1, 4, 2]
    assert packing.mirror_N.tolist() == [6, 4, 2, 5, 1, 3, 0]


@given(st.lists(st.integers(1, 9), min_size=1, max_size=9))
def test_packing_mirrors_each_sentence_in_itself(lengths: list[int]) -> None:
    lengths = sorted(lengths, reverse=True)
    packing = Packing.from_lengths(lengths, torch.device("cpu"))
    assert sum(packing.sizes) == sum(lengths)
    assert sorted(packing.rows_N.tolist()) == list(range(sum(lengths)))
    for rows in torch.split(packing.rows_N, lengths):
        assert packing.mirror_N[rows].tolist() == rows.tolist()[::-1]


@pytest.mark.parametrize("lengths", [[1, 2], [3, 1, 2], [2, 0], [0]])
def test_packing_requires_the_longest_first(lengths: list[int]) -> None:
    with pytest.raises(ValueError, match=r"lengths of 1 or more, longest first, got \["):
        Packing.from_lengths(lengths, torch.device("cpu"))


@pytest.mark.parametrize("block_rows", [1, 3, 7])
def test_blocks_do_not_matter(bilm: BiLM, block_rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    start = random_state(bilm, len(SENTENCES))
    with torch.no_grad():
        before, state_before = run_batch(bilm, SENTENCES, start)
        monkeypatch.setattr(lstm, "BLOCK_ROWS", block_rows)
        after, state_after = run_batch(bilm, SENTENCES, start)
    for one, other in zip([*before, *state_before], [*after, *state_after], strict=True):
        assert_allclose(one.numpy(), other.numpy(), atol=1e-6)
