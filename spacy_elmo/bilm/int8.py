"""A biLM in int8, for prediction alone: a quarter of the memory, and products that are several times faster.

Weights have one scale for each output, and inputs one for each row. The characters' embeddings and filters, which take
little time and memory, and all biases stay in float32.
"""

from functools import cache
from typing import Any, cast

import torch
from torch import Tensor, nn

from .lstm import BiLSTMLayer, add_to_forget_gate
from .model import BiLM
from .prediction import DirectionWeights
from .products import Matrix, multiply, quantize

# What the name of a tensor of scales ends with.
SCALE = "_scale"

# With more memory cells than this, a projection of several rows is faster if its weights are stored by input.
MANY_CELLS = 1024


@cache
def find_int8_problem() -> str | None:
    """Find out whether products in int8 are fast and exact here.

    RETURNS (str | None): Why not, or None.
    """
    if not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return "this torch has no oneDNN"
    if not torch.cpu._is_vnni_supported():
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
    bilm.lstm.layers = nn.ModuleList(Int8Layer(cast(BiLSTMLayer, layer)) for layer in bilm.lstm.layers)
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


class Int8Linear(nn.Module):
    """A linear layer whose inputs are the sum of two int8, because errors of the char CNN go through all layers.

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
        matrix = Matrix(self.weight.t(), self.weight_scale)
        rows_NK, scale_N1 = quantize(x_NK)
        rest_NK = torch.addcmul(x_NK, rows_NK, scale_N1, value=-1)
        return multiply(x_NK, matrix).add_(multiply(rest_NK, matrix)).add_(self.bias)


class Int8Layer(nn.Module):
    """A layer of the LSTM, both directions. weight is (direction, input or hidden state, G, P), projection (direction, P, H).

    layer (BiLSTMLayer): The layer that it replaces.
    """

    weight: Tensor
    weight_scale: Tensor
    bias: Tensor
    projection: Tensor | None
    projection_scale: Tensor

    def __init__(self, layer: BiLSTMLayer) -> None:
        super().__init__()
        self.clips = layer.clips
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
            bias_AG = add_to_forget_gate(self.bias)
            self._directions = [self._direction(a, bias_AG[a]) for a in (0, 1)]
        return self._directions

    def __getstate__(self) -> dict[str, Any]:
        # Views of the tensors above. Multiprocessing cannot send two tensors that share their memory.
        return {**self.__dict__, "_directions": None}

    def _direction(self, a: int, bias_G: Tensor) -> DirectionWeights:
        inputs, hidden = (Matrix(self.weight[a, k].t(), self.weight_scale[a, k]) for k in (0, 1))
        projection: Matrix | None = None
        if self.projection is not None:
            weight_HP = self.projection[a].t()
            if weight_HP.shape[0] > MANY_CELLS:
                weight_HP = weight_HP.contiguous()
            projection = Matrix(weight_HP, self.projection_scale[a])
        return DirectionWeights(inputs, hidden, bias_G, projection, *self.clips)


def _register_quantized(module: nn.Module, name: str, weight: Tensor) -> None:
    """Quantize weights, (..., M, K), and register them with their scales, (..., M)."""
    quantized, scale = quantize(weight.detach())
    module.register_buffer(name, quantized.contiguous())
    module.register_buffer(name + SCALE, scale.squeeze(-1))
