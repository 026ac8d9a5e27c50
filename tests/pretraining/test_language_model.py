"""The loss of a batch against the same tokens read one at a time, and what becomes of the state."""

import math
from itertools import islice
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from numpy.testing import assert_allclose
from torch import Tensor

from spacy_elmo.bilm.characters import Mark, Word
from spacy_elmo.bilm.lstm import Dropout
from spacy_elmo.bilm.state import State
from spacy_elmo.formats import bilm_tf
from spacy_elmo.pretraining.language_model import LanguageModel
from spacy_elmo.pretraining.perplexity import measure_likelihood
from spacy_elmo.pretraining.softmax import Candidates, Softmax, all_words
from spacy_elmo.pretraining.streams import NO_TARGET, Batch, Streams
from spacy_elmo.pretraining.vocabulary import count_words

from .. import reference
from ..helpers import published_arrays, published_options, write_published
from ..reference import Array

TEXT = [["the", "duck", "sat"], ["naïve", "duck"], ["the"], ["a", "the", "duck", "日本"], ["sat", "a"]]
VOCABULARY = count_words(TEXT, max_size=8)  # some words are unknown
N_WORDS = len(VOCABULARY)
SAMPLED = Candidates(numpy.asarray([3, 0, 6]), numpy.log(numpy.linspace(0.9, 0.2, N_WORDS)).astype("float32"))

VARIANTS: dict[str, dict[str, Any]] = {
    "small": {},
    "no skip connections": {"skip_connections": False},
    "no LSTM projection": {"cells": 6},
    "depth 1": {"depth": 1},
}


def make_model(directory: Path, **changes: Any) -> tuple[LanguageModel, "Reader"]:
    options = published_options(**changes)
    arrays = published_arrays(options)
    bilm = bilm_tf.read(write_published(directory, options, arrays))
    softmax = Softmax(N_WORDS, bilm.config.projection).initialize(0, range(N_WORDS))
    with torch.no_grad():
        softmax.weight.mul_(3)
        softmax.bias.copy_(torch.linspace(-1, 1, N_WORDS))
    model = LanguageModel(bilm, softmax).double()
    return model, Reader(options, arrays, softmax)


def make_batches(directory: Path, n: int, *, n_rows: int = 3, unroll: int = 4, with_end: bool = True) -> list[Batch]:
    path = directory / "sentences.txt"
    path.write_text("".join(" ".join(words) + "\n" for words in TEXT), encoding="utf8")
    streams = Streams(path, VOCABULARY, n_rows=n_rows, rows=range(n_rows), unroll=unroll, with_end=with_end)
    return list(islice(streams, n))


def random_state(model: LanguageModel, n_rows: int, seed: int = 0) -> State:
    generator = torch.Generator().manual_seed(seed)
    zero = model.bilm.start(n_rows, "zero")
    return State(*(torch.rand(part.shape, generator=generator, dtype=part.dtype) - 0.5 for part in zero))


def store_state(model: LanguageModel) -> State:
    """Give a model an initial state."""
    state = random_state(model, 1, seed=5)
    model.bilm.initial_hidden, model.bilm.initial_cell = state.hidden[:, :, 0], state.cell[:, :, 0]
    return State(model.bilm.initial_hidden, model.bilm.initial_cell)


class Reader:
    """Reads a batch one row, direction, token and layer at a time, with the reference's steps."""

    def __init__(self, options: dict[str, Any], arrays: dict[str, Any], softmax: Softmax) -> None:
        self.options, self.arrays = options, arrays
        self.weight, self.bias = softmax.weight.detach().double().numpy(), softmax.bias.detach().double().numpy()

    def encode(self, word: Word) -> Array:
        content = [int(word)] if isinstance(word, Mark) else reference.word_bytes(word)
        spelling = reference.spell(content, self.options["char_cnn"]["max_characters_per_token"])
        return reference.encode_spelling(self.options, self.arrays, spelling)

    def loss(self, vector: Array, target: int, candidates: Candidates) -> float:
        scores = self.weight @ vector + self.bias
        if candidates.log_expected_V is not None:
            scores = scores - candidates.log_expected_V
        words = sorted({target, *candidates.ids_S.tolist()})
        return float(math.log(sum(math.exp(scores[word]) for word in words)) - scores[target])

    def read(
        self,
        batch: Batch,
        state: State,
        candidates: Candidates,
        *,
        carry_state: bool,
        initial: State | None = None,
        scale: float = 1.0,
    ) -> tuple[float, Array, Array]:
        """Give the loss, and the hidden state and the cells after the batch. What is dropped out is a factor here."""
        hidden, cell = state.hidden.numpy().copy(), state.cell.numpy().copy()
        vectors = [self.encode(word) for word in batch.types]
        unroll, n_rows = batch.starts_TB.shape
        loss = 0.0
        for row in range(n_rows):
            for step in range(unroll):
                if batch.starts_TB[step, row] and not carry_state:
                    hidden[:, :, row] = 0 if initial is None else initial.hidden.numpy()
                    cell[:, :, row] = 0 if initial is None else initial.cell.numpy()
                for direction in (0, 1):
                    token = step * n_rows + row
                    x = vectors[batch.types_AN[direction, token]]
                    for layer in range(self.options["lstm"]["n_layers"]):
                        name = f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
                        index = layer, direction, row
                        x = x * scale
                        h, c = reference.step(self.options, self.arrays, name, x, hidden[index], cell[index])
                        hidden[index], cell[index] = h, c
                        x = x + h if layer > 0 and self.options["lstm"]["use_skip_connections"] else h
                    target = int(batch.targets_AN[direction, token])
                    if target != NO_TARGET:
                        loss += self.loss(x * scale, target, candidates)
        return loss, hidden, cell


# Against the reference


@pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS.keys())
@pytest.mark.parametrize("carry_state", [True, False], ids=["carried", "initial"])
@pytest.mark.parametrize("is_stored", [True, False], ids=["stored", "zero"])
@pytest.mark.parametrize("candidates", [SAMPLED, all_words(N_WORDS)], ids=["sampled", "full"])
def test_loss_and_state_agree_with_the_reference(
    candidates: Candidates, is_stored: bool, carry_state: bool, changes: dict[str, Any], tmp_path: Path
) -> None:
    model, reader = make_model(tmp_path, **changes)
    initial = store_state(model) if is_stored else None
    state = random_state(model, 3)
    # The second batch starts in the middle of sentences, with the state of the first.
    for batch in make_batches(tmp_path, 2, with_end=carry_state):
        expected, hidden, cell = reader.read(batch, state, candidates, carry_state=carry_state, initial=initial)
        for learns in (True, False):
            with torch.set_grad_enabled(learns):
                loss, after = model(batch, state, candidates, carry_state=carry_state)
            assert loss.requires_grad == learns
            assert loss.item() == pytest.approx(expected, rel=1e-9)
            assert_allclose(after.hidden.numpy(), hidden, atol=1e-10)
            assert_allclose(after.cell.numpy(), cell, atol=1e-10)
        state = after


@pytest.mark.parametrize("carry_state", [True, False], ids=["carried", "initial"])
def test_gradients_agree_with_finite_differences(carry_state: bool, tmp_path: Path) -> None:
    # Clips and maxima have corners, so the step is small.
    model, _ = make_model(tmp_path)
    state = random_state(model, 3)
    batch = make_batches(tmp_path, 2)[1]

    def loss() -> Tensor:
        value: Tensor = model(batch, state, SAMPLED, carry_state=carry_state)[0]
        return value

    torch.autograd.backward(loss())
    generator = torch.Generator().manual_seed(0)
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        direction = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
        values = []
        with torch.no_grad():
            for step in (1e-6, -2e-6):
                parameter.add_(step * direction)
                values.append(loss().item())
            parameter.add_(1e-6 * direction)
        slope = (values[0] - values[1]) / 2e-6
        assert slope != 0, name
        assert (parameter.grad * direction).sum().item() == pytest.approx(slope, rel=1e-4, abs=1e-6), name


def test_dropout_is_for_the_input_of_each_layer_and_of_the_softmax(tmp_path: Path) -> None:
    model, reader = make_model(tmp_path)
    state = random_state(model, 3)
    batch = make_batches(tmp_path, 1)[0]
    shapes: list[tuple[int, ...]] = []

    def scale(x: Tensor) -> Tensor:
        shapes.append(tuple(x.shape))
        return x * 1.3

    expected, hidden, _ = reader.read(batch, state, SAMPLED, carry_state=True, scale=1.3)
    plain, _, _ = reader.read(batch, state, SAMPLED, carry_state=True)
    assert abs(expected - plain) > 0.1
    for learns in (True, False):
        shapes.clear()
        with torch.set_grad_enabled(learns):
            loss, after = model(batch, state, SAMPLED, carry_state=True, dropout=scale)
        assert loss.item() == pytest.approx(expected, rel=1e-9)
        assert_allclose(after.hidden.numpy(), hidden, atol=1e-10)
        assert shapes == [(2, 12, 6), (2, 12, 6), (24, 6)]


# Sentences


@pytest.mark.parametrize("is_stored", [True, False], ids=["stored", "zero"])
def test_sentences_on_their_own_are_those_of_an_evaluation(is_stored: bool, tmp_path: Path) -> None:
    model, _ = make_model(tmp_path)
    if is_stored:
        store_state(model)
    n_tokens = sum(len(words) + 1 for words in TEXT)
    (batch,) = make_batches(tmp_path, 1, n_rows=1, unroll=n_tokens, with_end=False)
    likelihood = measure_likelihood(model, VOCABULARY, TEXT)
    expected = likelihood.forward + likelihood.backward
    with torch.no_grad():
        # What a row starts from does not matter if every sentence starts from the initial state.
        for state in (model.bilm.start(1), random_state(model, 1)):
            loss, _ = model(batch, state, all_words(N_WORDS), carry_state=False)
            assert loss.item() == pytest.approx(expected, rel=1e-9)
        loss, _ = model(batch, model.bilm.start(1), all_words(N_WORDS), carry_state=True)
        assert abs(loss.item() - expected) > 0.01
    # The end of a sentence is read, and nothing is predicted from it.
    n_tokens += len(TEXT)
    (batch,) = make_batches(tmp_path, 1, n_rows=1, unroll=n_tokens, with_end=True)
    with torch.no_grad():
        loss, _ = model(batch, model.bilm.start(1), all_words(N_WORDS), carry_state=False)
    assert loss.item() == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("carry_state", [True, False], ids=["carried", "initial"])
def test_length_of_a_batch_does_not_matter_to_the_loss(carry_state: bool, tmp_path: Path) -> None:
    model, _ = make_model(tmp_path)
    results = []
    for unroll in (1, 3, 12):
        state, total = random_state(model, 3), 0.0
        for batch in make_batches(tmp_path, 12 // unroll, unroll=unroll, with_end=carry_state):
            with torch.no_grad():
                loss, state = model(batch, state, SAMPLED, carry_state=carry_state)
            total += loss.item()
        results.append((total, state))
    for total, state in results[1:]:
        assert total == pytest.approx(results[0][0], rel=1e-9)
        torch.testing.assert_close(state.hidden, results[0][1].hidden)
        torch.testing.assert_close(state.cell, results[0][1].cell)


def test_rows_do_not_see_each_other(tmp_path: Path) -> None:
    model, _ = make_model(tmp_path)
    (whole,) = make_batches(tmp_path, 1)
    state = random_state(model, 3)
    total = 0.0
    with torch.no_grad():
        loss, after = model(whole, state, SAMPLED, carry_state=False)
        for row in range(3):
            one = whole._replace(
                types_AN=whole.types_AN[:, row::3],
                targets_AN=whole.targets_AN[:, row::3],
                starts_TB=whole.starts_TB[:, row : row + 1],
            )
            own = State(*(part[:, :, row : row + 1] for part in state))
            row_loss, row_after = model(one, own, SAMPLED, carry_state=False)
            total += row_loss.item()
            torch.testing.assert_close(row_after.hidden[:, :, 0], after.hidden[:, :, row])
    assert loss.item() == pytest.approx(total, rel=1e-9)


def test_batch_in_which_nothing_is_predicted(tmp_path: Path) -> None:
    model, _ = make_model(tmp_path)
    batch = make_batches(tmp_path, 5, n_rows=1, unroll=1)[-1]
    assert [batch.types[i] for i in batch.types_AN[:, 0]] == [Mark.END_SENTENCE, Mark.BEGIN_SENTENCE]
    state = random_state(model, 1)
    loss, after = model(batch, state, SAMPLED, carry_state=True)
    assert loss.item() == 0
    assert not torch.equal(after.hidden, state.hidden)
    loss.backward()
    assert model.softmax.bias.grad is not None
    assert not model.softmax.bias.grad.any()


# The state, and what learns


def test_state_brings_no_gradient_from_the_batch_before(tmp_path: Path) -> None:
    model, _ = make_model(tmp_path)
    state = random_state(model, 3)
    before = State(state.hidden.clone(), state.cell.clone())
    _, after = model(make_batches(tmp_path, 1)[0], state, SAMPLED, carry_state=True)
    assert after.hidden.shape == state.hidden.shape
    assert after.cell.shape == state.cell.shape
    assert not after.hidden.requires_grad
    assert not after.cell.requires_grad
    # What went in is not overwritten.
    assert torch.equal(state.hidden, before.hidden)
    assert torch.equal(state.cell, before.cell)


def double(x: Tensor) -> Tensor:
    return x * 2


@pytest.mark.parametrize("dropout", [None, double], ids=["plain", "dropout"])
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_frozen_model_only_teaches_its_softmax(precision: str, dropout: Dropout | None, tmp_path: Path) -> None:
    model, _ = make_model(tmp_path)
    model.float()
    batch = make_batches(tmp_path, 2)[1]
    state = random_state(model, 3)
    results = []
    for frozen in (False, True):
        model.bilm.requires_grad_(not frozen)
        model.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bfloat16"):
            loss, after = model(batch, state, all_words(N_WORDS), carry_state=False, dropout=dropout)
        loss.backward()
        assert loss.dtype == after.hidden.dtype == after.cell.dtype == torch.float32
        assert all((parameter.grad is None) == frozen for parameter in model.bilm.parameters())
        assert model.softmax.weight.grad is not None
        results.append([loss.detach(), after.hidden, after.cell, model.softmax.weight.grad])
    tolerance = 1e-5 if precision == "float32" else 0.05
    for learned, frozen_too in zip(*results, strict=True):
        assert (learned - frozen_too).norm() / learned.norm() < tolerance


def test_no_activations_are_kept_without_gradients(tmp_path: Path) -> None:
    model, _ = make_model(tmp_path)
    (batch,) = make_batches(tmp_path, 1)
    state = random_state(model, 3)
    is_kept: list[bool] = []

    def look(x: Tensor) -> Tensor:
        is_kept.append(torch.is_grad_enabled())
        return x

    def run(*, learns: bool) -> list[bool]:
        is_kept.clear()
        with torch.set_grad_enabled(learns):
            model(batch, state, SAMPLED, carry_state=True, dropout=look)
        return is_kept

    # Two layers, and the softmax.
    assert run(learns=True) == [True, True, True]
    assert run(learns=False) == [False, False, False]
    model.bilm.requires_grad_(False)
    assert run(learns=True) == [False, False, True]
    assert run(learns=False) == [False, False, False]


@pytest.mark.parametrize("carry_state", [True, False], ids=["carried", "initial"])
def test_bfloat16_is_close_to_float32(carry_state: bool, tmp_path: Path) -> None:
    model, _ = make_model(tmp_path, cell_clip=3.0, projection_clip=3.0)
    model.float()
    batch = make_batches(tmp_path, 1)[0]
    state = random_state(model, 3)
    results = []
    for enabled in (False, True):
        model.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            loss, after = model(batch, state, SAMPLED, carry_state=carry_state)
        loss.backward()
        gradients = {name: parameter.grad for name, parameter in model.named_parameters()}
        results.append({"loss": loss.detach(), "hidden": after.hidden, "cell": after.cell, **gradients})
    assert not torch.equal(results[0]["loss"], results[1]["loss"])  # it was on
    for name in results[0]:
        one, other = (result[name] for result in results)
        assert one is not None, name
        assert other is not None, name
        assert one.dtype == other.dtype == torch.float32
        # Which characters of a word have its maximum is another question in another precision.
        assert (one - other).norm() / one.norm() < (0.3 if "char_cnn" in name else 0.1), name
