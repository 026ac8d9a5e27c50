"""All steps of one LSTM layer, with hand-written gradients.

Training spends most of its time here. Autograd would keep twice as many tensors and compute the gradient of the weights
step by step. Here a step is two products forward and two backward, and the gradient of the weights is one product for
all steps.

Shape suffixes: A direction, N token of the packed batch, B sentence or row, P projection, H memory cells, X input and
hidden state (2 P), G the four gates (4 H).
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from .precision import product_dtype

Clips = tuple[float | None, float | None]


def advance(gates_ABG: Tensor, cell_ABH: Tensor, clip: float | None) -> tuple[Tensor, Tensor]:
    """Apply the gates of one step. tanh(x) is computed as 2 * sigmoid(2 x) - 1, which is several times faster on a CPU.

    gates_ABG (Tensor): The gates before the activation, replaced by their sigmoids. The new values are doubled first.
    cell_ABH (Tensor): The memory cells before the step.
    clip (float | None): The maximum absolute value of a memory cell.
    RETURNS (tuple): The memory cells after the step, and their tanh.
    """
    i, j, f, _ = gates_ABG.chunk(4, dim=-1)
    j.mul_(2)
    gates_ABG.sigmoid_()
    cell_ABH = (f * cell_ABH).addcmul_(i, j, value=2).sub_(i)
    if clip is not None:
        cell_ABH.clamp_(-clip, clip)
    return cell_ABH, (2 * cell_ABH).sigmoid_().mul_(2).sub_(1)


def reset_rows(
    hidden_ABP: Tensor, cell_ABH: Tensor, keep_B1: Tensor, initial: tuple[Tensor, Tensor] | None
) -> tuple[Tensor, Tensor]:
    """Reset the state of some rows.

    hidden_ABP, cell_ABH (Tensor): The state of all rows.
    keep_B1 (Tensor): 1 for the rows that keep their state, 0 for the others.
    initial (tuple | None): The state that rows are reset to, hidden_AP and cell_AH; None for zeros.
    RETURNS (tuple): The state of all rows, hidden_ABP and cell_ABH.
    """
    hidden_ABP, cell_ABH = hidden_ABP * keep_B1.to(hidden_ABP.dtype), cell_ABH * keep_B1
    if initial is not None:
        hidden_AP, cell_AH = initial
        hidden_ABP += ((1 - keep_B1) * hidden_AP.unsqueeze(1)).to(hidden_ABP.dtype)
        cell_ABH += (1 - keep_B1) * cell_AH.unsqueeze(1)
    return hidden_ABP, cell_ABH


def clip_output(hidden_ABP: Tensor, clip: float | None) -> Tensor:
    """Clip the projected output, in place."""
    return hidden_ABP if clip is None else hidden_ABP.clamp_(-clip, clip)


class Recurrence(torch.autograd.Function):
    """All steps of one layer, both directions. Products have autocast's precision, all else has that of x."""

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
        initial: tuple[Tensor, Tensor] | None = None,
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
        weight, bias_A1G = weight_AXG.to(dtype), bias_AG.to(dtype).unsqueeze(1)
        projection = None if projection_AHP is None else projection_AHP.to(dtype)
        cell_clip, output_clip = clips
        last_hidden, last_cell = hidden_ABP.clone(), cell_ABH.clone()
        h, c = hidden_ABP.to(dtype), cell_ABH
        steps: list[tuple[Tensor, ...]] = []
        for x, size, keep_B1 in zip(torch.split(x_ANP.to(dtype), sizes, dim=1), sizes, keep, strict=True):
            h, before = h[:, :size], c[:, :size]
            if keep_B1 is not None:
                h, before = reset_rows(h, before, keep_B1, initial)
            inputs_ABX = torch.cat([x, h], dim=-1)
            gates = torch.baddbmm(bias_A1G, inputs_ABX, weight).to(x_ANP.dtype)
            c, tanh_c = advance(gates, before, cell_clip)
            h = (gates.chunk(4, dim=-1)[3] * tanh_c).to(dtype)
            if projection is not None:
                h = clip_output(torch.bmm(h, projection), output_clip)
            steps.append((inputs_ABX, gates, before, c, tanh_c, h))
            last_hidden[:, :size], last_cell[:, :size] = h, c
        ctx.steps, ctx.sizes, ctx.keep, ctx.clips = steps, sizes, keep, clips
        ctx.save_for_backward(weight, projection)
        return torch.cat([step[-1] for step in steps], dim=1).to(x_ANP.dtype), last_hidden, last_cell

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Run the layer backwards. `d_x` is the gradient of the loss with respect to x."""
        d_y, d_last_hidden, d_last_cell = gradients
        weight_AXG, projection_AHP = ctx.saved_tensors
        cell_clip, output_clip = ctx.clips
        dtype, width = weight_AXG.dtype, d_y.shape[-1]
        n_tokens, n_gates = d_y.shape[1], weight_AXG.shape[-1]
        d_h, d_c = d_last_hidden.clone(), d_last_cell.clone()
        d_x = torch.empty_like(d_y)
        d_gates_ANG = weight_AXG.new_empty(2, n_tokens, n_gates)
        d_bias_AG = d_y.new_zeros(2, n_gates)
        scratch_ABG = d_y.new_empty(2, ctx.sizes[0], n_gates)
        d_output_ANP = weight_AXG.new_empty(2, n_tokens, width)
        # The loop reaches short sentences late. Until then, the last rows of d_h and d_c have the gradients of their end.
        end = n_tokens
        for step, size, keep_B1 in zip(reversed(ctx.steps), reversed(ctx.sizes), reversed(ctx.keep), strict=True):
            _, gates, before, c, tanh_c, h = step
            i, j, f, o = gates.chunk(4, dim=-1)
            rows = slice(end - size, end)
            end -= size
            d_step_h, d_step_c = d_h[:, :size], d_c[:, :size]
            d_output = d_step_h + d_y[:, rows]
            if projection_AHP is not None:
                _stop_at_clip(d_output, h, output_clip)
                d_output_ANP[:, rows] = d_output
                d_output = torch.bmm(d_output_ANP[:, rows], projection_AHP.transpose(1, 2)).to(d_y.dtype)
            through_o = d_output * o
            d_step_c.add_(through_o).sub_(through_o.mul_(tanh_c).mul_(tanh_c))
            _stop_at_clip(d_step_c, c, cell_clip)
            # First with respect to the sigmoids, then to their arguments. The new values are 2 * sigmoid(2 x) - 1, which
            # gives a factor of 2 * 2.
            d_gates = scratch_ABG[:, :size]
            d_i, d_j, d_f, d_o = d_gates.chunk(4, dim=-1)
            torch.mul(d_step_c, j, out=d_i).mul_(2).sub_(d_step_c)
            torch.mul(d_step_c, i, out=d_j).mul_(4)
            torch.mul(d_step_c, before, out=d_f)
            torch.mul(d_output, tanh_c, out=d_o)
            d_step_c.mul_(f)
            torch.ops.aten.sigmoid_backward.grad_input(d_gates, gates, grad_input=d_gates)
            d_bias_AG += d_gates.sum(dim=1)
            d_gates_ANG[:, rows] = d_gates
            d_inputs_ABX = torch.bmm(d_gates_ANG[:, rows], weight_AXG.transpose(1, 2))
            d_x[:, rows], d_h[:, :size] = torch.split(d_inputs_ABX, width, dim=-1)
            if keep_B1 is not None:
                d_step_h.mul_(keep_B1)
                d_step_c.mul_(keep_B1)
        inputs_ANX = torch.cat([step[0] for step in ctx.steps], dim=1)
        d_weight = torch.bmm(inputs_ANX.transpose(1, 2), d_gates_ANG).to(d_y.dtype)
        d_projection = None
        if projection_AHP is not None:
            opened_ANH = torch.cat([(g.chunk(4, -1)[3] * t).to(dtype) for _, g, _, _, t, _ in ctx.steps], dim=1)
            d_projection = torch.bmm(opened_ANH.transpose(1, 2), d_output_ANP).to(d_y.dtype)
        return d_x, d_h, d_c, d_weight, d_bias_AG, d_projection, None, None, None, None


def _stop_at_clip(gradient: Tensor, value: Tensor, clip: float | None) -> None:
    """Set the gradient to zero where a value was clipped."""
    if clip is not None:
        clip = torch.tensor(clip, dtype=value.dtype).item()  # rounded as in the forward pass
        torch.ops.aten.hardtanh_backward.grad_input(gradient, value, -clip, clip, grad_input=gradient)
