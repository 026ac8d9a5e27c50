"""Pieces of a batch through a module side by side, with autograd's gradients."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import Parameter

from ..bilm.threads import run_side_by_side

Run = Callable[[Any], Tensor]


def run_pieces(run: Run, pieces: Sequence[Any], parameters: Sequence[Parameter]) -> list[Tensor]:
    """Run a function over pieces of a batch, each in a thread of its own, forward and backward.

    run (Callable): The function. It may run in several threads at once.
    pieces (Sequence): Its arguments.
    parameters (Sequence[Parameter]): All that gradients are wanted for.
    RETURNS (list[Tensor]): The results.
    """
    if not torch.is_grad_enabled():
        return [run(piece) for piece in pieces]
    return list(_Pieces.apply(run, pieces, *parameters))  # type: ignore[no-untyped-call]


class _Pieces(torch.autograd.Function):
    """Each piece has a graph of its own, which the thread that differentiates it goes through."""

    @staticmethod
    def forward(ctx: Any, run: Run, pieces: Sequence[Any], *parameters: Parameter) -> tuple[Tensor, ...]:
        """RETURNS (tuple): The results of the pieces."""
        device = parameters[0].device.type
        autocast = torch.autocast(
            device, torch.get_autocast_dtype(device), enabled=torch.is_autocast_enabled(device), cache_enabled=False
        )

        def run_piece(piece: Any) -> Tensor:
            with torch.enable_grad(), autocast:
                return run(piece)

        ctx.results = run_side_by_side([partial(run_piece, piece) for piece in pieces])
        ctx.parameters = parameters
        return tuple(result.detach() for result in ctx.results)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """RETURNS (tuple): The gradients of the parameters, summed over the pieces."""
        tasks = [
            partial(torch.autograd.grad, result, ctx.parameters, gradient)
            for result, gradient in zip(ctx.results, gradients, strict=True)
        ]
        found = zip(*run_side_by_side(tasks), strict=True)
        return None, None, *(sum(parts[1:], parts[0]) for parts in found)
