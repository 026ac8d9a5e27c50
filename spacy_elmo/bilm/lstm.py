"""The LSTM of ELMo, with clipping and a projection, both directions at once. The state is an argument and a result.

torch.nn.LSTM has projections but no clipping, so it cannot run published weights.

Shape suffixes, here and in the rest of bilm/: A direction (0 forward, 1 backward), B sentence, T step or token of one
sentence, N token of the packed batch, U word type, L layer, P projection, W the projections of both directions, H
memory cells, G the four gates, X input and hidden state. W, G and X are concatenations.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy
import torch
from torch import Tensor, nn
from torch.nn import functional

from .config import BiLMConfig
from .recurrence import Recurrence, advance, clip_output, reset_rows

# The number of tokens whose gates are computed in one product. The first layer has one product for all word types of a
# batch instead. At the original size the gates of a token take 128 kB, and more rows do not make the product faster.
BLOCK_ROWS = 512

Dropout = Callable[[Tensor], Tensor]


class State(NamedTuple):
    """The state of the LSTMs between two tokens, for every layer and direction.

    hidden_LABP (Tensor): The projected outputs, which are inputs of the next step.
    cell_LABH (Tensor): The memory cells.
    """

    hidden: Tensor
    cell: Tensor


class Packing(NamedTuple):
    """The rows of a batch's tokens in one long array without padding.

    Sentences are sorted by length, longest first. Step t of all sentences precedes step t + 1 of any. Both directions
    have the same packing, because a sentence is as long backwards.

    sizes (list[int]): The number of sentences that have a token at each step.
    rows_N (Tensor): The row of each token, for tokens in reading order (sentence by sentence).
    mirror_N (Tensor): For each row, the row that the backward direction reads instead. It is its own inverse.
    """

    sizes: list[int]
    rows_N: Tensor
    mirror_N: Tensor

    @classmethod
    def from_lengths(cls, lengths: list[int], device: torch.device) -> "Packing":
        """Compute the packing of a batch.

        lengths (list[int]): The lengths of the sentences, with marks, longest first.
        device (torch.device): The device of the batch.
        RETURNS (Packing): The packing.
        """
        length_B = numpy.asarray(lengths)
        if (numpy.diff(length_B) > 0).any() or length_B[-1] < 1:
            raise ValueError(f"Expected lengths of 1 or more, longest first, got {lengths!r:.80}.")
        step_T = numpy.arange(length_B[0])
        size_T = (length_B[None, :] > step_T[:, None]).sum(axis=1)
        offset_T = numpy.cumsum(size_T) - size_T
        sentence_N = numpy.repeat(numpy.arange(len(lengths)), length_B)
        step_N = numpy.concatenate([step_T[:length] for length in lengths])
        rows_N = offset_T[step_N] + sentence_N
        mirror_N = numpy.empty_like(rows_N)
        mirror_N[rows_N] = offset_T[length_B[sentence_N] - 1 - step_N] + sentence_N
        return cls(size_T.tolist(), torch.as_tensor(rows_N).to(device), torch.as_tensor(mirror_N).to(device))


class BiLSTM(nn.Module):
    """A stack of LSTM layers in each direction. The directions are independent.

    config (BiLMConfig): The sizes.
    """

    def __init__(self, config: BiLMConfig) -> None:
        super().__init__()
        self.layers = nn.ModuleList(BiLSTMLayer(config) for _ in range(config.depth))
        self.skip_connections = config.skip_connections

    def forward(
        self,
        types_UP: Tensor,
        types_AN: Tensor,
        sizes: list[int],
        state: State,
        *,
        keep: list[Tensor | None] | None = None,
        initial: State | None = None,
        dropout: Dropout | None = None,
    ) -> tuple[list[Tensor], State]:
        """Run all layers over a packed batch.

        types_UP (Tensor): The vectors of the batch's word types.
        types_AN (Tensor): The type of each token, in the reading order of each direction.
        sizes (list[int]): The number of sentences, or rows, that have a token at each step.
        state (State): The state of each of them at the start.
        keep (list[Tensor | None] | None): For each step, keep_B1: the rows that keep their state, in training. The
            state of the other rows is reset before the step.
        initial (State | None): The state that rows are reset to, hidden_LAP and cell_LAH; None for zeros.
        dropout (Dropout | None): Dropout of each layer's input, in training.
        RETURNS (tuple): One outputs_ANP for each layer, each direction in its own reading order, and the state after
            the last step of each sentence.
        """
        if dropout is None and not torch.is_grad_enabled():
            # The first layer multiplies each type once, not each token.
            x = types_UP.expand(2, -1, -1)
            rows_AN: Tensor | None = types_AN + types_AN.new_tensor([[0], [len(types_UP)]])
        else:
            # In full precision, because the gradients of all tokens of a frequent word are summed.
            x, rows_AN = functional.embedding(types_AN, types_UP.to(state.cell.dtype)), None
        outputs: list[Tensor] = []
        hidden, cell = [], []
        for i, layer in enumerate(self.layers):
            if dropout is not None:
                x = dropout(x)
            y_ANP, hidden_ABP, cell_ABH = layer(
                x,
                rows_AN,
                sizes,
                state.hidden[i],
                state.cell[i],
                keep,
                initial and (initial.hidden[i], initial.cell[i]),
            )
            # The residual is not part of the hidden state, which is the layer's own output.
            outputs.append(x + y_ANP if self.skip_connections and outputs else y_ANP)
            x, rows_AN = outputs[-1], None
            hidden.append(hidden_ABP)
            cell.append(cell_ABH)
        return outputs, State(torch.stack(hidden), torch.stack(cell))


class BiLSTMLayer(nn.Module):
    """One layer, with both directions in one batched product.

    The rows of weight_AXG are those of the input, then those of the hidden state. Its columns are the input gate, the
    new values, the forget gate and the output gate, as in the published files.

    config (BiLMConfig): The sizes.
    """

    def __init__(self, config: BiLMConfig) -> None:
        super().__init__()
        self.cell_clip = config.cell_clip
        self.projection_clip = config.projection_clip
        # The input of every layer is a projected output, so input and hidden state have the same width.
        self.weight = nn.Parameter(torch.empty(2, 2 * config.projection, 4 * config.cells))
        self.bias = nn.Parameter(torch.empty(2, 4 * config.cells))
        self.projection = (
            nn.Parameter(torch.empty(2, config.cells, config.projection)) if config.cells != config.projection else None
        )

    def forward(
        self,
        x: Tensor,
        rows_AN: Tensor | None,
        sizes: list[int],
        hidden_ABP: Tensor,
        cell_ABH: Tensor,
        keep: list[Tensor | None] | None = None,
        initial: tuple[Tensor, Tensor] | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Run one layer over a packed batch.

        x (Tensor): The layer's inputs: x_AUP, each word type once, or x_ANP, one for each token.
        rows_AN (Tensor | None): The row of each token in x_AUP, counted over both directions; None with x_ANP.
        sizes (list[int]): The number of sentences at each step.
        hidden_ABP, cell_ABH (Tensor): The state at the start.
        keep (list[Tensor | None] | None): For each step, the rows that keep their state. The others are reset.
        initial (tuple | None): The state that rows are reset to, hidden_AP and cell_AH; None for zeros.
        RETURNS (tuple): y_ANP, and hidden_ABP and cell_ABH after the last step of each sentence.
        """
        keep = keep or [None] * len(sizes)
        if torch.is_grad_enabled():
            weights = (self.weight, _add_to_forget_gate(self.bias), self.projection)
            clips = (self.cell_clip, self.projection_clip)
            result: tuple[Tensor, Tensor, Tensor] = Recurrence.apply(  # type: ignore[no-untyped-call]
                x, hidden_ABP, cell_ABH, *weights, clips, sizes, keep, initial
            )
            return result
        hidden_weight_APG = self.weight.chunk(2, dim=1)[1]
        outputs: list[Tensor] = []
        finished: list[tuple[Tensor, Tensor]] = []
        h, c = hidden_ABP, cell_ABH
        for gates, size, keep_B1 in zip(self._input_gates(x, rows_AN, sizes), sizes, keep, strict=True):
            if size < h.shape[1]:
                finished.append((h[:, size:], c[:, size:]))
                h, c = h[:, :size], c[:, :size]
            if keep_B1 is not None:
                h, c = reset_rows(h, c, keep_B1, initial)
            gates.baddbmm_(h, hidden_weight_APG)
            c, tanh_c = advance(gates, c, self.cell_clip)
            h = gates.chunk(4, dim=-1)[3] * tanh_c
            if self.projection is not None:
                # TensorFlow's cell clips only what it projects.
                h = clip_output(torch.bmm(h, self.projection), self.projection_clip)
            outputs.append(h)
        finished.append((h, c))
        last_hidden, last_cell = zip(*reversed(finished), strict=True)
        return torch.cat(outputs, dim=1), torch.cat(last_hidden, dim=1), torch.cat(last_cell, dim=1)

    def _input_gates(self, x: Tensor, rows_AN: Tensor | None, sizes: list[int]) -> Iterator[Tensor]:
        """Compute the part of each step's gates that depends on the input: a few large products, without a loop over time."""
        weight_APG = self.weight.chunk(2, dim=1)[0]
        bias_A1G = _add_to_forget_gate(self.bias).unsqueeze(1)
        if rows_AN is not None:
            gates = torch.baddbmm(bias_A1G, x, weight_APG).flatten(0, 1)
            for rows in torch.split(rows_AN, sizes, dim=1):
                yield functional.embedding(rows, gates)
            return
        for start, block in _blocks(sizes):
            gates_ANG = torch.baddbmm(bias_A1G, x[:, start : start + sum(block)], weight_APG)
            yield from torch.split(gates_ANG, block, dim=1)


def _blocks(sizes: list[int]) -> Iterator[tuple[int, list[int]]]:
    """Group steps into blocks of about BLOCK_ROWS tokens. Yields the first row of a block, and the sizes of its steps."""
    start, n_rows = 0, 0
    block: list[int] = []
    for size in sizes:
        block.append(size)
        n_rows += size
        if n_rows >= BLOCK_ROWS:
            yield start, block
            start, n_rows, block = start + n_rows, 0, []
    if block:
        yield start, block


def _add_to_forget_gate(bias_AG: Tensor) -> Tensor:
    """Add 1 to the bias of the forget gate. TensorFlow adds it at run time: published files do not contain it."""
    i, j, f, o = bias_AG.chunk(4, dim=-1)
    return torch.cat([i, j, f + 1.0, o], dim=-1)
