"""The LSTM without gradients: the layers of a batch of sentences, as fast as a CPU can compute them."""

from collections.abc import Callable
from functools import partial
from itertools import accumulate
from typing import cast

import torch
from torch import Tensor

from .lstm import BiLSTM, State
from .products import LayerProducts, PredictionLayer
from .threads import run_side_by_side

# The number of gates that are computed from the input in one product. They stay in the processor's cache until the hidden
# state is added, and more rows would not make the product faster.
BLOCK_GATES = 2**20

# The multiplications of one step and direction from which on the directions run side by side. With fewer, the threads
# would wait for each other's turn in Python for longer than they compute.
SIDE_BY_SIDE = 2**17

# Writes what depends on the input into the gates of some tokens, gates_ANG.
WriteGates = Callable[[slice, Tensor], None]


def predict(lstm: BiLSTM, types_UP: Tensor, types_AN: Tensor, sizes: list[int], state: State) -> tuple[Tensor, State]:
    """Run all layers over a packed batch.

    lstm (BiLSTM): The LSTM.
    types_UP (Tensor): The vectors of the batch's word types.
    types_AN (Tensor): The type of each token, in the reading order of each direction.
    sizes (list[int]): The number of sentences that have a token at each step.
    state (State): The state of each of them at the start.
    RETURNS (tuple): layers_LANP, each direction in its own reading order, the token vectors first, and the state after the
        last step of each sentence.
    """
    n_tokens, width = types_AN.shape[1], types_UP.shape[1]
    layers_LANP = types_UP.new_empty(len(lstm.layers) + 1, 2, n_tokens, width)
    end = State(state.hidden.clone(), state.cell.clone())
    run = partial(_run_directions, lstm, types_UP, types_AN, sizes, end, layers_LANP)
    if n_tokens / len(sizes) * width * state.cell.shape[-1] > SIDE_BY_SIDE:
        run_side_by_side([partial(run, slice(0, 1)), partial(run, slice(1, 2))])
    else:
        run(slice(0, 2))
    return layers_LANP, end


def _run_directions(
    lstm: BiLSTM,
    types_UP: Tensor,
    types_AN: Tensor,
    sizes: list[int],
    state: State,
    layers_LANP: Tensor,
    own: slice,
) -> None:
    """Run all layers of one direction or both, and write to `state` and `layers_LANP`."""
    types_AN, layers_LANP = types_AN[own], layers_LANP[:, own]
    last_rows = _last_rows(sizes)
    torch.index_select(types_UP, 0, types_AN.flatten(), out=layers_LANP[0].flatten(0, 1))
    for i, layer in enumerate(lstm.layers):
        x_ANP, y_ANP = layers_LANP[i], layers_LANP[i + 1]
        hidden_ABP, cell_ABH = state.hidden[i, own], state.cell[i, own]
        products = cast(PredictionLayer, layer).products(own)
        write_gates = (
            _gates_by_type(products, types_UP, types_AN) if i == 0 else partial(_gates_by_token, products, x_ANP)
        )
        _run_layer(products, write_gates, sizes, hidden_ABP, cell_ABH, y_ANP)
        hidden_ABP.copy_(y_ANP[:, last_rows])
        if lstm.skip_connections and i > 0:
            y_ANP += x_ANP  # not part of the hidden state, which is the layer's own output


def _gates_by_type(products: LayerProducts, types_UP: Tensor, types_AN: Tensor) -> WriteGates:
    """Multiply the vector of each type once, and look up the gates of each token."""
    n_directions, n_types = len(types_AN), len(types_UP)
    by_type_AUG = products.bias_A1G.repeat(1, n_types, 1)
    products.input.add(types_UP.expand(n_directions, -1, -1), by_type_AUG)

    def write(tokens: slice, gates_ANG: Tensor) -> None:
        for by_type_UG, types_N, gates_NG in zip(
            by_type_AUG.unbind(), types_AN.unbind(), gates_ANG.unbind(), strict=True
        ):
            torch.index_select(by_type_UG, 0, types_N[tokens], out=gates_NG)

    return write


def _gates_by_token(products: LayerProducts, x_ANP: Tensor, tokens: slice, gates_ANG: Tensor) -> None:
    gates_ANG.copy_(products.bias_A1G)
    products.input.add(x_ANP[:, tokens], gates_ANG)


def _run_layer(
    products: LayerProducts,
    write_gates: WriteGates,
    sizes: list[int],
    h_ABP: Tensor,
    cell_ABH: Tensor,
    y_ANP: Tensor,
) -> None:
    """Run one layer step by step.

    tanh(x) is computed as 2 * sigmoid(2 x) - 1, which is several times faster on a CPU. So the memory cells are doubled.

    h_ABP (Tensor): The hidden state at the start.
    cell_ABH (Tensor): The memory cells at the start, replaced by those after the last step of each sentence.
    y_ANP (Tensor): Gets the hidden states of all tokens.
    """
    cell_clip, output_clip = products.clips
    n_gates = products.bias_A1G.shape[-1]
    blocks = _blocks(sizes, BLOCK_GATES // n_gates)
    scratch_ANG = y_ANP.new_empty(len(y_ANP), max(map(sum, blocks)), n_gates)
    twice_cell_ABH = 2 * cell_ABH
    c, opened = twice_cell_ABH, torch.empty_like(twice_cell_ABH)
    outputs = iter(torch.split(y_ANP, sizes, dim=1))
    start = 0
    for block in blocks:
        tokens = slice(start, start + sum(block))
        gates_ANG = scratch_ANG[:, : sum(block)]
        write_gates(tokens, gates_ANG)
        start = tokens.stop
        parts = [torch.split(part, block, dim=1) for part in (gates_ANG, *gates_ANG.chunk(4, dim=-1))]
        for size, gates, i, j, f, o in zip(block, *parts, strict=True):
            if size < c.shape[1]:
                h_ABP, c, opened = h_ABP[:, :size], c[:, :size], opened[:, :size]
            products.hidden.add(h_ABP, gates)
            j.mul_(2)
            gates.sigmoid_()
            c.mul_(f).addcmul_(i, j, value=4).sub_(i, alpha=2)
            if cell_clip is not None:
                c.clamp_(-2 * cell_clip, 2 * cell_clip)
            torch.sigmoid(c, out=opened).mul_(2).sub_(1).mul_(o)
            h_ABP = next(outputs)
            if products.projection is None:
                h_ABP.copy_(opened)
            else:
                products.projection.write(opened, h_ABP)
                if output_clip is not None:
                    h_ABP.clamp_(-output_clip, output_clip)  # TensorFlow's cell clips only what it projects
    torch.div(twice_cell_ABH, 2, out=cell_ABH)


def _blocks(sizes: list[int], max_rows: int) -> list[list[int]]:
    """Group steps into blocks of up to `max_rows` tokens, or of one step."""
    blocks: list[list[int]] = [[]]
    n_rows = 0
    for size in sizes:
        if blocks[-1] and n_rows + size > max_rows:
            blocks.append([])
            n_rows = 0
        blocks[-1].append(size)
        n_rows += size
    return blocks


def _last_rows(sizes: list[int]) -> list[int]:
    """List the packed row of each sentence's last step."""
    rows = list(range(sizes[0]))
    for start, size in zip(accumulate(sizes[:-1]), sizes[1:], strict=True):
        rows[:size] = range(start, start + size)
    return rows
