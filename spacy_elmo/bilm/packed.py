"""Layers for prediction alone, in float32: their weights are in the layout that is fastest."""

from typing import Any, cast

import torch
from torch import Tensor, nn

from .char_cnn import Filters, unfold
from .lstm import BiLSTMLayer, make_directions
from .model import BiLM
from .prediction import DirectionWeights
from .products import Matrix, can_pack, multiply, pack, unpack
from .recurrence import Clips

# A packed product takes some microseconds more to start. For a single row, that pays only from this many weights on. Smaller
# weights are kept as they are for single rows, and packed for several.
MANY_WEIGHTS = 2**20


def pack_layers(bilm: BiLM) -> BiLM:
    """Replace the layers of a model by layers that only predict, with the same results.

    bilm (BiLM): The model. It cannot be trained any more.
    RETURNS (BiLM): The model itself.
    """
    if can_pack(bilm.any_weight):
        layers = [cast(BiLSTMLayer, layer) for layer in bilm.lstm.layers]
        bilm.lstm.layers = nn.ModuleList(PackedLayer(layer.state_dict(), layer.clips) for layer in layers)
        pack_filters(bilm)
        for module in [bilm.char_cnn, *bilm.char_cnn.highways]:
            for name, linear in list(module.named_children()):
                if isinstance(linear, nn.Linear):
                    setattr(module, name, PackedLinear(linear.state_dict()))
    return bilm


def pack_filters(bilm: BiLM) -> None:
    """Replace the filters of a model by filters that only predict, with the same results.

    bilm (BiLM): The model.
    """
    if isinstance(bilm.char_cnn.filters, Filters):
        bilm.char_cnn.filters = PackedFilters(bilm.char_cnn.filters)


class PackedModule(nn.Module):
    """A layer with packed weights. They can be neither copied nor pickled, but nothing in the layer ever changes. It is made
    from the state dict of the layer that it replaces, and has the same one.

    settings (Any): What else it is made from.
    """

    def __init__(self, *settings: Any) -> None:
        super().__init__()
        self._settings = settings

    def unpack(self) -> dict[str, Tensor]:
        """RETURNS (dict[str, Tensor]): The state dict of the layer that it replaces."""
        raise NotImplementedError

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        destination.update({prefix + name: tensor for name, tensor in self.unpack().items()})

    def __deepcopy__(self, memo: dict[int, Any]) -> "PackedModule":
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        # As arrays: multiprocessing would send tensors by references to memory that ends with this function.
        arrays = {name: tensor.numpy() for name, tensor in self.unpack().items()}
        return _from_arrays, (type(self), arrays, *self._settings)


def _from_arrays(kind: type[PackedModule], arrays: dict[str, Any], *settings: Any) -> PackedModule:
    return kind({name: torch.from_numpy(array) for name, array in arrays.items()}, *settings)


class PackedLayer(PackedModule):
    """A layer of the LSTM.

    tensors (dict[str, Tensor]): The state dict of a BiLSTMLayer.
    clips (Clips): Its clips.
    """

    def __init__(self, tensors: dict[str, Tensor], clips: Clips) -> None:
        super().__init__(clips)
        self._bias_AG = tensors["bias"]
        self._directions = [_pack_direction(direction) for direction in make_directions(tensors, clips)]

    def directions(self) -> list[DirectionWeights]:
        """RETURNS (list[DirectionWeights]): The weights of each direction."""
        return self._directions

    def unpack(self) -> dict[str, Tensor]:
        """RETURNS (dict[str, Tensor]): The state dict of the layer that it replaces."""
        pairs = [(direction.input, direction.hidden) for direction in self._directions]
        weights = [torch.cat([unpack(matrix.weight) for matrix in pair]) for pair in pairs]
        tensors = {"weight": torch.stack(weights), "bias": self._bias_AG}
        projections = [direction.projection for direction in self._directions if direction.projection is not None]
        if projections:
            tensors["projection"] = torch.stack([unpack(matrix.weight) for matrix in projections])
        return tensors


class PackedLinear(PackedModule):
    """A linear layer of the char CNN.

    tensors (dict[str, Tensor]): The state dict of a Linear.
    """

    def __init__(self, tensors: dict[str, Tensor]) -> None:
        super().__init__()
        self._matrix, self._bias_M = _pack_matrix(Matrix(tensors["weight"].t())), tensors["bias"]

    def forward(self, x_NK: Tensor) -> Tensor:
        """RETURNS (Tensor): y_NM."""
        return multiply(x_NK, self._matrix, self._bias_M)

    def unpack(self) -> dict[str, Tensor]:
        """RETURNS (dict[str, Tensor]): The state dict of the layer that it replaces."""
        return {"weight": unpack(self._matrix.weight).t(), "bias": self._bias_M}


class PackedFilters(nn.ModuleList):
    """The filters of the char CNN.

    filters (nn.ModuleList): The filters that these replace.
    """

    def __init__(self, filters: Filters) -> None:
        super().__init__(PackedLinear(filter_.state_dict()) for filter_ in filters)
        self._window_sizes = [cast(nn.Linear, filter_).in_features for filter_ in filters]

    def forward(self, x_UCD: Tensor) -> Tensor:
        """RETURNS (Tensor): pooled_UF."""
        maxima = []
        for filter_, size in zip(self, self._window_sizes, strict=True):
            windows = unfold(x_UCD, size // x_UCD.shape[2])
            maxima.append(filter_(windows.flatten(0, 1)).view(len(x_UCD), windows.shape[1], -1).amax(dim=1))
        return torch.cat(maxima, dim=-1)


def _pack_direction(direction: DirectionWeights) -> DirectionWeights:
    return direction._replace(
        input=Matrix(pack(direction.input.weight)),
        hidden=_pack_matrix(direction.hidden),
        projection=None if direction.projection is None else _pack_matrix(direction.projection),
    )


def _pack_matrix(matrix: Matrix) -> Matrix:
    """Pack weights that are multiplied with a single row in every step of a single sentence, unlike those of the input."""
    packed, weight_KM = pack(matrix.weight), matrix.weight
    return Matrix(packed) if weight_KM.numel() >= MANY_WEIGHTS else Matrix(weight_KM.detach().clone(), packed=packed)
