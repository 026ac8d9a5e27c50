"""A biLM in int8, for prediction alone: a quarter of the memory, and products that are several times faster.

Weights have one scale for each output, and inputs one for each row. Where errors would go through all layers, inputs are the
sum of two int8: in the char CNN, and in the first LSTM layer of a small model, for its words and for what it projects. Few
memory cells have large outputs, and one int8 would round most of the others to zero. The characters' embeddings and filters,
which take little time and memory, and all biases stay in float32.
"""

from functools import cache
from typing import Any, cast

import torch
from torch import Tensor, nn

from .lstm import BiLSTMLayer, add_to_forget_gate
from .model import BiLM
from .packed import PackedModule, pack_filters
from .prediction import DirectionWeights
from .products import Matrix, can_pack, multiply, pack, quantize, unpack
from .recurrence import Clips

# What the name of a tensor of scales ends with.
SCALE = "_scale"

# With more memory cells than this, a projection of several rows is faster if its weights are stored by input, and all inputs of
# the LSTM are one int8: a second one would take too much time.
MANY_CELLS = 1024

# From this many weights of a direction's input on, products with packed weights are faster. For a single row they take as
# long, and for smaller matrices they gain nothing.
WORTH_PACKING = 2**22


@cache
def find_int8_problem() -> str | None:
    """Find out whether products in int8 are fast and exact here.

    RETURNS (str | None): Why not, or None.
    """
    if not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return "this torch has no oneDNN"
    # It is private, and torch 2.4 does not have it.
    is_vnni_supported = getattr(torch.cpu, "_is_vnni_supported", None)
    if is_vnni_supported is None:
        return "this torch cannot tell whether the processor has the instructions for it (VNNI)"
    if not is_vnni_supported():
        return "this processor has no instructions for it (VNNI)"
    largest = torch.full((2, 64), 127, dtype=torch.int8)
    if not torch.equal(torch._int_mm(largest, -largest.t()), torch.full((2, 2), -64 * 127**2, dtype=torch.int32)):
        return "the products of this torch are not exact"
    return None


def to_int8(bilm: BiLM) -> BiLM:
    """Quantize the weights of a model.

    bilm (BiLM): The model. It cannot be trained any more.
    RETURNS (BiLM): The model itself.
    """
    char_cnn = bilm.char_cnn
    bilm.lstm.layers = nn.ModuleList(
        Int8Layer(cast(BiLSTMLayer, layer), reads_words=i == 0) for i, layer in enumerate(bilm.lstm.layers)
    )
    for module in [char_cnn, *char_cnn.highways]:
        for name, linear in list(module.named_children()):
            if isinstance(linear, nn.Linear):
                setattr(module, name, Int8Linear(linear))
    return bilm


def to_float32(bilm: BiLM) -> BiLM:
    """Make a model in float32 from one in int8, with the same weights up to rounding.

    bilm (BiLM): The model in int8.
    RETURNS (BiLM): A new model, which can be trained.
    """
    with torch.device("meta"):  # allocates nothing: the tensors replace the parameters
        copy = BiLM(bilm.config)
    copy.initial_hidden, copy.initial_cell = bilm.initial_hidden, bilm.initial_cell
    tensors = bilm.state_dict()
    for name in [name for name in tensors if name.endswith(SCALE)]:
        weight = tensors[name.removesuffix(SCALE)] * tensors.pop(name).unsqueeze(-1)
        if name.startswith("lstm."):
            weight = weight.transpose(-2, -1).flatten(1, -2)
        tensors[name.removesuffix(SCALE)] = weight.contiguous()
    copy.load_state_dict(tensors, assign=True)
    return copy.requires_grad_()


def pack_int8_layers(bilm: BiLM) -> BiLM:
    """Pack the weights of large LSTM layers, with the same results to the last bit, and those that are in float32.

    bilm (BiLM): The model in int8.
    RETURNS (BiLM): The model itself.
    """
    if can_pack(bilm.any_weight):
        pack_filters(bilm)
    for i, layer in enumerate(bilm.lstm.layers):
        if isinstance(layer, Int8Layer) and layer.weight[0, 0].numel() >= WORTH_PACKING:
            bilm.lstm.layers[i] = PackedInt8Layer(layer.state_dict(), layer.clips, layer.reads_words)
    return bilm


class Int8Linear(nn.Module):
    """A linear layer of the char CNN.

    linear (nn.Linear): The layer that it replaces.
    """

    weight: Tensor
    weight_scale: Tensor
    bias: Tensor

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        _register_quantized(self, "weight", linear.weight)
        self.register_buffer("bias", linear.bias.detach())

    def forward(self, x_NK: Tensor) -> Tensor:
        """RETURNS (Tensor): y_NM."""
        return multiply(x_NK, Matrix(self.weight.t(), self.weight_scale, two_parts=True), self.bias)


class Int8Layer(nn.Module):
    """A layer of the LSTM, both directions. weight is (direction, input or hidden state, G, P), projection (direction, P, H).

    layer (BiLSTMLayer): The layer that it replaces.
    reads_words (bool): Whether it is the first one.
    """

    weight: Tensor
    weight_scale: Tensor
    bias: Tensor
    projection: Tensor | None
    projection_scale: Tensor

    def __init__(self, layer: BiLSTMLayer, *, reads_words: bool) -> None:
        super().__init__()
        self.clips, self.reads_words = layer.clips, reads_words
        _register_quantized(self, "weight", torch.stack(layer.weight.chunk(2, dim=1), dim=1).transpose(-2, -1))
        self.register_buffer("bias", layer.bias.detach())
        if layer.projection is None:
            self.projection = None
        else:
            _register_quantized(self, "projection", layer.projection.transpose(-2, -1))
        self._directions: list[DirectionWeights] | None = None

    def directions(self) -> list[DirectionWeights]:
        """RETURNS (list[DirectionWeights]): The weights of each direction."""
        if self._directions is None:  # the tensors may be assigned after the layer was made
            self._directions = _make_directions(self.state_dict(), self.clips, reads_words=self.reads_words)
        return self._directions

    def __getstate__(self) -> dict[str, Any]:
        # Views of the tensors above. Multiprocessing cannot send two tensors that share their memory.
        return {**self.__dict__, "_directions": None}


class PackedInt8Layer(PackedModule):
    """A layer whose weights are packed for oneDNN.

    tensors (dict[str, Tensor]): The state dict of an Int8Layer.
    clips (Clips): Its clips.
    reads_words (bool): Whether it is the first one.
    """

    def __init__(self, tensors: dict[str, Tensor], clips: Clips, reads_words: bool) -> None:
        super().__init__(clips, reads_words)
        self._bias_AG = tensors["bias"]
        directions = _make_directions(tensors, clips, reads_words=reads_words)
        self._directions = [_pack_direction(direction) for direction in directions]

    def directions(self) -> list[DirectionWeights]:
        """RETURNS (list[DirectionWeights]): The weights of each direction."""
        return self._directions

    def unpack(self) -> dict[str, Tensor]:
        """RETURNS (dict[str, Tensor]): The state dict of the layer that it replaces."""
        tensors = {"bias": self._bias_AG}
        pairs = [(direction.input, direction.hidden) for direction in self._directions]
        tensors["weight"] = torch.stack([torch.stack([unpack(one.weight).t() for one in pair]) for pair in pairs])
        tensors["weight" + SCALE] = torch.stack([torch.stack([_scale_of(one) for one in pair]) for pair in pairs])
        projections = [direction.projection for direction in self._directions if direction.projection is not None]
        if projections:
            tensors["projection"] = torch.stack([unpack(one.weight).t() for one in projections])
            tensors["projection" + SCALE] = torch.stack([_scale_of(one) for one in projections])
        return tensors


def _make_directions(tensors: dict[str, Tensor], clips: Clips, *, reads_words: bool) -> list[DirectionWeights]:
    """RETURNS (list[DirectionWeights]): The weights of each direction, from the state dict of an Int8Layer."""
    bias_AG = add_to_forget_gate(tensors["bias"])
    has_many_cells = bias_AG.shape[1] > 4 * MANY_CELLS
    two_parts = reads_words and not has_many_cells
    directions = []
    for a in (0, 1):
        weight, scale = tensors["weight"][a], tensors["weight" + SCALE][a]
        inputs, hidden = Matrix(weight[0].t(), scale[0], two_parts=two_parts), Matrix(weight[1].t(), scale[1])
        projection: Matrix | None = None
        if "projection" in tensors:
            weight_HP = tensors["projection"][a].t()
            if has_many_cells:
                weight_HP = weight_HP.contiguous()
            projection = Matrix(weight_HP, tensors["projection" + SCALE][a], two_parts=two_parts)
        directions.append(DirectionWeights(inputs, hidden, bias_AG[a], projection, *clips))
    return directions


def _pack_direction(direction: DirectionWeights) -> DirectionWeights:
    return direction._replace(
        input=_pack_matrix(direction.input),
        hidden=_pack_matrix(direction.hidden),
        projection=None if direction.projection is None else _pack_matrix(direction.projection),
    )


def _pack_matrix(matrix: Matrix) -> Matrix:
    return matrix._replace(weight=pack(matrix.weight))


def _scale_of(matrix: Matrix) -> Tensor:
    return cast(Tensor, matrix.scale_M)


def _register_quantized(module: nn.Module, name: str, weight: Tensor) -> None:
    """Quantize weights, (..., M, K), and register them with their scales, (..., M)."""
    quantized, scale = quantize(weight.detach())
    module.register_buffer(name, quantized.contiguous())
    module.register_buffer(name + SCALE, scale.squeeze(-1))
