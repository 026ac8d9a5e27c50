"""LSTM layers for prediction alone, in float32: their weights are in the layout that is fastest."""

from typing import Any, cast

import torch
from torch import Tensor, nn

from .lstm import BiLSTMLayer, make_directions
from .model import BiLM
from .prediction import DirectionWeights
from .products import Matrix, can_pack, pack, unpack
from .recurrence import Clips

# A packed product takes some microseconds more to start. For a single row, that pays only from this many weights on.
WORTH_PACKING = 2**20


def pack_layers(bilm: BiLM) -> BiLM:
    """Replace the LSTM layers of a model by layers that only predict, with the same results.

    bilm (BiLM): The model. It cannot be trained any more.
    RETURNS (BiLM): The model itself.
    """
    if can_pack(bilm.any_weight):
        layers = [cast(BiLSTMLayer, layer) for layer in bilm.lstm.layers]
        bilm.lstm.layers = nn.ModuleList(PackedLayer(layer.state_dict(), layer.clips) for layer in layers)
    return bilm


class PackedLayer(nn.Module):
    """A layer whose weights are packed for oneDNN. Its state dict has them as the layer that it replaces.

    tensors (dict[str, Tensor]): The state dict of a BiLSTMLayer.
    clips (Clips): Its clips.
    """

    def __init__(self, tensors: dict[str, Tensor], clips: Clips) -> None:
        super().__init__()
        self._bias_AG, self._clips = tensors["bias"], clips
        self._directions = [_pack_direction(direction) for direction in make_directions(tensors, clips)]

    def directions(self) -> list[DirectionWeights]:
        """RETURNS (list[DirectionWeights]): The weights of each direction."""
        return self._directions

    def _unpack(self) -> dict[str, Tensor]:
        """RETURNS (dict[str, Tensor]): The state dict of the layer that it replaces."""
        pairs = [(direction.input, direction.hidden) for direction in self._directions]
        weights = [torch.cat([unpack(matrix.weight) for matrix in pair]) for pair in pairs]
        tensors = {"weight": torch.stack(weights), "bias": self._bias_AG}
        projections = [direction.projection for direction in self._directions if direction.projection is not None]
        if projections:
            tensors["projection"] = torch.stack([unpack(matrix.weight) for matrix in projections])
        return tensors

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        destination.update({prefix + name: tensor for name, tensor in self._unpack().items()})

    # Packed weights can be neither copied nor pickled. But nothing in a layer ever changes.
    def __deepcopy__(self, memo: dict[int, Any]) -> "PackedLayer":
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        # As arrays: multiprocessing would send tensors by references to memory that ends with this function.
        return _from_arrays, ({name: tensor.numpy() for name, tensor in self._unpack().items()}, self._clips)


def _from_arrays(arrays: dict[str, Any], clips: Clips) -> PackedLayer:
    return PackedLayer({name: torch.from_numpy(array) for name, array in arrays.items()}, clips)


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
