"""Layers with packed weights: the same results, and the same weights back."""

import copy
import pickle
from typing import Any

import pytest
import torch
from numpy.testing import assert_allclose

from spacy_elmo.bilm import packed
from spacy_elmo.bilm.frozen import freeze
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.bilm.packed import PackedLayer
from spacy_elmo.bilm.products import Matrix, add_product, multiply, pack, write_product

from ..helpers import random_bilm
from .models import layers_of

SENTENCE = ["a", "naïve", "duck", "sat"]


@pytest.fixture(params=[1, 2**20], ids=["many weights", "few weights"])
def frozen(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> BiLM:
    monkeypatch.setattr(packed, "MANY_WEIGHTS", request.param)
    return freeze(random_bilm(2), "float32")


@pytest.mark.parametrize("changes", [{}, {"cells": 6}, {"depth": 3, "skip_connections": False}])
@pytest.mark.parametrize("many_weights", [1, 2**20])
def test_packed_layers_give_the_same(
    changes: dict[str, Any], many_weights: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packed, "MANY_WEIGHTS", many_weights)
    frozen = freeze(random_bilm(2, **changes), "float32")
    assert all(isinstance(layer, PackedLayer) for layer in frozen.lstm.layers)
    expected = layers_of(random_bilm(2, **changes), SENTENCE)
    assert_allclose(layers_of(frozen, SENTENCE).numpy(), expected.numpy(), atol=1e-6)
    weights = random_bilm(2, **changes).state_dict()
    assert frozen.state_dict().keys() == weights.keys()
    assert all(torch.equal(frozen.state_dict()[name], tensor) for name, tensor in weights.items())


def test_packed_layers_have_nothing_to_train(frozen: BiLM) -> None:
    assert not any(parameter.requires_grad for parameter in frozen.parameters())
    assert [name for name, _ in frozen.named_parameters()] == ["char_cnn.embedding.weight"]
    for layer in frozen.lstm.layers:
        assert isinstance(layer, PackedLayer)
        assert not any(direction.bias_G.requires_grad for direction in layer.directions())


def test_packed_layers_can_be_copied_and_pickled(frozen: BiLM) -> None:
    for other in (copy.deepcopy(frozen), pickle.loads(pickle.dumps(frozen))):
        assert torch.equal(layers_of(other, SENTENCE), layers_of(frozen, SENTENCE))
        weights = other.state_dict()
        assert all(torch.equal(weights[name], tensor) for name, tensor in frozen.state_dict().items())


@pytest.mark.parametrize("n_rows", [1, 3, 4, 33, 129, 511, 512, 513, 1100])
def test_products_with_packed_weights_for_any_number_of_rows(n_rows: int) -> None:
    random = torch.Generator().manual_seed(0)
    x, weight = torch.randn(n_rows, 20, generator=random), torch.randn(20, 12, generator=random)
    matrix = Matrix(pack(weight))
    bias = torch.randn(12, generator=random)
    assert_allclose(multiply(x, matrix, bias).numpy(), (x @ weight + bias).numpy(), atol=1e-5)
    out = torch.empty(n_rows, 12)
    write_product(out, x, matrix)
    assert_allclose(out.numpy(), (x @ weight).numpy(), atol=1e-5)
    assert_allclose(add_product(torch.ones(n_rows, 12), x, matrix).numpy(), 1 + (x @ weight).numpy(), atol=1e-5)


@pytest.mark.parametrize(("n_rows", "expected"), [(1, 20.0), (2, 40.0), (5, 40.0)])
def test_few_weights_are_packed_for_several_rows_alone(n_rows: int, expected: float) -> None:
    x, weight = torch.ones(n_rows, 20), torch.ones(20, 12)
    matrix = Matrix(weight, packed=pack(2 * weight))  # other values, to see which of them are used
    out = torch.empty(n_rows, 12)
    write_product(out, x, matrix)
    products = [out, multiply(x, matrix, torch.zeros(12)), add_product(torch.zeros(n_rows, 12), x, matrix)]
    assert all(torch.equal(product, torch.full((n_rows, 12), expected)) for product in products)
