"""The LSTM of ELMo, with clipping and a projection, both directions at once. The state is an argument and a result.

torch.nn.LSTM has projections but no clipping, so it cannot run published weights.

Shape suffixes, here and in the rest of bilm/: A direction (0 forward, 1 backward), B sentence, T step or token of one
sentence, N token of the packed batch, U word type, L layer, P projection, W the projections of both directions, H
memory cells, G the four gates, X input and hidden state. W, G and X are concatenations.
"""

from collections.abc import Callable
from typing import Protocol, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from .config import BiLMConfig
from .prediction import DirectionWeights, predict
from .products import Matrix
from .recurrence import Clips, Recurrence
from .state import State

Dropout = Callable[[Tensor], Tensor]


class PredictingLayer(Protocol):
    """A layer that can predict: a `BiLSTMLayer`, or what a frozen biLM has in its place."""

    def directions(self) -> list[DirectionWeights]: ...


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
        """Run all layers over a packed batch, with gradients.

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
        # In full precision, because the gradients of all tokens of a frequent word are summed.
        x_ANP = functional.embedding(types_AN, types_UP.to(state.cell.dtype))
        outputs: list[Tensor] = []
        hidden, cell = [], []
        for i, layer in enumerate(self.layers):
            if dropout is not None:
                x_ANP = dropout(x_ANP)
            y_ANP, hidden_ABP, cell_ABH = layer(
                x_ANP,
                sizes,
                state.hidden[i],
                state.cell[i],
                keep,
                initial and (initial.hidden[i], initial.cell[i]),
            )
            # The residual is not part of the hidden state, which is the layer's own output.
            outputs.append(x_ANP + y_ANP if self.skip_connections and outputs else y_ANP)
            x_ANP = outputs[-1]
            hidden.append(hidden_ABP)
            cell.append(cell_ABH)
        return outputs, State(torch.stack(hidden), torch.stack(cell))

    def predict(self, types_UP: Tensor, types_AN: Tensor, sizes: list[int], state: State) -> tuple[Tensor, State]:
        """Run all layers over a packed batch, without gradients.

        types_UP, types_AN, sizes, state: As for `forward`.
        RETURNS (tuple): layers_LANP, the token vectors first, and the state after the last step of each sentence.
        """
        layers = [cast(PredictingLayer, layer).directions() for layer in self.layers]
        weights = [list(direction) for direction in zip(*layers, strict=True)]
        return predict(weights, types_UP, types_AN, sizes, state, skip_connections=self.skip_connections)


class BiLSTMLayer(nn.Module):
    """One layer, with both directions.

    The rows of weight_AXG are those of the input, then those of the hidden state. Its columns are the input gate, the
    new values, the forget gate and the output gate, as in the published files.

    config (BiLMConfig): The sizes.
    """

    def __init__(self, config: BiLMConfig) -> None:
        super().__init__()
        self.clips: Clips = (config.cell_clip, config.projection_clip)
        # The input of every layer is a projected output, so input and hidden state have the same width.
        self.weight = nn.Parameter(torch.empty(2, 2 * config.projection, 4 * config.cells))
        self.bias = nn.Parameter(torch.empty(2, 4 * config.cells))
        self.projection = (
            nn.Parameter(torch.empty(2, config.cells, config.projection)) if config.projects_cells else None
        )

    def forward(
        self,
        x_ANP: Tensor,
        sizes: list[int],
        hidden_ABP: Tensor,
        cell_ABH: Tensor,
        keep: list[Tensor | None] | None = None,
        initial: tuple[Tensor, Tensor] | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Run one layer over a packed batch.

        x_ANP (Tensor): The layer's inputs.
        sizes (list[int]): The number of sentences at each step.
        hidden_ABP, cell_ABH (Tensor): The state at the start.
        keep (list[Tensor | None] | None): For each step, the rows that keep their state. The others are reset.
        initial (tuple | None): The state that rows are reset to, hidden_AP and cell_AH; None for zeros.
        RETURNS (tuple): y_ANP, and hidden_ABP and cell_ABH after the last step of each sentence.
        """
        weights = (self.weight, add_to_forget_gate(self.bias), self.projection)
        result: tuple[Tensor, Tensor, Tensor] = Recurrence.apply(  # type: ignore[no-untyped-call]
            x_ANP, hidden_ABP, cell_ABH, *weights, self.clips, sizes, keep or [None] * len(sizes), initial
        )
        return result

    def directions(self) -> list[DirectionWeights]:
        """RETURNS (list[DirectionWeights]): The weights of each direction, for prediction. They are not copied."""
        return make_directions(dict(self.named_parameters()), self.clips)


def make_directions(tensors: dict[str, Tensor], clips: Clips) -> list[DirectionWeights]:
    """RETURNS (list[DirectionWeights]): The weights of each direction, from the tensors of a `BiLSTMLayer`. They are not
    copied."""
    bias_AG = add_to_forget_gate(tensors["bias"])
    directions = []
    for a in (0, 1):
        inputs, hidden = (Matrix(weight_PG) for weight_PG in tensors["weight"][a].chunk(2))
        projection = Matrix(tensors["projection"][a]) if "projection" in tensors else None
        directions.append(DirectionWeights(inputs, hidden, bias_AG[a], projection, *clips))
    return directions


def add_to_forget_gate(bias_AG: Tensor) -> Tensor:
    """Add 1 to the bias of the forget gate. TensorFlow adds it at run time: published files do not contain it."""
    i, j, f, o = bias_AG.chunk(4, dim=-1)
    return torch.cat([i, j, f + 1.0, o], dim=-1)
