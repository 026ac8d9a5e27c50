"""Batches of sentences, which do not change what a sentence's vectors are."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from torch import Tensor

from spacy_elmo.bilm import embed, prediction
from spacy_elmo.bilm.characters import Mark, Word
from spacy_elmo.bilm.config import InitialState
from spacy_elmo.bilm.embed import batch_by_length, embed_sentences, read_mark, run_batch
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.bilm.state import State

from .. import reference
from ..helpers import published_arrays, published_options, random_bilm
from .models import SENTENCES, VARIANTS, layers_of, random_state, read_arrays, sentences, words


@pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS.keys())
def test_embed_sentences_agrees_with_the_reference(changes: dict[str, Any], tmp_path: Path) -> None:
    options = published_options(**changes)
    arrays = published_arrays(options, seed=1)
    bilm = read_arrays(tmp_path, options, arrays)
    with torch.no_grad():
        results = embed_sentences(bilm, SENTENCES, max_batch_items=12)
    for layers, sentence in zip(results, SENTENCES, strict=True):
        expected, _ = reference.run_sentence(options, arrays, sentence)
        assert_allclose(layers.numpy(), expected, atol=1e-5)


def test_batches_are_full_and_not_too_full() -> None:
    lengths = [3, 40, 2, 7, 4, 3, 12, 3]
    batches = list(batch_by_length(lengths, 12))
    assert [[lengths[i] for i in batch] for batch in batches] == [[40], [12], [7, 4], [3, 3, 3, 2]]
    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))


def test_a_batch_of_many_blocks_agrees_with_single_sentences(bilm: BiLM, monkeypatch: pytest.MonkeyPatch) -> None:
    random = numpy.random.RandomState(0)
    batch = [[str(random.randint(30)) for _ in range(length)] for length in (70, 3, 150, 0, 90, 130, 149, 20)]
    monkeypatch.setattr(prediction, "BLOCK_GATES", 500 * 40)
    assert sum(map(len, batch)) > 500
    with torch.no_grad():
        results = embed_sentences(bilm, batch, max_batch_items=10_000)
    for layers, sentence in zip(results, batch, strict=True):
        assert_allclose(layers.numpy(), layers_of(bilm, sentence).numpy(), atol=1e-5)


def test_embed_sentences_without_sentences(bilm: BiLM) -> None:
    assert embed_sentences(bilm, [], max_batch_items=10) == []


def test_embed_sentences_of_no_words(bilm: BiLM) -> None:
    for layers in embed_sentences(bilm, [[], []], max_batch_items=10):
        assert layers.shape == (3, 0, 12)


@pytest.mark.parametrize("initial_state", ["stored", "zero"])
def test_with_a_known_state_after_the_mark_it_is_not_read(initial_state: InitialState) -> None:
    bilm = random_bilm(5)
    bilm.initial_hidden, bilm.initial_cell = (part[:, :, 0] for part in random_state(bilm, 1))
    with torch.no_grad():
        expected, _ = run_batch(bilm, SENTENCES, bilm.start(len(SENTENCES), initial_state))
        known = read_mark(bilm, initial_state)
        found = embed_sentences(bilm, SENTENCES, max_batch_items=12, after_mark=known)
        other = embed_sentences(bilm, SENTENCES, max_batch_items=12, after_mark=random_state(bilm, 1))
    assert_allclose(torch.cat(found, dim=1).numpy(), torch.cat(expected, dim=1).numpy(), atol=1e-6)
    assert (torch.cat(other, dim=1) - torch.cat(expected, dim=1))[1:].abs().max() > 1e-3


@pytest.mark.parametrize("max_batch_items", [1, 5, 9, 1_000])
def test_embed_sentences_bounds_its_batches(bilm: BiLM, max_batch_items: int, monkeypatch: pytest.MonkeyPatch) -> None:
    batches: list[list[list[str]]] = []

    def record(bilm: BiLM, batch: Any, state: State, **kwargs: Any) -> tuple[list[Tensor], State]:
        batches.append(list(batch))
        return run_batch(bilm, batch, state, **kwargs)

    monkeypatch.setattr(embed, "run_batch", record)
    embed_sentences(bilm, SENTENCES, max_batch_items=max_batch_items)
    for batch in batches:
        assert len(batch) == 1 or sum(len(sentence) + 2 for sentence in batch) <= max_batch_items
    not_empty = [sentence for sentence in SENTENCES if sentence]
    assert sorted(sentence for batch in batches for sentence in batch) == sorted(not_empty)
    if max_batch_items == 1_000:
        assert len(batches) == 1


def test_run_batch_reads_each_spelling_once(bilm: BiLM) -> None:
    read: list[Word] = []

    def record(words: Sequence[Word]) -> Tensor:
        read.extend(words)
        return bilm.encode_words(words)

    run_batch(bilm, [["a", "b", "a"], ["b", "<S>"]], bilm.start(2), encode_words=record)
    assert len(read) == 5
    assert set(read) == {Mark.BEGIN_SENTENCE, Mark.END_SENTENCE, "a", "b", "<S>"}


@given(batch=sentences, max_batch_items=st.integers(1, 40), data=st.data())
def test_batches_do_not_matter(bilm: BiLM, batch: list[list[str]], max_batch_items: int, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(batch))))
    with torch.no_grad():
        results = embed_sentences(bilm, [batch[i] for i in order], max_batch_items=max_batch_items)
    for i, layers in zip(order, results, strict=True):
        assert_allclose(layers.numpy(), layers_of(bilm, batch[i]).numpy(), atol=1e-5)


@given(batch=sentences)
def test_calling_twice_is_calling_once(bilm: BiLM, batch: list[list[str]]) -> None:
    state = random_state(bilm, len(batch))
    kept = State(*(part.clone() for part in state))
    weights = {name: tensor.clone() for name, tensor in bilm.state_dict().items()}
    with torch.no_grad():
        first, first_end = run_batch(bilm, batch, state)
        copies = [tensor.clone() for tensor in [*first, *first_end]]
        second, second_end = run_batch(bilm, batch, state)
    for one, copy, other in zip([*first, *first_end], copies, [*second, *second_end], strict=True):
        assert torch.equal(one, copy)
        assert torch.equal(one, other)
    for before, after in zip([*kept, *weights.values()], [*state, *bilm.state_dict().values()], strict=True):
        assert torch.equal(before, after)


@given(sentence=st.lists(words, min_size=1, max_size=8), word=words, data=st.data())
def test_a_direction_does_not_see_what_it_has_not_read(
    bilm: BiLM, sentence: list[str], word: str, data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(sentence) - 1))
    before = layers_of(bilm, sentence).numpy()
    after = layers_of(bilm, [*sentence[:at], word, *sentence[at + 1 :]]).numpy()
    assert_allclose(before[:, :at, :6], after[:, :at, :6], atol=1e-6)
    assert_allclose(before[:, at + 1 :, 6:], after[:, at + 1 :, 6:], atol=1e-6)


def test_a_direction_sees_what_it_has_read(bilm: BiLM) -> None:
    before = layers_of(bilm, ["a", "b", "c", "d", "e"]).numpy()
    difference = numpy.abs(layers_of(bilm, ["a", "b", "duck", "d", "e"]).numpy() - before)
    assert difference[:, 2].max(axis=-1).min() > 1e-3
    assert difference[1:, 3:, :6].max(axis=-1).min() > 1e-3
    assert difference[1:, :2, 6:].max(axis=-1).min() > 1e-3
    assert difference[0, [0, 1, 3, 4]].max() < 1e-6
