"""Filters and their maximum over a word, whose gradients are worked out by hand."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from spacy_elmo.bilm.char_cnn import _Filters


def gradients(x: Tensor, d_maximum: Tensor) -> tuple[Tensor, Tensor]:
    """Pool with our function and with torch's, and give the gradients of both. The filters copy single characters."""
    ours, theirs = x.clone().requires_grad_(), x.clone().requires_grad_()
    width = x.shape[2]
    pooled: Tensor = _Filters.apply(ours, torch.eye(width, dtype=x.dtype), x.new_zeros(width))  # type: ignore[no-untyped-call]
    torch.testing.assert_close(pooled, theirs.amax(dim=1), rtol=0, atol=0)
    torch.autograd.backward([pooled, theirs.amax(dim=1)], [d_maximum, d_maximum])
    assert ours.grad is not None
    assert theirs.grad is not None
    return ours.grad, theirs.grad


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", [(5, 7, 3), (1, 1, 1), (4, 1, 2), (1, 6, 1)])
def test_max_pool_agrees_with_amax(shape: tuple[int, int, int], dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(0)
    # Few values, so that many maxima are tied: two, three or all of a word's.
    x = torch.randint(-2, 3, shape, generator=generator).to(dtype)
    d_maximum = torch.randn(shape[0], shape[2], generator=generator).to(dtype)
    ours, theirs = gradients(x, d_maximum)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=0)
    torch.testing.assert_close(ours.double().sum(dim=1), d_maximum.double(), rtol=1e-2, atol=1e-6)


def test_max_pool_shares_a_gradient_among_equal_maxima() -> None:
    x = torch.tensor([[[1.0, -1.0], [3.0, -1.0], [3.0, -1.0], [2.0, -1.0]]])
    ours, theirs = gradients(x, torch.tensor([[8.0, 6.0]]))
    expected = torch.tensor([[[0.0, 1.5], [4.0, 1.5], [4.0, 1.5], [0.0, 1.5]]])
    torch.testing.assert_close(ours, expected, rtol=0, atol=0)
    torch.testing.assert_close(theirs, expected, rtol=0, atol=0)


def test_max_pool_distinguishes_close_values() -> None:
    x = torch.tensor([[[1.0], [1.0 + 2**-23], [1e-30]], [[1e-30], [2e-30], [0.0]]])
    ours, theirs = gradients(x, torch.tensor([[1.0], [1.0]]))
    torch.testing.assert_close(ours.squeeze(-1), torch.tensor([[0.0, 1.0, 0.0], [0.0, 1.0, 0.0]]), rtol=0, atol=0)
    torch.testing.assert_close(theirs, ours, rtol=0, atol=0)


@pytest.mark.parametrize("filters", [[(1, 3)], [(2, 4), (3, 1)], [(1, 2), (2, 3), (5, 4)], [(6, 2), (1, 1)]], ids=str)
def test_filters_agree_with_autograd(filters: list[tuple[int, int]]) -> None:
    generator = torch.Generator().manual_seed(0)

    def random(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_()

    x_UCD = random(5, 6, 4)
    weights = [tensor for width, count in filters for tensor in (random(count, width * 4), random(count))]
    expected = torch.cat(
        [
            functional.linear(x_UCD.unfold(1, width, 1).transpose(2, 3).flatten(2), weight, bias).amax(dim=1)
            for (width, _), weight, bias in zip(filters, weights[::2], weights[1::2], strict=True)
        ],
        dim=-1,
    )
    found: Tensor = _Filters.apply(x_UCD, *weights)  # type: ignore[no-untyped-call]
    torch.testing.assert_close(found, expected)
    importance = torch.randn(found.shape, generator=generator, dtype=torch.float64)
    inputs = [x_UCD, *weights]
    gradients = torch.autograd.grad(found, inputs, importance)
    for gradient, other in zip(gradients, torch.autograd.grad(expected, inputs, importance), strict=True):
        assert gradient.abs().max() > 0.01
        torch.testing.assert_close(gradient, other)
