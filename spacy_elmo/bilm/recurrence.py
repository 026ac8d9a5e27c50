"""All steps of one LSTM layer, with hand-written gradients.

Training spends most of its time here. Autograd would keep twice as many tensors and compute the gradient of the weights
step by step. Here a step is two products forward and two backward, and the gradient of the weights is one product for
all steps.

Shape suffixes: A direction, N token of the packed batch, B sentence or row, P projection, H memory cells, X input and
hidden state (2 P), G the four gates (4 H).
"""

from functools import partial
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from .precision import product_dtype
from .threads import run_side_by_side

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
        hidden_ABP += ((1 - keep_B1) * hidden_AP.unsqueeze(-2)).to(hidden_ABP.dtype)
        cell_ABH += (1 - keep_B1) * cell_AH.unsqueeze(-2)
    return hidden_ABP, cell_ABH


def clip_output(hidden_ABP: Tensor, clip: float | None) -> Tensor:
    """Clip the projected output, in place."""
    return hidden_ABP if clip is None else hidden_ABP.clamp_(-clip, clip)


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

        def run(a: int) -> tuple[_Direction, tuple[Tensor, Tensor, Tensor]]:
            projection_HP = None if projection_AHP is None else projection_AHP[a].to(dtype)
            direction = _Direction(weight_AXG[a].to(dtype), bias_AG[a].to(dtype), projection_HP, clips, sizes, keep)
            own_initial = None if initial is None else (initial[0][a], initial[1][a])
            return direction, direction.run(x_ANP[a], hidden_ABP[a], cell_ABH[a], own_initial)

        directions, outputs = zip(*run_side_by_side([partial(run, a) for a in (0, 1)]), strict=True)
        ctx.directions = directions
        y_ANP, last_hidden, last_cell = (torch.stack(parts) for parts in zip(*outputs, strict=True))
        return y_ANP, last_hidden, last_cell

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Run the layer backwards. `d_x` is the gradient of the loss with respect to x."""
        tasks = [partial(ctx.directions[a].differentiate, *(gradient[a] for gradient in gradients)) for a in (0, 1)]
        found = zip(*run_side_by_side(tasks), strict=True)
        return *(None if parts[0] is None else torch.stack(parts) for parts in found), None, None, None, None


class _Direction:
    """One direction of a layer, and what it keeps of a batch for the gradients.

    weight_XG, bias_G, projection_HP (Tensor): The weights, in the precision of products.
    clips, sizes, keep: Arguments of `Recurrence.forward`.
    """

    def __init__(
        self,
        weight_XG: Tensor,
        bias_G: Tensor,
        projection_HP: Tensor | None,
        clips: Clips,
        sizes: list[int],
        keep: list[Tensor | None],
    ) -> None:
        self.weight_XG, self.bias_G, self.projection_HP = weight_XG, bias_G, projection_HP
        self.cell_clip, self.output_clip = clips
        ends = list(accumulate(sizes))
        self.rows = [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]
        self.keep = keep

    def run(
        self, x_NP: Tensor, hidden_BP: Tensor, cell_BH: Tensor, initial: tuple[Tensor, Tensor] | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Run all steps. Arguments and results are those of `Recurrence.forward`, of one direction."""
        n_tokens, width = x_NP.shape
        self.inputs_NX = self.weight_XG.new_empty(n_tokens, 2 * width)
        self.inputs_NX[:, :width] = x_NP
        self.opened_NH = self.weight_XG.new_empty(n_tokens, cell_BH.shape[1])
        y_NP = self.opened_NH if self.projection_HP is None else self.weight_XG.new_empty(n_tokens, width)
        self.y_NP = y_NP
        self.steps: list[tuple[Tensor, Tensor, Tensor, Tensor]] = []
        last_hidden, last_cell = hidden_BP.clone(), cell_BH.clone()
        h, c = hidden_BP, cell_BH
        for rows, keep_B1 in zip(self.rows, self.keep, strict=True):
            size = rows.stop - rows.start
            h, before = h[:size], c[:size]
            if keep_B1 is not None:
                h, before = reset_rows(h, before, keep_B1, initial)
            self.inputs_NX[rows, width:] = h
            gates = torch.addmm(self.bias_G, self.inputs_NX[rows], self.weight_XG).to(x_NP.dtype)
            c, tanh_c = advance(gates, before, self.cell_clip)
            torch.mul(gates.chunk(4, dim=-1)[3], tanh_c, out=self.opened_NH[rows])
            h = y_NP[rows]
            if self.projection_HP is not None:
                clip_output(torch.mm(self.opened_NH[rows], self.projection_HP, out=h), self.output_clip)
            self.steps.append((gates, before, c, tanh_c))
            last_hidden[:size], last_cell[:size] = h, c
        return y_NP.to(x_NP.dtype), last_hidden, last_cell

    def differentiate(self, d_y_NP: Tensor, d_hidden_BP: Tensor, d_cell_BH: Tensor) -> tuple[Tensor | None, ...]:
        """Run all steps backwards.

        d_y_NP, d_hidden_BP, d_cell_BH (Tensor): The gradients with respect to the results of `run`.
        RETURNS (tuple): Those with respect to input, hidden state, memory cells, weight, bias and projection.
        """
        n_rows, width = d_hidden_BP.shape
        d_h, d_c = d_hidden_BP.clone(), d_cell_BH.clone()
        d_output_NP = torch.empty_like(self.y_NP)
        d_gates_NG = self.weight_XG.new_empty(len(d_y_NP), len(self.bias_G))
        d_inputs_NX = torch.empty_like(self.inputs_NX)
        d_bias_G = d_y_NP.new_zeros(len(self.bias_G))
        scratch_BG = d_y_NP.new_empty(n_rows, len(self.bias_G))
        # The loop reaches short sentences late. Until then, the last rows of d_h and d_c have the gradients of their end.
        for step, rows, keep_B1 in zip(reversed(self.steps), reversed(self.rows), reversed(self.keep), strict=True):
            gates, before, c, tanh_c = step
            i, j, f, o = gates.chunk(4, dim=-1)
            size = rows.stop - rows.start
            d_step_h, d_step_c = d_h[:size], d_c[:size]
            d_opened = d_step_h + d_y_NP[rows]
            if self.projection_HP is not None:
                _stop_at_clip(d_opened, self.y_NP[rows], self.output_clip)
                d_output_NP[rows] = d_opened
                d_opened = torch.mm(d_output_NP[rows], self.projection_HP.T).to(d_y_NP.dtype)
            through_o = d_opened * o
            d_step_c.add_(through_o).sub_(through_o.mul_(tanh_c).mul_(tanh_c))
            _stop_at_clip(d_step_c, c, self.cell_clip)
            # First with respect to the sigmoids, then to their arguments. The new values are 2 * sigmoid(2 x) - 1, which
            # gives a factor of 2 * 2.
            d_gates = scratch_BG[:size]
            d_i, d_j, d_f, d_o = d_gates.chunk(4, dim=-1)
            torch.mul(d_step_c, j, out=d_i).mul_(2).sub_(d_step_c)
            torch.mul(d_step_c, i, out=d_j).mul_(4)
            torch.mul(d_step_c, before, out=d_f)
            torch.mul(d_opened, tanh_c, out=d_o)
            d_step_c.mul_(f)
            torch.ops.aten.sigmoid_backward.grad_input(d_gates, gates, grad_input=d_gates)
            d_bias_G += d_gates.sum(dim=0)
            d_gates_NG[rows] = d_gates
            d_step_h.copy_(torch.mm(d_gates_NG[rows], self.weight_XG.T, out=d_inputs_NX[rows])[:, width:])
            if keep_B1 is not None:
                d_step_h.mul_(keep_B1)
                d_step_c.mul_(keep_B1)
        d_weight = torch.mm(self.inputs_NX.T, d_gates_NG).to(d_y_NP.dtype)
        d_projection = None
        if self.projection_HP is not None:
            d_projection = torch.mm(self.opened_NH.T, d_output_NP).to(d_y_NP.dtype)
        return d_inputs_NX[:, :width].to(d_y_NP.dtype), d_h, d_c, d_weight, d_bias_G, d_projection


def _stop_at_clip(gradient: Tensor, value: Tensor, clip: float | None) -> None:
    """Set the gradient to zero where a value was clipped."""
    if clip is not None:
        clip = torch.tensor(clip, dtype=value.dtype).item()  # rounded as in the forward pass
        torch.ops.aten.hardtanh_backward.grad_input(gradient, value, -clip, clip, grad_input=gradient)
