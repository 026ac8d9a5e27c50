"""The state that a biLM settles into."""

import numpy
import pytest
import torch
from numpy.testing import assert_allclose

from spacy_elmo.bilm import initial_state
from spacy_elmo.bilm.embed import embed_sentences, run_batch
from spacy_elmo.bilm.initial_state import BURN_IN, STREAMS, find_initial_state
from spacy_elmo.bilm.model import BiLM

from ..helpers import random_bilm


def random_text(n_sentences: int, seed: int = 0) -> list[list[str]]:
    """Make sentences of up to nine words of a small vocabulary."""
    random = numpy.random.RandomState(seed)
    return [[f"word{random.randint(20)}" for _ in range(random.randint(1, 10))] for _ in range(n_sentences)]


def stored_state(bilm: BiLM) -> tuple[torch.Tensor, torch.Tensor]:
    assert bilm.initial_hidden is not None
    assert bilm.initial_cell is not None
    return bilm.initial_hidden, bilm.initial_cell


def test_find_initial_state_needs_a_sentence() -> None:
    with pytest.raises(ValueError, match="There is no sentence in the text to find an initial state from"):
        find_initial_state(random_bilm(), [])


def test_find_initial_state_of_one_sentence_is_the_state_after_it() -> None:
    bilm = random_bilm()
    assert find_initial_state(bilm, [["a", "duck"]]) == (1, False)
    hidden, cell = stored_state(bilm)
    with torch.no_grad():
        _, state = run_batch(bilm, [["a", "duck"]], bilm.start(1, "zero"))
    assert hidden.shape == (2, 2, 6)
    assert cell.shape == (2, 2, 10)
    assert_allclose(hidden.numpy(), state.hidden[:, :, 0].numpy(), atol=1e-6)
    assert_allclose(cell.numpy(), state.cell[:, :, 0].numpy(), atol=1e-6)


def test_find_initial_state_averages_after_the_burn_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(initial_state, "STREAMS", 2)
    monkeypatch.setattr(initial_state, "TOLERANCE", 0.0)
    bilm = random_bilm()
    text = random_text(2 * (BURN_IN + 3))
    half = len(text) // 2
    states = []
    with torch.no_grad():
        for stream in (text[:half], text[half:]):
            state = bilm.start(1, "zero")
            for i, sentence in enumerate(stream):
                _, state = run_batch(bilm, [sentence], state)
                if i >= BURN_IN:
                    states.append(state)
    assert find_initial_state(bilm, text)[0] == len(text)
    hidden, cell = stored_state(bilm)
    assert_allclose(hidden.numpy(), torch.cat([state.hidden for state in states], 2).mean(2).numpy(), atol=1e-6)
    assert_allclose(cell.numpy(), torch.cat([state.cell for state in states], 2).mean(2).numpy(), atol=1e-6)


def test_find_initial_state_is_the_same_each_time_and_forgets_the_last() -> None:
    bilm, other = random_bilm(), random_bilm()
    text = random_text(200)
    find_initial_state(other, random_text(30, seed=1))
    first = stored_state(other)
    assert find_initial_state(bilm, text) == find_initial_state(other, text)
    for one, same, before in zip(stored_state(bilm), stored_state(other), first, strict=True):
        assert torch.equal(one, same)
        assert not torch.allclose(one, before, atol=1e-3)


def test_find_initial_state_stops_when_it_has_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    text = random_text(3_000)
    n_read, settled = find_initial_state(random_bilm(), text)
    assert settled
    assert STREAMS * (BURN_IN + 1) < n_read < len(text) // 2
    monkeypatch.setattr(initial_state, "TOLERANCE", 0.001)
    assert n_read < find_initial_state(random_bilm(), text)[0]


def test_find_initial_state_depends_little_on_the_half_of_a_text() -> None:
    text = random_text(2_000)
    one, other = random_bilm(), random_bilm()
    find_initial_state(one, text[:1_000])
    find_initial_state(other, text[1_000:])
    for first, second in zip(stored_state(one), stored_state(other), strict=True):
        assert float((first - second).norm() / first.norm()) < 0.1
        assert not torch.equal(first, second)


def test_stored_state_changes_the_vectors_unless_it_is_ignored() -> None:
    bilm = random_bilm()
    sentences = [["a", "duck"], ["sat"], []]
    before = embed_sentences(bilm, sentences, max_batch_items=100)
    find_initial_state(bilm, random_text(100))
    stored = embed_sentences(bilm, sentences, max_batch_items=100)
    zero = embed_sentences(bilm, sentences, max_batch_items=100, initial_state="zero")
    state = bilm.start(3, "stored")
    carried, _ = run_batch(bilm, sentences, state)
    for i in range(2):
        assert torch.equal(before[i], zero[i])
        assert_allclose(stored[i].detach().numpy(), carried[i].detach().numpy(), atol=1e-6)
        assert torch.equal(before[i][0], stored[i][0])  # a token vector has no state
        # Each direction of each layer starts from its own.
        for half in (slice(None, 6), slice(6, None)):
            assert float((before[i] - stored[i])[1:, :, half].abs().amax(dim=(1, 2)).min().detach()) > 1e-3
    assert stored[2].shape == (3, 0, 12)


def test_find_initial_state_leaves_no_gradient() -> None:
    bilm = random_bilm()
    find_initial_state(bilm, random_text(20))
    assert not any(tensor.requires_grad for tensor in stored_state(bilm))
