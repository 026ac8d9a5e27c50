"""Pieces of a batch side by side: the same values and gradients as one after the other."""

import pytest
import torch
from torch import Tensor, nn

from spacy_elmo.pretraining.pieces import run_pieces

pytestmark = pytest.mark.usefixtures("restored_threads")


def make_layer() -> nn.Linear:
    layer = nn.Linear(4, 3).double()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    return layer


def random(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("sizes", [[5, 5], [1, 9], [10], [3, 3, 4]], ids=str)
def test_pieces_agree_with_the_whole(sizes: list[int], n_threads: int) -> None:
    torch.set_num_threads(n_threads)
    layer, x, importance = make_layer(), random(10, 4), random(10, 3, seed=2)
    parameters = list(layer.parameters())

    def run(piece: Tensor) -> Tensor:
        return torch.sigmoid(layer(piece))

    expected = run(x)
    results = run_pieces(run, torch.split(x, sizes), parameters)
    assert [len(result) for result in results] == sizes
    torch.testing.assert_close(torch.cat(results), expected)
    gradients = torch.autograd.grad(torch.cat(results), parameters, importance)
    for gradient, other in zip(gradients, torch.autograd.grad(expected, parameters, importance), strict=True):
        assert gradient.abs().max() > 0.01
        torch.testing.assert_close(gradient, other)


def test_pieces_without_gradients_keep_no_graph() -> None:
    layer = make_layer()
    with torch.no_grad():
        results = run_pieces(layer, torch.split(random(4, 4), 2), list(layer.parameters()))
    assert not any(result.requires_grad for result in results)
    torch.testing.assert_close(torch.cat(results), layer(random(4, 4)).detach())


@pytest.mark.parametrize("n_threads", [1, 2])
def test_pieces_have_the_precision_of_their_caller(n_threads: int) -> None:
    torch.set_num_threads(n_threads)
    layer = make_layer().float()
    with torch.autocast("cpu", torch.bfloat16):
        results = run_pieces(layer, torch.split(random(4, 4).float(), 2), list(layer.parameters()))
    assert [result.dtype for result in results] == [torch.bfloat16] * 2
    assert run_pieces(layer, [random(1, 4).float()], list(layer.parameters()))[0].dtype == torch.float32
