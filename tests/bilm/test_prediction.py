"""Prediction gives the same layers however it is computed: in blocks, by one thread or two, with gradients or without."""

from functools import partial
from typing import Any

import pytest
import torch
from numpy.testing import assert_allclose

from spacy_elmo.bilm import char_cnn, prediction, recurrence
from spacy_elmo.bilm.compiled import compiled
from spacy_elmo.bilm.embed import embed_sentences, run_batch
from spacy_elmo.bilm.lstm import BiLSTM
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.bilm.state import State

from ..helpers import small_config
from .models import SENTENCES, layers_of, random_state


@pytest.mark.parametrize("block_gates", [1, 3 * 40, 7 * 40])
def test_blocks_do_not_matter(bilm: BiLM, block_gates: int, monkeypatch: pytest.MonkeyPatch) -> None:
    start = random_state(bilm, len(SENTENCES))
    with torch.no_grad():
        before, state_before = run_batch(bilm, SENTENCES, start)
        monkeypatch.setattr(prediction, "BLOCK_GATES", block_gates)
        after, state_after = run_batch(bilm, SENTENCES, start)
    for one, other in zip([*before, *state_before], [*after, *state_after], strict=True):
        assert_allclose(one.numpy(), other.numpy(), atol=1e-6)


@pytest.mark.parametrize("changes", [{}, {"cells": 6}, {"depth": 3, "skip_connections": False}, {"cell_clip": None}])
def test_prediction_agrees_with_training(changes: dict[str, Any]) -> None:
    config = small_config(**changes)
    lstm = BiLSTM(config).double()
    generator = torch.Generator().manual_seed(0)
    random = partial(torch.randn, generator=generator, dtype=torch.float64)
    with torch.no_grad():
        for parameter in lstm.parameters():
            parameter.copy_(random(parameter.shape) / 2)
    sizes = [4, 4, 2, 1, 1]
    types_UP, types_AN = random(5, config.projection), torch.randint(0, 5, (2, 12), generator=generator)
    state = State(random(config.depth, 2, 4, config.projection), random(config.depth, 2, 4, config.cells))
    outputs, end = lstm(types_UP, types_AN, sizes, state)
    with torch.no_grad():
        layers, predicted_end = lstm.predict(types_UP, types_AN, sizes, state)
    expected = [types_UP[types_AN], *outputs, *end]
    for one, other in zip(expected, [*layers, *predicted_end], strict=True):
        torch.testing.assert_close(one.detach(), other, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_directions_side_by_side_give_the_same(bilm: BiLM, n_threads: int, restored_threads: None) -> None:
    start = random_state(bilm, len(SENTENCES))
    with torch.no_grad():
        before, state_before = run_batch(bilm, SENTENCES, start)
        torch.set_num_threads(n_threads)
        after, state_after = run_batch(bilm, SENTENCES, start)
    for one, other in zip([*before, *state_before], [*after, *state_after], strict=True):
        assert_allclose(one.numpy(), other.numpy(), atol=1e-6)


def test_directions_in_turn_give_the_same(bilm: BiLM, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(tasks: Any) -> None:
        raise AssertionError("the directions should take turns")

    start = random_state(bilm, len(SENTENCES))
    with torch.no_grad():
        before, state_before = run_batch(bilm, SENTENCES, start)
        monkeypatch.setattr(prediction, "FEW_ROWS", 100)
        monkeypatch.setattr(prediction, "MANY_WEIGHTS", 1)
        monkeypatch.setattr(prediction, "run_side_by_side", fail)
        after, state_after = run_batch(bilm, SENTENCES, start)
    for one, other in zip([*before, *state_before], [*after, *state_after], strict=True):
        assert_allclose(one.numpy(), other.numpy(), atol=1e-6)


def test_the_mark_at_the_end_changes_no_word(bilm: BiLM) -> None:
    with torch.no_grad():
        marked, _ = run_batch(bilm, SENTENCES, bilm.start(len(SENTENCES)))
        without = embed_sentences(bilm, SENTENCES, max_batch_items=1_000)
    for one, other, sentence in zip(marked, without, SENTENCES, strict=True):
        assert_allclose(one.numpy(), other.numpy(), atol=1e-6)
        assert_allclose(one.numpy(), layers_of(bilm, sentence).numpy(), atol=1e-6)


@pytest.mark.parametrize(
    "function",
    [
        prediction._run_direction,
        recurrence._run,
        recurrence._differentiate,
        char_cnn._run_filters,
        char_cnn._differentiate_filters,
    ],
)
def test_torchscript_runs_it(function: Any) -> None:
    assert isinstance(compiled(function), torch.jit.ScriptFunction)
    assert compiled(function) is compiled(function)


def test_without_torchscript_python_gives_the_same(bilm: BiLM, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(function: Any) -> None:
        raise RuntimeError("no TorchScript here")

    start = random_state(bilm, len(SENTENCES))
    with torch.no_grad():
        before, state_before = run_batch(bilm, SENTENCES, start)
        monkeypatch.setattr("spacy_elmo.bilm.compiled._functions", {})
        monkeypatch.setattr(torch.jit, "script", fail)
        assert compiled(prediction._run_direction) is prediction._run_direction
        after, state_after = run_batch(bilm, SENTENCES, start)
    for one, other in zip([*before, *state_before], [*after, *state_after], strict=True):
        assert_allclose(one.numpy(), other.numpy(), atol=1e-6)
