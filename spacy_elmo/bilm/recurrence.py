"""All steps of one LSTM layer, with hand-written gradients.

Training spends most of its time here. Autograd would keep twice as many tensors and compute the gradient of the weights
step by step. Here a step is two products forward and two backward, and the gradient of the weights is one product for
all steps. As in prediction.py, each direction is one call of a function that TorchScript runs, so that the directions do
not wait for each other's turn in Python.

Shape suffixes: A direction, N token of the packed batch, B sentence or row, P projection, H memory cells, X input and
hidden state (2 P), G the four gates (4 H).
"""

from functools import partial
from typing import Any, List, NamedTuple, Optional, Tuple  # noqa: UP035 (TorchScript does not know all of the new names)

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from .compiled import compiled
from .precision import product_dtype
from .threads import run_side_by_side

Clips = tuple[float | None, float | None]


class Weights(NamedTuple):
    """The weights of one direction, in the precision of products.

    weight_XG, bias_G (Tensor): Those of the gates.
    projection_HP (Tensor | None): Memory cells to hidden state.
    cell_clip, output_clip (float | None): The maximum absolute values of the memory cells and of the projected output.
    """

    weight_XG: Tensor
    bias_G: Tensor
    projection_HP: Optional[Tensor]  # noqa: UP045
    cell_clip: Optional[float]  # noqa: UP045
    output_clip: Optional[float]  # noqa: UP045


class Kept(NamedTuple):
    """What one direction keeps of a batch for the gradients.

    inputs_NX (Tensor): Input and hidden state of each step.
    gates_NG (Tensor): The gates, opened: sigmoids, and the tanh of the new values.
    before_NH, cells_NH (Tensor): The memory cells before and after each step.
    tanh_NH (Tensor): Their tanh after it.
    opened_NH (Tensor): What the output gate lets through.
    y_NP (Tensor): The output.
    """

    inputs_NX: Tensor
    gates_NG: Tensor
    before_NH: Tensor
    cells_NH: Tensor
    tanh_NH: Tensor
    opened_NH: Tensor
    y_NP: Tensor


class Recurrence(torch.autograd.Function):
    """All steps of one layer, both directions side by side. Products have autocast's precision, all else has that of x."""

    @staticmethod
    def forward(
        ctx: Any,
        x_ANP: Tensor,
        hidden_ABP: Tensor,
        cell_ABH: Tensor,
        weight_AXG: Tensor,
        bias_AG: Tensor,
        projection_AHP: Tensor | None,
        clips: Clips,
        sizes: list[int],
        keep: list[Tensor | None],
        initial: tuple[Tensor, Tensor] | None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Run the layer.

        x_ANP (Tensor): The input of each token, packed: step t of all sentences precedes step t + 1 of any.
        hidden_ABP, cell_ABH (Tensor): The state at the start.
        weight_AXG, bias_AG (Tensor): The gates' weights.
        projection_AHP (Tensor | None): The projection's weights.
        clips (Clips): The maximum absolute values of the memory cells, and of the projected output.
        sizes (list[int]): The number of sentences at each step, which never increases.
        keep (list[Tensor | None]): For each step, keep_B1: 1 for the rows that keep their state, 0 for those that are
            reset; None if all keep it.
        initial (tuple | None): The state that rows are reset to, hidden_AP and cell_AH; None for zeros.
        RETURNS (tuple): y_ANP, and hidden_ABP and cell_ABH after the last step of each sentence.
        """
        dtype = product_dtype(x_ANP)
        cell_clip, output_clip = clips
        if output_clip is not None:
            # Rounded as the output is, so that the gradients recognize what was clipped. TorchScript would round to float32.
            output_clip = torch.tensor(output_clip, dtype=dtype).item()
        run = compiled(_run)

        def run_direction(a: int) -> tuple[Weights, Kept, Tensor, Tensor]:
            projection_HP = None if projection_AHP is None else projection_AHP[a].to(dtype)
            weights = Weights(weight_AXG[a].to(dtype), bias_AG[a].to(dtype), projection_HP, cell_clip, output_clip)
            own_initial = None if initial is None else (initial[0][a], initial[1][a])
            hidden_BP, cell_BH = hidden_ABP[a].clone(), cell_ABH[a].clone()
            kept = Kept(*run(x_ANP[a], hidden_BP, cell_BH, weights, sizes, keep, own_initial))
            return weights, kept, hidden_BP, cell_BH

        ran = run_side_by_side([partial(run_direction, a) for a in (0, 1)])
        ctx.directions, ctx.sizes, ctx.keep = [(weights, kept) for weights, kept, _, _ in ran], sizes, keep
        outputs = ((kept.y_NP.to(x_ANP.dtype), hidden_BP, cell_BH) for _, kept, hidden_BP, cell_BH in ran)
        y_ANP, last_hidden, last_cell = (torch.stack(parts) for parts in zip(*outputs, strict=True))
        return y_ANP, last_hidden, last_cell

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Run the layer backwards. `d_x` is the gradient of the loss with respect to x."""
        d_y_ANP, d_hidden_ABP, d_cell_ABH = gradients
        differentiate = compiled(_differentiate)
        tasks = [
            partial(differentiate, d_y_ANP[a], d_hidden_ABP[a], d_cell_ABH[a], weights, kept, ctx.sizes, ctx.keep)
            for a, (weights, kept) in enumerate(ctx.directions)
        ]
        found = zip(*run_side_by_side(tasks), strict=True)
        return *(None if parts[0] is None else torch.stack(parts) for parts in found), None, None, None, None


def _run(
    x_NP: Tensor,
    hidden_BP: Tensor,
    cell_BH: Tensor,
    weights: Weights,
    sizes: List[int],  # noqa: UP006
    keep: List[Optional[Tensor]],  # noqa: UP006, UP045
    initial: Optional[Tuple[Tensor, Tensor]],  # noqa: UP006, UP045
) -> Kept:
    """Run all steps of one direction.

    hidden_BP, cell_BH (Tensor): The state at the start, replaced by the state after the last step of each sentence.
    x_NP, weights, sizes, keep, initial: As for `Recurrence.forward`.
    RETURNS (Kept): The output, and what the gradients need.
    """
    dtype, projection_HP = weights.weight_XG.dtype, weights.projection_HP
    cell_clip, output_clip = weights.cell_clip, weights.output_clip
    n_tokens, width, n_cells = x_NP.shape[0], x_NP.shape[1], cell_BH.shape[1]
    # tanh(x) is computed as 2 * sigmoid(2 x) - 1, which is several times faster on a CPU.
    weight_XG, bias_G = weights.weight_XG.clone(), weights.bias_G.clone()
    weight_XG[:, n_cells : 2 * n_cells].mul_(2)
    bias_G[n_cells : 2 * n_cells].mul_(2)
    inputs_NX = torch.empty((n_tokens, 2 * width), dtype=dtype, device=x_NP.device)
    inputs_NX[:, :width] = x_NP
    gates_NG = torch.empty((n_tokens, 4 * n_cells), dtype=x_NP.dtype, device=x_NP.device)
    cells_NH = torch.empty((n_tokens, n_cells), dtype=x_NP.dtype, device=x_NP.device)
    before_NH, tanh_NH = torch.empty_like(cells_NH), torch.empty_like(cells_NH)
    opened_NH = torch.empty((n_tokens, n_cells), dtype=dtype, device=x_NP.device)
    y_NP = opened_NH
    if projection_HP is not None:
        y_NP = torch.empty((n_tokens, width), dtype=dtype, device=x_NP.device)
    h, c = hidden_BP, cell_BH
    start = 0
    for step, size in enumerate(sizes):
        if size < len(c):
            hidden_BP[size : len(c)] = h[size:]
            cell_BH[size : len(c)] = c[size:]
            h, c = h[:size], c[:size]
        inputs_h, before = inputs_NX[start : start + size, width:], before_NH[start : start + size]
        keep_B1 = keep[step]
        if keep_B1 is None:
            inputs_h.copy_(h)
            before.copy_(c)
        else:
            torch.mul(h, keep_B1, out=inputs_h)
            torch.mul(c, keep_B1, out=before)
            if initial is not None:
                inputs_h.add_((1 - keep_B1) * initial[0])
                before.add_((1 - keep_B1) * initial[1])
        gates = gates_NG[start : start + size]
        gates.copy_(torch.addmm(bias_G, inputs_NX[start : start + size], weight_XG)).sigmoid_()
        i, j, f, o = gates.chunk(4, dim=-1)
        j.mul_(2).sub_(1)
        c = cells_NH[start : start + size]
        torch.mul(f, before, out=c).addcmul_(i, j)
        if cell_clip is not None:
            c.clamp_(-cell_clip, cell_clip)
        tanh_c = tanh_NH[start : start + size]
        torch.mul(c, 2, out=tanh_c).sigmoid_().mul_(2).sub_(1)
        h = opened_NH[start : start + size]
        h.copy_(o * tanh_c)
        if projection_HP is not None:
            h = y_NP[start : start + size]
            torch.mm(opened_NH[start : start + size], projection_HP, out=h)
            if output_clip is not None:
                h.clamp_(-output_clip, output_clip)  # TensorFlow's cell clips only what it projects
        start += size
    hidden_BP[: len(h)] = h
    cell_BH[: len(c)] = c
    return Kept(inputs_NX, gates_NG, before_NH, cells_NH, tanh_NH, opened_NH, y_NP)


def _differentiate(
    d_y_NP: Tensor,
    d_hidden_BP: Tensor,
    d_cell_BH: Tensor,
    weights: Weights,
    kept: Kept,
    sizes: List[int],  # noqa: UP006
    keep: List[Optional[Tensor]],  # noqa: UP006, UP045
) -> Tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Optional[Tensor]]:  # noqa: UP006, UP045
    """Run all steps of one direction backwards.

    d_y_NP, d_hidden_BP, d_cell_BH (Tensor): The gradients with respect to the output and the state at the end.
    weights, kept, sizes, keep: As in `_run`.
    RETURNS (tuple): Those with respect to input, hidden state, memory cells, weight, bias and projection.
    """
    projection_HP, cell_clip, output_clip = weights.projection_HP, weights.cell_clip, weights.output_clip
    dtype, width, n_cells = d_y_NP.dtype, d_hidden_BP.shape[1], d_cell_BH.shape[1]
    d_hidden_BP, d_cell_BH = d_hidden_BP.clone(), d_cell_BH.clone()
    scratch_BG = torch.empty((len(d_cell_BH), 4 * n_cells), dtype=dtype, device=d_y_NP.device)
    d_opened_BH = torch.empty_like(d_cell_BH)
    d_inputs_NX, d_output_NP = torch.empty_like(kept.inputs_NX), torch.empty_like(kept.y_NP)
    d_gates_NG = torch.empty_like(kept.gates_NG, dtype=weights.weight_XG.dtype)
    start = len(d_y_NP)
    for step in range(len(sizes) - 1, -1, -1):
        size, stop = sizes[step], start
        start -= size
        # Short sentences are reached late. Until then, the last rows have the gradients of their end.
        d_h, d_c = d_hidden_BP[:size], d_cell_BH[:size]
        d_gates, d_opened = scratch_BG[:size], d_opened_BH[:size]
        gates, tanh_c = kept.gates_NG[start:stop], kept.tanh_NH[start:stop]
        i, j, f, o = gates.chunk(4, dim=-1)
        d_i, d_j, d_f, d_o = d_gates.chunk(4, dim=-1)
        if projection_HP is None:
            torch.add(d_h, d_y_NP[start:stop], out=d_opened)
        else:
            d_output = d_output_NP[start:stop]
            d_output.copy_(d_h.add_(d_y_NP[start:stop]))
            if output_clip is not None:
                y = kept.y_NP[start:stop]
                torch.ops.aten.hardtanh_backward(d_output, y, -output_clip, output_clip, grad_input=d_output)
            d_opened.copy_(torch.mm(d_output, projection_HP.t()))
        torch.mul(d_opened, tanh_c, out=d_o)
        d_opened.mul_(o)
        d_c.add_(torch.ops.aten.tanh_backward(d_opened, tanh_c, grad_input=d_opened))
        if cell_clip is not None:
            c = kept.cells_NH[start:stop]
            torch.ops.aten.hardtanh_backward(d_c, c, -cell_clip, cell_clip, grad_input=d_c)
        torch.mul(d_c, j, out=d_i)
        torch.mul(d_c, i, out=d_j)
        torch.mul(d_c, kept.before_NH[start:stop], out=d_f)
        d_c.mul_(f)
        torch.ops.aten.sigmoid_backward(d_i, i, grad_input=d_i)
        torch.ops.aten.tanh_backward(d_j, j, grad_input=d_j)
        torch.ops.aten.sigmoid_backward(d_f, f, grad_input=d_f)
        torch.ops.aten.sigmoid_backward(d_o, o, grad_input=d_o)
        d_gates_NG[start:stop] = d_gates
        torch.mm(d_gates_NG[start:stop], weights.weight_XG.t(), out=d_inputs_NX[start:stop])
        d_h.copy_(d_inputs_NX[start:stop, width:])
        keep_B1 = keep[step]
        if keep_B1 is not None:
            d_h.mul_(keep_B1)
            d_c.mul_(keep_B1)
    d_weight = torch.mm(kept.inputs_NX.t(), d_gates_NG).to(dtype)
    d_bias = torch.mm(torch.ones((1, len(d_gates_NG)), dtype=d_gates_NG.dtype, device=d_y_NP.device), d_gates_NG)
    d_projection: Optional[Tensor] = None  # noqa: UP045
    if projection_HP is not None:
        d_projection = torch.mm(kept.opened_NH.t(), d_output_NP).to(dtype)
    return d_inputs_NX[:, :width].to(dtype), d_hidden_BP, d_cell_BH, d_weight, d_bias[0].to(dtype), d_projection
