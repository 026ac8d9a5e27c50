"""The biattentive network, against its formulas."""

from typing import Any

import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from spacy_elmo.tasks.textcat.network import Sizes, Standardize

from .networks import SIZES, random_network, random_vectors, reference


@pytest.mark.parametrize("output_width", [0, 2])
@pytest.mark.parametrize("depth", [1, 2])
def test_network_is_its_formulas(output_width: int, depth: int) -> None:
    network = random_network(4, output_width, maxout_depth=depth)
    lengths = [3, 1, 6, 2]
    docs, outputs = random_vectors(*lengths), random_vectors(*lengths, width=output_width or 1, seed=1)
    # Values in the padding that would show if anything read them.
    x_BTI, output_BTE = torch.full((4, 8, 4), 50.0), torch.full((4, 8, output_width or 1), -50.0)
    for i, (x, output) in enumerate(zip(docs, outputs, strict=True)):
        x_BTI[i, : len(x)], output_BTE[i, : len(x)] = torch.as_tensor(x), torch.as_tensor(output)
    with torch.no_grad():
        found = network(x_BTI, torch.as_tensor(lengths), output_BTE if output_width else None)
    expected = [reference(network, x, y if output_width else None) for x, y in zip(docs, outputs, strict=True)]
    assert_allclose(found, expected, atol=1e-4, rtol=1e-4)


def test_standardize_is_by_all_that_was_seen() -> None:
    standardize = Standardize(3)
    batches = [torch.as_tensor(2 * x + 5) for x in random_vectors(1, 8, 8, width=3)]
    assert_allclose(standardize(batches[0], is_train=True), 0, atol=1e-6)
    outputs = [standardize(batch, is_train=True) for batch in batches[1:]]
    mean = torch.stack([batch.mean(dim=0) for batch in batches]).mean(dim=0)
    square = torch.stack([batch.square().mean(dim=0) for batch in batches]).mean(dim=0)
    expected = (batches[2] - mean) / (square - mean**2).sqrt()
    assert_allclose(outputs[1], expected, atol=1e-4)
    # Now as in training, alone as in a batch, and without learning.
    assert_allclose(standardize(batches[2]), expected, atol=1e-4)
    assert_allclose(standardize(batches[2][:1]), expected[:1], atol=1e-4)


def test_standardize_forgets_the_start() -> None:
    standardize = Standardize(1)
    for value in [0.0] * 100 + [3.0, 5.0] * 200:
        standardize(torch.as_tensor([[value]]), is_train=True)
    assert_allclose(standardize.mean, 4.0, atol=0.05)
    assert_allclose(standardize(torch.as_tensor([[5.0]])), 1.0, atol=0.05)


def test_dropout_is_applied_in_three_layers() -> None:
    network, x_BTI = random_network(4), torch.as_tensor(random_vectors(7)[0]).unsqueeze(0)
    counts: list[tuple[int, ...]] = []

    def count(x: torch.Tensor, p: float, training: bool) -> torch.Tensor:
        assert (p, training) == (0.3, True)
        counts.append(tuple(x.shape))
        return x

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.nn.functional, "dropout", count)
        network.eval()(x_BTI, torch.as_tensor([7]), dropout=0.3, is_train=True)
    assert counts == [(1, 7, 5), (1, 32), (1, 6)]


def test_the_mode_of_the_module_changes_nothing() -> None:
    network, x_BTI = random_network(4), torch.as_tensor(random_vectors(7)[0]).unsqueeze(0)
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    with torch.no_grad():
        found, expected = (
            network.train(mode)(x_BTI, torch.as_tensor([7]), dropout=0.5).numpy() for mode in (True, False)
        )
    assert_array_equal(found, expected)
    assert [name for name, tensor in network.state_dict().items() if not torch.equal(tensor, before[name])] == []


@pytest.mark.parametrize("name", list(SIZES))
@pytest.mark.parametrize("value", [0, -1, True, 2.0, 2**31])
def test_sizes_that_make_no_sense(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"{name} must be a whole number from 1 to [0-9]+, got {value}"):
        Sizes(**{**SIZES, name: value})
