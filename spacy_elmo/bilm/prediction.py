"""The LSTM without gradients: the layers of a batch of sentences, as fast as a CPU can compute them.

Each direction is one call of a function that TorchScript runs. So a direction does not wait for the other one's turn in
Python, which would take longer than the products of a short sentence. No compiler is needed, and where TorchScript is
missing, the same function runs in Python.
"""

from functools import partial
from typing import List, NamedTuple, Optional  # noqa: UP035 (TorchScript does not know list[NamedTuple])

import torch
from torch import Tensor

from .compiled import compiled
from .products import Matrix, add_product, multiply, write_product
from .state import State
from .threads import run_in_turn, run_side_by_side

# The number of gates that are computed from the input in one product. They stay in the processor's cache until the hidden
# state is added, and more rows would not make the product faster.
BLOCK_GATES = 2**20

# A step of few rows takes as long as reading the weights. If those of one direction (projections have this many) fill the
# processor's cache, the directions take turns, each on all of torch's threads, and do not evict each other's weights.
FEW_ROWS = 4
MANY_WEIGHTS = 2**21


class DirectionWeights(NamedTuple):
    """The weights of one direction of a layer.

    input, hidden (Matrix): Input and hidden state to gates.
    bias_G (Tensor): The bias of the gates, with the 1 of the forget gate.
    projection (Matrix | None): Memory cells to hidden state.
    cell_clip, output_clip (float | None): The maximum absolute values of the memory cells and of the projected output.
    """

    input: Matrix
    hidden: Matrix
    bias_G: Tensor
    projection: Optional[Matrix]  # noqa: UP045
    cell_clip: Optional[float]  # noqa: UP045
    output_clip: Optional[float]  # noqa: UP045


def predict(
    weights: list[list[DirectionWeights]],
    types_UP: Tensor,
    types_AN: Tensor,
    sizes: list[int],
    state: State,
    *,
    skip_connections: bool,
) -> tuple[Tensor, State]:
    """Run all layers over a packed batch.

    weights (list): For each direction, the weights of each layer.
    types_UP (Tensor): The vectors of the batch's word types.
    types_AN (Tensor): The type of each token, in the reading order of each direction.
    sizes (list[int]): The number of sentences that have a token at each step.
    state (State): The state of each of them at the start.
    skip_connections (bool): Whether the input of each layer but the first is added to its output.
    RETURNS (tuple): layers_LANP, each direction in its own reading order, the token vectors first, and the state after the
        last step of each sentence.
    """
    layers_LANP = types_UP.new_empty(len(weights[0]) + 1, 2, types_AN.shape[1], types_UP.shape[1])
    end = State(state.hidden.clone(), state.cell.clone())
    run_direction = compiled(_run_direction)
    tensors = zip(layers_LANP.unbind(1), types_AN.unbind(), end.hidden.unbind(1), end.cell.unbind(1), strict=True)
    tasks = [
        partial(run_direction, *own, types_UP, weights[a], sizes, BLOCK_GATES, skip_connections)
        for a, own in enumerate(tensors)
    ]
    n_rows, n_weights = types_AN.shape[1] / len(sizes), types_UP.shape[1] * state.cell.shape[-1]
    if n_rows < FEW_ROWS and n_weights >= MANY_WEIGHTS:
        run_in_turn(tasks)
    else:
        run_side_by_side(tasks)
    return layers_LANP, end


def _run_direction(
    layers_LNP: Tensor,
    types_N: Tensor,
    hidden_LBP: Tensor,
    cell_LBH: Tensor,
    types_UP: Tensor,
    weights: List[DirectionWeights],  # noqa: UP006
    sizes: List[int],  # noqa: UP006
    block_gates: int,
    skip_connections: bool,
) -> None:
    """Run all layers of one direction.

    layers_LNP (Tensor): Gets the token vectors and the outputs of each layer.
    hidden_LBP, cell_LBH (Tensor): The state at the start, replaced by the state after the last step of each sentence.
    """
    torch.index_select(types_UP, 0, types_N, out=layers_LNP[0])
    for i, layer in enumerate(weights):
        x_NP, y_NP = layers_LNP[i], layers_LNP[i + 1]
        if i == 0:
            # One product for each type, and not for each token.
            gates_UG = multiply(types_UP, layer.input, layer.bias_G)
            _run_layer(y_NP, gates_UG, types_N, hidden_LBP[i], cell_LBH[i], layer, sizes, block_gates)
        else:
            _run_layer(y_NP, x_NP, None, hidden_LBP[i], cell_LBH[i], layer, sizes, block_gates)
            if skip_connections:
                y_NP += x_NP  # not part of the hidden state, which is the layer's own output


def _run_layer(
    y_NP: Tensor,
    source: Tensor,
    rows_N: Optional[Tensor],  # noqa: UP045
    hidden_BP: Tensor,
    cell_BH: Tensor,
    layer: DirectionWeights,
    sizes: List[int],  # noqa: UP006
    block_gates: int,
) -> None:
    """Run one layer of one direction.

    y_NP (Tensor): Gets the outputs.
    source (Tensor): The layer's inputs, x_NP, or with `rows_N` the part of the gates that depends on them, gates_UG.
    rows_N (Tensor | None): The row of each token in gates_UG.
    """
    projection, cell_clip, output_clip = layer.projection, layer.cell_clip, layer.output_clip
    block_rows = max(sizes[0], block_gates // len(layer.bias_G))
    block_NG = y_NP  # the first step makes the first block
    start, block_start, block_stop = 0, 0, 0
    cell_BH.mul_(2)
    h, c, s, opened = hidden_BP, cell_BH, torch.empty_like(cell_BH), torch.empty_like(cell_BH)
    for step, size in enumerate(sizes):
        if start == block_stop:
            block_start = start
            for next_size in sizes[step:]:
                if block_stop + next_size - start > block_rows:
                    break
                block_stop += next_size
            if rows_N is None:
                block_NG = multiply(source[start:block_stop], layer.input, layer.bias_G)
            else:
                block_NG = source.index_select(0, rows_N[start:block_stop])
        if size < len(c):
            hidden_BP[size : len(c)] = h[size:]
            h, c, s, opened = h[:size], c[:size], s[:size], opened[:size]
        gates = block_NG[start - block_start : start - block_start + size]
        gates = add_product(gates, h, layer.hidden)
        i, j, f, o = gates.view(size, 4, cell_BH.shape[1]).unbind(1)  # faster than chunk
        # tanh(x) is 2 * sigmoid(2 x) - 1, and sigmoid is several times faster on a CPU. So the memory cells are doubled.
        j.add_(j)
        gates.sigmoid_()
        c.mul_(f).addcmul_(i, j, value=4).sub_(i, alpha=2)
        if cell_clip is not None:
            c.clamp_(-2 * cell_clip, 2 * cell_clip)
        torch.sigmoid(c, out=s)
        torch.neg(o, out=opened).addcmul_(o, s, value=2)
        h = y_NP[start : start + size]
        if projection is None:
            h.copy_(opened)
        else:
            write_product(h, opened, projection)
            if output_clip is not None:
                h.clamp_(-output_clip, output_clip)  # TensorFlow's cell clips only what it projects
        start += size
    hidden_BP[: len(h)] = h
    cell_BH.div_(2)
