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

    Each operation of the loops over time takes microseconds, and Python's lock changes hands around it. So there are as few
    as possible: all steps share the same few tensors, which are split into views of steps beforehand.

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
        self.sizes, self.keep = sizes, keep

    def run(
        self, x_NP: Tensor, hidden_BP: Tensor, cell_BH: Tensor, initial: tuple[Tensor, Tensor] | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Run all steps. Arguments and results are those of `Recurrence.forward`, of one direction."""
        dtype, sizes = self.weight_XG.dtype, self.sizes
        n_tokens, width, n_cells = *x_NP.shape, cell_BH.shape[1]
        # tanh(x) is computed as 2 * sigmoid(2 x) - 1, which is several times faster on a CPU.
        weight_XG, bias_G = self.weight_XG.clone(), self.bias_G.clone()
        for weights in (weight_XG, bias_G):
            weights.chunk(4, dim=-1)[1].mul_(2)
        minus_one = x_NP.new_tensor(-1.0)
        inputs_NX = x_NP.new_empty(n_tokens, 2 * width, dtype=dtype)
        inputs_NX[:, :width] = x_NP
        gates_NG = x_NP.new_empty(n_tokens, 4 * n_cells)
        before_NH, cells_NH, tanh_NH = (x_NP.new_empty(n_tokens, n_cells) for _ in range(3))
        opened_NH = x_NP.new_empty(n_tokens, n_cells, dtype=dtype)
        y_NP = opened_NH if self.projection_HP is None else x_NP.new_empty(n_tokens, width, dtype=dtype)
        all_steps = (inputs_NX, inputs_NX[:, width:], gates_NG, *gates_NG.chunk(4, -1))
        all_steps += (before_NH, cells_NH, tanh_NH, opened_NH, y_NP)
        h, c = hidden_BP, cell_BH
        finished: list[tuple[Tensor, Tensor]] = []
        for size, keep_B1, *views in zip(sizes, self.keep, *(part.split(sizes) for part in all_steps), strict=True):
            inputs, inputs_h, gates, i, j, f, o, before, cells, tanh_c, opened, y = views
            if size < len(h):
                finished.append((h[size:], c[size:]))
                h, c = h[:size], c[:size]
            if keep_B1 is None:
                inputs_h.copy_(h)
                before.copy_(c)
            else:
                torch.mul(h, keep_B1, out=inputs_h)
                torch.mul(c, keep_B1, out=before)
                if initial is not None:
                    inputs_h += ((1 - keep_B1) * initial[0]).to(dtype)
                    before += (1 - keep_B1) * initial[1]
            gates.copy_(torch.addmm(bias_G, inputs, weight_XG)).sigmoid_()
            torch.add(minus_one, j, alpha=2, out=j)
            c = torch.mul(f, before, out=cells).addcmul_(i, j)
            if self.cell_clip is not None:
                c.clamp_(-self.cell_clip, self.cell_clip)
            torch.add(minus_one, torch.mul(c, 2, out=tanh_c).sigmoid_(), alpha=2, out=tanh_c)
            h = torch.mul(o, tanh_c, out=opened)
            if self.projection_HP is not None:
                h = torch.mm(opened, self.projection_HP, out=y)
                # TensorFlow's cell clips only what it projects.
                if self.output_clip is not None:
                    h.clamp_(-self.output_clip, self.output_clip)
        self.kept = (inputs_NX, gates_NG, before_NH, cells_NH, tanh_NH, opened_NH, y_NP)
        finished.append((h, c))
        last_hidden, last_cell = (torch.cat(parts) for parts in zip(*reversed(finished), strict=True))
        return y_NP.to(x_NP.dtype), last_hidden.to(x_NP.dtype), last_cell

    def differentiate(self, d_y_NP: Tensor, d_hidden_BP: Tensor, d_cell_BH: Tensor) -> tuple[Tensor | None, ...]:
        """Run all steps backwards.

        d_y_NP, d_hidden_BP, d_cell_BH (Tensor): The gradients with respect to the results of `run`.
        RETURNS (tuple): Those with respect to input, hidden state, memory cells, weight, bias and projection.
        """
        inputs_NX, gates_NG, before_NH, cells_NH, tanh_NH, opened_NH, y_NP = self.kept
        width, n_cells = d_hidden_BP.shape[1], d_cell_BH.shape[1]
        # Rounded as in the forward pass.
        output_clip = None if self.output_clip is None else y_NP.new_tensor(self.output_clip).item()
        d_h_BP, d_c_BH = d_hidden_BP.clone(), d_cell_BH.clone()
        scratch = (d_h_BP, d_c_BH, torch.empty_like(d_h_BP), torch.empty_like(d_c_BH), d_y_NP.new_empty(len(d_h_BP), 4 * n_cells))
        d_inputs_NX, d_output_NP = torch.empty_like(inputs_NX), torch.empty_like(y_NP)
        d_gates_NG = torch.empty_like(gates_NG, dtype=inputs_NX.dtype)
        all_steps = (*gates_NG.chunk(4, -1), gates_NG, before_NH, cells_NH, tanh_NH, y_NP, d_y_NP, d_output_NP, d_gates_NG)
        all_steps += (d_inputs_NX, d_inputs_NX[:, width:])
        steps = list(zip(self.sizes, self.keep, *(part.split(self.sizes) for part in all_steps), strict=True))
        n_rows = 0
        for size, keep_B1, *views in reversed(steps):
            i, j, f, o, gates, before, cells, tanh_c, y, d_y, d_output, d_gates_out, d_inputs, d_inputs_h = views
            if size > n_rows:
                # Short sentences join. The other rows of d_h and d_c have the gradients of their end.
                n_rows = size
                d_h, d_c, d_sum, d_opened, d_gates = (part[:size] for part in scratch)
                d_i, d_j, d_f, d_o = d_gates.chunk(4, dim=-1)
                d_fo = d_gates[:, 2 * n_cells :]
            torch.add(d_h, d_y, out=d_sum)
            if self.projection_HP is None:
                d_opened.copy_(d_sum)
            else:
                _stop_at_clip(d_output.copy_(d_sum), y, output_clip)
                d_opened.copy_(torch.mm(d_output, self.projection_HP.T))
            torch.mul(d_opened, tanh_c, out=d_o)
            d_opened.mul_(o)
            d_c.add_(torch.ops.aten.tanh_backward.grad_input(d_opened, tanh_c, grad_input=d_opened))
            _stop_at_clip(d_c, cells, self.cell_clip)
            torch.mul(d_c, j, out=d_i)
            torch.mul(d_c, i, out=d_j)
            torch.mul(d_c, before, out=d_f)
            d_c.mul_(f)
            torch.ops.aten.sigmoid_backward.grad_input(d_i, i, grad_input=d_i)
            torch.ops.aten.tanh_backward.grad_input(d_j, j, grad_input=d_j)
            torch.ops.aten.sigmoid_backward.grad_input(d_fo, gates[:, 2 * n_cells :], grad_input=d_fo)
            d_gates_out.copy_(d_gates)
            torch.mm(d_gates_out, self.weight_XG.T, out=d_inputs)
            d_h.copy_(d_inputs_h)
            if keep_B1 is not None:
                d_h.mul_(keep_B1)
                d_c.mul_(keep_B1)
        dtype = d_y_NP.dtype
        d_weight = torch.mm(inputs_NX.T, d_gates_NG).to(dtype)
        d_bias = torch.mv(d_gates_NG.T, d_gates_NG.new_ones(len(d_gates_NG))).to(dtype)
        d_projection = None if self.projection_HP is None else torch.mm(opened_NH.T, d_output_NP).to(dtype)
        return d_inputs_NX[:, :width].to(dtype), d_h_BP, d_c_BH, d_weight, d_bias, d_projection


def _stop_at_clip(gradient: Tensor, value: Tensor, clip: float | None) -> None:
    """Set the gradient to zero where a value was clipped."""
    if clip is not None:
        torch.ops.aten.hardtanh_backward.grad_input(gradient, value, -clip, clip, grad_input=gradient)
