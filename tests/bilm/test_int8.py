"""A biLM in int8: how close it is to float32, and that a vector depends on nothing but its sentence."""

import copy
import pickle
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from hypothesis import given
from numpy.testing import assert_allclose
from torch import Tensor

from spacy_elmo.bilm import int8
from spacy_elmo.bilm.embed import embed_sentences, run_batch
from spacy_elmo.bilm.frozen import freeze, precision_of, thaw
from spacy_elmo.bilm.int8 import Int8Layer, Int8Linear, PackedInt8Layer, to_float32, to_int8
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.bilm.products import Matrix, add_product, multiply, pack, quantize, split, unpack, write_product
from spacy_elmo.bilm.weights import from_bytes, load_stored, load_weights, save_weights, to_bytes

from ..helpers import random_bilm
from .models import SENTENCES, layers_of, random_state, sentences

VARIANTS: list[dict[str, Any]] = [{}, {"cells": 6}, {"highways": 0, "depth": 3}, {"projection": 18}]


@pytest.fixture(scope="module")
def quantized() -> BiLM:
    return freeze(random_bilm(), "int8")


def cosines(one: Tensor, other: Tensor) -> Tensor:
    return torch.nn.functional.cosine_similarity(one, other, dim=-1)


def test_quantize_rounds_to_the_nearest_of_255_values() -> None:
    values, scale = quantize(torch.tensor([[2.54, -1.0, 0.011, 0.0], [0.0, 0.0, 0.0, 0.0]]))
    assert values.dtype == torch.int8
    assert values.tolist() == [[127, -50, 1, 0], [0, 0, 0, 0]]
    assert_allclose(scale.numpy(), [[0.02], [0.0]], rtol=1e-6)


@pytest.mark.parametrize("factor", [1e-30, 1.0, 1e30])
def test_quantized_values_are_within_half_a_step(factor: float) -> None:
    x = torch.randn(20, 30, generator=torch.Generator().manual_seed(0)) * factor
    values, scale = quantize(x)
    assert ((values * scale - x).abs() <= 0.5001 * scale).all()


def test_split_into_two_parts() -> None:
    whole, rest = split(torch.tensor([[127.0, -50.5, 0.25, 0.0]]))
    assert whole.dtype == rest.dtype == torch.int8
    assert whole.tolist() == [[127, -50, 0, 0]]
    assert rest.tolist() == [[0, -63, 31, 0]]


@pytest.mark.parametrize("n_rows", [1, 2, 130])
def test_products_of_rows_in_two_parts(n_rows: int) -> None:
    random = torch.Generator().manual_seed(n_rows)
    # Most values are much smaller than the largest one, and one int8 rounds them to zero.
    x = torch.rand(n_rows, 50, generator=random).pow(20) * torch.where(torch.rand(50, generator=random) < 0.5, -1, 1)
    quantized, scale = quantize(torch.randn(9, 50, generator=random))
    one = Matrix(quantized.t(), scale.squeeze(-1))
    two = one._replace(two_parts=True)
    expected = (x.double() @ (quantized * scale).double().t()).numpy()
    errors = []
    for matrix in (one, two, two._replace(weight=pack(two.weight))):
        out = torch.ones(n_rows, 9)
        write_product(out, x, matrix)
        products = (out, multiply(x, matrix, torch.zeros(9)), add_product(torch.zeros(n_rows, 9), x, matrix))
        errors.append([abs(product.numpy() - expected).max() for product in products])
    assert max(errors[1] + errors[2]) < 1e-3 < min(errors[0]) / 5


def test_products_of_quantized_rows_are_exact() -> None:
    random = torch.Generator().manual_seed(0)
    x, weight = torch.randn(7, 50, generator=random), torch.randn(9, 50, generator=random)
    rows, row_scale = quantize(x)
    quantized, scale = quantize(weight)
    matrix = Matrix(quantized.t(), scale.squeeze(-1))
    expected = (rows.long() @ quantized.long().t()) * row_scale * scale.t()
    assert_allclose(multiply(x, matrix, torch.ones(9)).numpy(), 1 + expected.numpy(), rtol=1e-5, atol=1e-5)
    out = torch.ones(7, 9)
    add_product(out, x, matrix)
    assert_allclose(out.numpy(), 1 + expected.numpy(), atol=1e-5)
    write_product(out, x, matrix)
    assert_allclose(out.numpy(), expected.numpy(), rtol=1e-6)
    assert (expected - x @ weight.t()).abs().max() < 0.3


@pytest.mark.parametrize(("many_cells", "expected"), [(1024, True), (1, False)])
def test_two_parts_in_the_first_layer_of_a_small_model(
    many_cells: int, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(int8, "MANY_CELLS", many_cells)
    first, second = (cast(Int8Layer, layer).directions() for layer in freeze(random_bilm(), "int8").lstm.layers)
    assert [one.input.two_parts for one in first] == [expected, expected]
    assert [one.projection is not None and one.projection.two_parts for one in first] == [expected, expected]
    assert not any(one.hidden.two_parts for one in [*first, *second])
    assert not any(one.input.two_parts for one in second)
    assert not any(one.projection is None or one.projection.two_parts for one in second)


@pytest.mark.parametrize("changes", VARIANTS)
def test_int8_is_close_to_float32(changes: dict[str, Any]) -> None:
    bilm, quantized = random_bilm(**changes), freeze(random_bilm(**changes), "int8")
    with torch.no_grad():
        expected = embed_sentences(bilm, SENTENCES, max_batch_items=1_000)
        results = embed_sentences(quantized, SENTENCES, max_batch_items=1_000)
    for one, other in zip(expected, results, strict=True):
        assert (cosines(one, other) > 0.995).all()
        assert one.numel() == 0 or (one - other).abs().max() > 1e-6


def test_inputs_of_the_char_cnn_have_more_than_8_bits() -> None:
    random = torch.Generator().manual_seed(0)
    linear = torch.nn.Linear(40, 30)
    x = torch.randn(50, 40, generator=random)
    layer = Int8Linear(linear)
    weights = layer.weight * layer.weight_scale.unsqueeze(-1)
    with torch.no_grad():
        assert_allclose(layer(x).numpy(), (x @ weights.t() + linear.bias).numpy(), atol=1e-3)


@given(batch=sentences)
def test_a_vector_depends_on_nothing_but_its_sentence(quantized: BiLM, batch: list[list[str]]) -> None:
    with torch.no_grad():
        together = embed_sentences(quantized, batch, max_batch_items=1_000)
    for layers, sentence in zip(together, batch, strict=True):
        assert_allclose(layers.numpy(), layers_of(quantized, sentence).numpy(), atol=1e-6)


def test_state_is_carried_over(quantized: BiLM) -> None:
    start = random_state(quantized, 1)
    with torch.no_grad():
        _, state = run_batch(quantized, [["a", "duck"]], start)
        layers, _ = run_batch(quantized, [["sat"]], state)
        other, _ = run_batch(quantized, [["sat"]], start)
        expected, _ = run_batch(random_bilm(), [["sat"]], run_batch(random_bilm(), [["a", "duck"]], start)[1])
    assert (cosines(layers[0], expected[0]) > 0.99).all()
    assert not torch.equal(layers[0][1:], other[0][1:])


@pytest.mark.parametrize("changes", VARIANTS)
def test_back_to_float32(changes: dict[str, Any]) -> None:
    bilm = random_bilm(**changes)
    copy = to_float32(to_int8(random_bilm(**changes)))
    assert copy.state_dict().keys() == bilm.state_dict().keys()
    for name, tensor in bilm.state_dict().items():
        other = copy.state_dict()[name]
        assert other.shape == tensor.shape
        assert (other - tensor).abs().max() <= tensor.abs().max() / 253, name
    assert all(parameter.requires_grad for parameter in copy.parameters())


@pytest.mark.parametrize("by_input", [False, True])
@pytest.mark.parametrize("n_rows", [1, 2, 3, 4, 33, 128, 129, 300])
def test_products_with_packed_weights_are_equal(n_rows: int, by_input: bool) -> None:
    random = torch.Generator().manual_seed(n_rows)
    x, weight = torch.randn(n_rows, 4100, generator=random), torch.randn(9, 4100, generator=random)
    x[0], weight[0] = 1.0, -1.0  # the largest sum
    quantized, scale = quantize(weight)
    plain = Matrix(quantized.t().contiguous() if by_input else quantized.t(), scale.squeeze(-1))
    packed = Matrix(pack(plain.weight), plain.scale_M)
    assert torch.equal(unpack(packed.weight), plain.weight)
    bias = torch.randn(9, generator=random)
    assert torch.equal(multiply(x, packed, bias), multiply(x, plain, bias))
    sums = [add_product(torch.ones(n_rows, 9), x, matrix) for matrix in (packed, plain)]
    assert torch.equal(*sums)
    products = [torch.empty(n_rows, 9) for _ in (packed, plain)]
    for out, matrix in zip(products, (packed, plain), strict=True):
        write_product(out, x, matrix)
    assert torch.equal(*products)


@pytest.mark.parametrize("many_cells", [1, 1024])
@pytest.mark.parametrize("changes", VARIANTS)
def test_packed_layers_give_equal_vectors_and_weights(
    changes: dict[str, Any], many_cells: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(int8, "MANY_CELLS", many_cells)
    plain = freeze(random_bilm(3, **changes), "int8")
    assert not any(isinstance(layer, PackedInt8Layer) for layer in plain.lstm.layers)
    monkeypatch.setattr(int8, "WORTH_PACKING", 1)
    packed = freeze(random_bilm(3, **changes), "int8")
    assert all(isinstance(layer, PackedInt8Layer) for layer in packed.lstm.layers)
    assert precision_of(packed) == "int8"
    assert freeze(packed, "int8") is packed
    save_weights(packed, tmp_path / "weights")
    loaded = freeze(load_stored(tmp_path / "weights"), "int8")
    expected, weights = layers_of(plain, ["a", "duck"]), plain.state_dict()
    for bilm in (packed, loaded, copy.deepcopy(packed), pickle.loads(pickle.dumps(packed))):
        assert all(isinstance(layer, PackedInt8Layer) for layer in bilm.lstm.layers)
        assert torch.equal(layers_of(bilm, ["a", "duck"]), expected)
        assert bilm.state_dict().keys() == weights.keys()
        assert all(torch.equal(bilm.state_dict()[name], tensor) for name, tensor in weights.items())
    in_float32 = thaw(packed).state_dict()
    assert all(torch.equal(in_float32[name], tensor) for name, tensor in thaw(plain).state_dict().items())


def test_weights_take_a_quarter_of_the_memory() -> None:
    def size(bilm: BiLM) -> int:
        return sum(tensor.nbytes for tensor in bilm.state_dict().values())

    sizes = {"filters": [[1, 64]], "projection": 64, "cells": 256}
    assert size(freeze(random_bilm(**sizes), "int8")) < 0.29 * size(random_bilm(**sizes))


@pytest.mark.parametrize("changes", VARIANTS)
def test_weights_directory_in_int8(changes: dict[str, Any], tmp_path: Path) -> None:
    bilm = random_bilm(3, **changes)
    bilm.initial_hidden = torch.ones(bilm.config.depth, 2, bilm.config.projection) / 4
    bilm.initial_cell = torch.ones(bilm.config.depth, 2, bilm.config.cells) / 4
    quantized = freeze(bilm, "int8")
    save_weights(quantized, tmp_path / "weights")
    for loaded in (load_stored(tmp_path / "weights"), from_bytes(to_bytes(quantized))):
        assert precision_of(loaded) == "int8"
        assert loaded.state_dict().keys() == quantized.state_dict().keys()
        assert all(torch.equal(loaded.state_dict()[name], value) for name, value in quantized.state_dict().items())
        assert (cosines(layers_of(loaded, ["a", "duck"]), layers_of(quantized, ["a", "duck"])) > 0.9999).all()
    in_float32 = load_weights(tmp_path / "weights")
    assert precision_of(in_float32) == "float32"
    assert (cosines(layers_of(in_float32, ["a", "duck"]), layers_of(quantized, ["a", "duck"])) > 0.995).all()


def test_tensors_of_another_type_are_refused(tmp_path: Path) -> None:
    quantized = freeze(random_bilm(), "int8")
    quantized.lstm.layers[0].weight = torch.zeros_like(quantized.lstm.layers[0].weight, dtype=torch.int32)
    save_weights(quantized, tmp_path / "weights")
    with pytest.raises(ValueError, match=r"of another type than expected, in \['lstm\.layers\.0\.weight'\]"):
        load_stored(tmp_path / "weights")


def test_an_unknown_precision_is_refused(tmp_path: Path) -> None:
    save_weights(freeze(random_bilm(), "int8"), tmp_path / "weights")
    path = tmp_path / "weights" / "config.json"
    path.write_text(path.read_text().replace('"int8"', '"int3"'))
    with pytest.raises(ValueError, match=r"precision must be one of \('float32', 'int8'\), got 'int3'"):
        load_stored(tmp_path / "weights")


def test_freezing_and_thawing_choose_the_precision() -> None:
    assert precision_of(freeze(random_bilm(), "int8")) == "int8"
    assert precision_of(freeze(freeze(random_bilm(), "int8"), "int8")) == "int8"
    assert precision_of(freeze(freeze(random_bilm(), "int8"), "float32")) == "float32"
    assert precision_of(thaw(freeze(random_bilm(), "int8"))) == "float32"
    assert not any(parameter.requires_grad for parameter in freeze(random_bilm(), "int8").parameters())


def test_processors_without_the_instructions_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    int8.find_int8_problem.cache_clear()
    monkeypatch.setattr(torch.cpu, "_is_vnni_supported", lambda: False)
    assert int8.find_int8_problem() == "this processor has no instructions for it (VNNI)"
    int8.find_int8_problem.cache_clear()
    monkeypatch.delattr(torch.cpu, "_is_vnni_supported")  # as in torch 2.4
    message = "this torch cannot tell whether the processor has the instructions for it (VNNI)"
    assert int8.find_int8_problem() == message
    int8.find_int8_problem.cache_clear()
