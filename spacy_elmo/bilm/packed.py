"""LSTM layers for prediction alone, in float32: their weights are in the layout that is fastest."""

from typing import Any, cast

import torch
from torch import Tensor, nn

from .lstm import BiLSTMLayer
from .model import BiLM
from .prediction import DirectionWeights
from .products import Matrix, can_pack, pack, unpack

# A packed product takes some microseconds more to start. For a single row, that pays only from this many weights on.
WORTH_PACKING = 2**20


def pack_layers(bilm: BiLM) -> BiLM:
    """Replace the LSTM layers of a model by layers that only predict, with the same results.

    bilm (BiLM): The model. It cannot be trained any more.
    RETURNS (BiLM): The model itself.
    """
    if can_pack(bilm.any_weight):
        layers = [cast(BiLSTMLayer, layer) for layer in bilm.lstm.layers]
        with torch.no_grad():
            bilm.lstm.layers = nn.ModuleList(PackedLayer(layer.directions(), layer.bias.detach()) for layer in layers)
    return bilm


class PackedLayer(nn.Module):
    """A layer whose weights are packed for oneDNN. Its state dict has them as the layer that it replaces.

    directions (list[DirectionWeights]): The weights of each direction.
    bias_AG (Tensor): The bias of the layer that it replaces.
    """

    def __init__(self, directions: list[DirectionWeights], bias_AG: Tensor) -> None:
        super().__init__()
        self._bias_AG = bias_AG
        self._directions = [_pack_direction(direction) for direction in directions]

    def directions(self) -> list[DirectionWeights]:
        """RETURNS (list[DirectionWeights]): The weights of each direction."""
        return self._directions

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        directions = [_unpack_direction(direction) for direction in self._directions]
        weights = [torch.cat([direction.input.weight, direction.hidden.weight]) for direction in directions]
        destination[f"{prefix}weight"] = torch.stack(weights)
        destination[f"{prefix}bias"] = self._bias_AG
        projections = [direction.projection.weight for direction in directions if direction.projection is not None]
        if projections:
            destination[f"{prefix}projection"] = torch.stack(projections)

    # Packed weights can be neither copied nor pickled. But nothing in a layer ever changes.
    def __deepcopy__(self, memo: dict[int, Any]) -> "PackedLayer":
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        # As arrays: multiprocessing would send tensors by references to memory that ends with this function.
        return _from_arrays, (
            [_to_arrays(_unpack_direction(direction)) for direction in self._directions],
            self._bias_AG.numpy(),
        )


def _pack_direction(direction: DirectionWeights) -> DirectionWeights:
    return direction._replace(
        input=Matrix(pack(direction.input.weight)),
        hidden=_pack_if_large(direction.hidden),
        projection=None if direction.projection is None else _pack_if_large(direction.projection),
    )


def _pack_if_large(matrix: Matrix) -> Matrix:
    """Pack weights that are at times multiplied with a single row, unlike those of the input."""
    weight_KM = matrix.weight
    return Matrix(pack(weight_KM) if weight_KM.numel() >= WORTH_PACKING else weight_KM.detach().clone())


def _unpack_direction(direction: DirectionWeights) -> DirectionWeights:
    return direction._replace(
        input=Matrix(unpack(direction.input.weight)),
        hidden=Matrix(unpack(direction.hidden.weight)),
        projection=None if direction.projection is None else Matrix(unpack(direction.projection.weight)),
    )


def _to_arrays(direction: DirectionWeights) -> tuple[Any, ...]:
    projection = None if direction.projection is None else direction.projection.weight.numpy()
    return (
        direction.input.weight.numpy(),
        direction.hidden.weight.numpy(),
        direction.bias_G.numpy(),
        projection,
        direction.cell_clip,
        direction.output_clip,
    )


def _from_arrays(directions: list[tuple[Any, ...]], bias_AG: Any) -> PackedLayer:
    tensors = []
    for inputs, hidden, bias_G, projection, *clips in directions:
        matrices = [
            None if array is None else Matrix(torch.from_numpy(array)) for array in (inputs, hidden, projection)
        ]
        tensors.append(DirectionWeights(matrices[0], matrices[1], torch.from_numpy(bias_G), matrices[2], *clips))  # type: ignore[arg-type]
    return PackedLayer(tensors, torch.from_numpy(bias_AG))
