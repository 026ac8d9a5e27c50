"""The biLM against the reference, and its gradients."""

from pathlib import Path
from typing import Any, cast

import numpy
import pytest
import torch
from hypothesis import given
from numpy.testing import assert_allclose
from torch import Tensor

from spacy_elmo.bilm import model, prediction
from spacy_elmo.bilm.characters import Mark, Word, encode_word, pad_spellings
from spacy_elmo.bilm.config import InitialState
from spacy_elmo.bilm.embed import embed_sentences, run_batch
from spacy_elmo.bilm.model import BiLM

from .. import reference
from ..helpers import published_arrays, published_options, random_bilm
from .models import SENTENCES, VARIANTS, WORDS, layers_of, memory_of, random_state, read_arrays, sentences


@pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS.keys())
def test_run_batch_agrees_with_the_reference(changes: dict[str, Any], tmp_path: Path) -> None:
    options = published_options(**changes)
    arrays = published_arrays(options)
    bilm = read_arrays(tmp_path, options, arrays)
    start = random_state(bilm, len(SENTENCES))
    with torch.no_grad():
        layers, end = run_batch(bilm, SENTENCES, start)
    for i, sentence in enumerate(SENTENCES):
        expected, memory = reference.run_sentence(options, arrays, sentence, memory_of(start, i))
        assert layers[i].shape == expected.shape
        assert_allclose(layers[i].numpy(), expected, atol=1e-5)
        assert_allclose(end.hidden[:, :, i].numpy(), memory.hidden, atol=1e-5)
        assert_allclose(end.cell[:, :, i].numpy(), memory.cell, atol=1e-5)


@pytest.mark.parametrize(
    ("part", "name", "value"),
    [
        ("char_cnn", "activation", "tanh"),
        ("char_cnn", "max_characters_per_token", 10),
        ("char_cnn", "n_highway", 0),
        ("lstm", "cell_clip", None),
        ("lstm", "proj_clip", None),
        ("lstm", "use_skip_connections", False),
    ],
)
def test_options_make_a_difference_that_the_reference_would_notice(part: str, name: str, value: Any) -> None:
    options, changed = published_options(), published_options()
    arrays = published_arrays(options)
    changed[part][name] = value
    before, _ = reference.run_sentence(options, arrays, WORDS)
    after, _ = reference.run_sentence(changed, arrays, WORDS)
    assert numpy.abs(before - after).max() > 0.01


@pytest.mark.parametrize("max_chars", [3, 10, 50])
def test_encode_words_pads_as_if_to_max_chars(max_chars: int) -> None:
    bilm = random_bilm(max_chars=max_chars, activation="tanh")
    chars_UC = pad_spellings([encode_word(word, max_chars) for word in WORDS], max_chars)
    with torch.no_grad():
        expected = bilm.char_cnn(torch.as_tensor(chars_UC))
        assert_allclose(bilm.encode_words(WORDS).numpy(), expected.numpy(), atol=1e-6)
        for i, word in enumerate(WORDS):
            assert_allclose(bilm.encode_words([word])[0].numpy(), expected[i].numpy(), atol=1e-6)


def test_encode_words_keeps_the_order_over_many_batches(bilm: BiLM, monkeypatch: pytest.MonkeyPatch) -> None:
    with torch.no_grad():
        expected = torch.cat([bilm.encode_words([word]) for word in WORDS])
        monkeypatch.setattr(model, "WORDS_AT_ONCE", 2)
        assert_allclose(bilm.encode_words(WORDS).numpy(), expected.numpy(), atol=1e-6)


def test_words_differ_where_their_bytes_do(bilm: BiLM) -> None:
    marks = [Mark.BEGIN_SENTENCE, Mark.END_SENTENCE]
    different: list[Word] = [*marks, "", "a", "b", "ab", "ba", " ", "<S>", "</S>", "naive", "naïve"]
    with torch.no_grad():
        vectors = bilm.encode_words(different).numpy()
    for i, vector in enumerate(vectors):
        distances = numpy.abs(vectors - vector).max(axis=1)
        assert distances[i] == 0
        assert numpy.delete(distances, i).min() > 1e-3


def test_bytes_beyond_max_chars_are_not_read(bilm: BiLM) -> None:
    room = bilm.config.max_chars - 2
    with torch.no_grad():
        vectors = bilm.encode_words(["x" * room, "x" * room + "y", "x" * (room - 1) + "y"]).numpy()
    assert_allclose(vectors[0], vectors[1], atol=1e-6)
    assert numpy.abs(vectors[0] - vectors[2]).max() > 1e-3


def test_initialize_is_the_same_on_every_platform() -> None:
    bilm = random_bilm(0)
    assert_allclose(
        bilm.char_cnn.embedding.weight[0].tolist(),
        [0.882026173, 0.200078604, 0.489368992, 1.1204466],  # numpy's MT19937, divided by the root of four
        rtol=1e-6,
    )
    for one, same, other in zip(
        bilm.parameters(), random_bilm(0).parameters(), random_bilm(1).parameters(), strict=True
    ):
        assert torch.equal(one, same)
        assert not torch.isclose(one, other).any()


def test_layer_0_is_the_token_vector_twice(bilm: BiLM) -> None:
    with torch.no_grad():
        vectors = bilm.encode_words(["a", "duck"]).numpy()
    assert_allclose(layers_of(bilm, ["a", "duck"])[0].numpy(), numpy.concatenate([vectors, vectors], 1), atol=1e-6)


def test_start_refuses_unknown_states(bilm: BiLM) -> None:
    with pytest.raises(ValueError, match=r"initial_state must be one of \('stored', 'zero'\), got 'warm'"):
        bilm.start(1, cast(InitialState, "warm"))


def test_start_gives_each_sentence_the_stored_state() -> None:
    bilm = random_bilm()
    hidden, cell = torch.rand(2, 2, 6), torch.rand(2, 2, 10)
    assert all(not part.any() for part in bilm.start(3, "stored"))
    bilm.initial_hidden, bilm.initial_cell = hidden, cell
    stored, zero = bilm.start(3, "stored"), bilm.start(3, "zero")
    assert stored.hidden.shape == zero.hidden.shape == (2, 2, 3, 6)
    assert stored.cell.shape == zero.cell.shape == (2, 2, 3, 10)
    assert not zero.hidden.any()
    assert not zero.cell.any()
    for i in range(3):
        assert torch.equal(stored.hidden[:, :, i], hidden)
        assert torch.equal(stored.cell[:, :, i], cell)


def test_carried_state_changes_the_next_sentence_as_in_the_reference(tmp_path: Path) -> None:
    options = published_options()
    arrays = published_arrays(options)
    bilm = read_arrays(tmp_path, options, arrays)
    first, second = [["a", "duck"], ["sat"]], [["b"], ["c", "d", "e"]]
    with torch.no_grad():
        _, state = run_batch(bilm, first, bilm.start(2))
        layers, _ = run_batch(bilm, second, state)
    for i in range(2):
        _, memory = reference.run_sentence(options, arrays, first[i])
        expected, _ = reference.run_sentence(options, arrays, second[i], memory)
        assert_allclose(layers[i].numpy(), expected, atol=1e-5)
        assert numpy.abs(layers_of(bilm, second[i]).numpy() - expected).max() > 0.01


@given(batch=sentences)
def test_training_computes_the_same_values(bilm: BiLM, batch: list[list[str]]) -> None:
    state = random_state(bilm, len(batch))
    trained, trained_end = run_batch(bilm, batch, state)
    with torch.no_grad():
        run, run_end = run_batch(bilm, batch, state)
    for one, other in zip([*trained, *trained_end], [*run, *run_end], strict=True):
        assert one.requires_grad
        assert not other.requires_grad
        assert_allclose(one.detach().numpy(), other.numpy(), atol=1e-6)


@pytest.mark.parametrize("changes", [{}, {"skip_connections": False, "highways": 2, "depth": 3}, {"cells": 6}])
def test_gradients_agree_with_finite_differences(changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prediction, "BLOCK_GATES", 4 * 40)
    bilm = random_bilm(activation="tanh", **changes).double()
    batch = [["a", "duck"], [], ["a", "naïve", "b"]]
    generator = torch.Generator().manual_seed(0)
    state = random_state(bilm, len(batch))
    inputs = {**dict(bilm.named_parameters()), "hidden": state.hidden, "cell": state.cell}
    weights: list[Tensor] = []

    def loss() -> Tensor:
        layers, end = run_batch(bilm, batch, state)
        outputs = [*layers, *end]
        if not weights:
            weights.extend(torch.randn(y.shape, generator=generator, dtype=torch.float64) for y in outputs)
        return torch.stack([(y * w).sum() for y, w in zip(outputs, weights, strict=True)]).sum()

    for tensor in inputs.values():
        tensor.requires_grad_()
    torch.autograd.backward(loss())
    with torch.no_grad():
        for name, tensor in inputs.items():
            assert tensor.grad is not None, name
            direction = torch.randn(tensor.shape, generator=generator, dtype=torch.float64)
            values = []
            for step in (1e-6, -2e-6):
                tensor += step * direction
                values.append(float(loss()))
            tensor += 1e-6 * direction
            slope = (values[0] - values[1]) / 2e-6
            assert slope != 0, name
            assert float((tensor.grad * direction).sum()) == pytest.approx(slope, rel=1e-5, abs=1e-7), name


def test_words_have_few_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model, "WORDS_AT_ONCE", 4)
    bilm = random_bilm(max_chars=50)  # its widest filter sees 3 characters
    shapes = []
    bilm.char_cnn.register_forward_pre_hook(lambda module, arguments: shapes.append(tuple(arguments[0].shape)))
    words: list[Word] = ["x" * n for n in range(1, 49)]
    with torch.no_grad():
        for n_long in range(1, 49):
            bilm.encode_words([*words[:n_long], *words[:1] * (-n_long % 4)])
        assert {n_words for n_words, _ in shapes} == {4}
        assert {length for _, length in shapes} <= {6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 50}
        shapes.clear()
        bilm.encode_words(words[:6])  # the rest is that of the shortest words
        assert shapes == [(2, 7), (4, 12)]
        alone = torch.cat([bilm.encode_words([word]) for word in words])
        assert_allclose(bilm.encode_words(words).numpy(), alone.numpy(), atol=1e-6)


def test_words_are_read_in_their_normal_form() -> None:
    words: list[Word] = ["ﬁnd", "e\u0301", "ｅ", "①", Mark.BEGIN_SENTENCE]
    normal: list[Word] = ["find", "é", "e", "1", Mark.BEGIN_SENTENCE]
    with torch.no_grad():
        expected = random_bilm().encode_words(normal)
        assert torch.equal(random_bilm(normalize="NFKC").encode_words(words), expected)
        assert not torch.allclose(random_bilm(normalize="NFC").encode_words(words), expected)
        assert_allclose(random_bilm(normalize="NFC").encode_words(words[1:2]), expected[1:2], atol=1e-6)
        assert not torch.allclose(random_bilm().encode_words(words), expected)


@pytest.mark.parametrize(
    "changes",
    [
        {"characters": "abcdu日k"},
        {"words": ["a", "duck"], "word_dim": 3},
        {"words": ["a", "duck"], "word_dim": 3, "char_dim": 0, "filters": [], "highways": 0},
        {"always_project": True, "projection": 18, "cells": 18},
    ],
)
def test_tables_are_trained(changes: dict[str, Any]) -> None:
    bilm = random_bilm(**changes)
    layers = embed_sentences(bilm, [["a", "duck", "unknown", "日"]], max_batch_items=100)[0]
    layers.square().sum().backward()  # type: ignore[no-untyped-call]
    for name, parameter in bilm.named_parameters():
        assert parameter.grad is not None, name
        assert float(parameter.grad.abs().max()) > 0, name
    assert bilm.any_weight.dtype == torch.float32
