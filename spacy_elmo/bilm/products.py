"""Products of inputs and weights, without gradients: in float32 as weights are, in float32 with packed weights, in int8.

Shape suffixes: A direction, N row, K input, M output. The directions are stacked, but multiplied one after the other: a
batched product of torch would share them between OpenMP threads, which threads.py avoids.
"""

from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from .recurrence import Clips

# A packed product spends some microseconds more on a call. From this many weights on it is faster, with any number of rows.
PACKED_WEIGHTS = 2**21


class Product(Protocol):
    """x @ weights, for one direction or both."""

    def write(self, x_ANK: Tensor, out_ANM: Tensor) -> None:
        """Write the product to `out_ANM`."""

    def add(self, x_ANK: Tensor, out_ANM: Tensor) -> None:
        """Add the product to `out_ANM`."""


class LayerProducts(NamedTuple):
    """What a layer of the LSTM multiplies with, for one direction or both.

    input, hidden (Product): Input and hidden state to gates.
    bias_A1G (Tensor): The bias of the gates, with the 1 of the forget gate.
    projection (Product | None): Memory cells to hidden state.
    clips (Clips): The maximum absolute values of the memory cells, and of the projected output.
    """

    input: Product
    hidden: Product
    bias_A1G: Tensor
    projection: Product | None
    clips: Clips


class PredictionLayer(Protocol):
    """A layer of the LSTM that can predict."""

    def products(self, own: slice) -> LayerProducts:
        """RETURNS (LayerProducts): The products of some directions."""


class PlainProduct:
    """A product with weights as they are.

    weight_AKM (Tensor): The weights of the directions. They are not copied.
    """

    def __init__(self, weight_AKM: Tensor) -> None:
        self.weights = weight_AKM.unbind()

    def write(self, x_ANK: Tensor, out_ANM: Tensor) -> None:
        for weight_KM, x_NK, out_NM in zip(self.weights, x_ANK.unbind(), out_ANM.unbind(), strict=True):
            torch.mm(x_NK, weight_KM, out=out_NM)

    def add(self, x_ANK: Tensor, out_ANM: Tensor) -> None:
        for weight_KM, x_NK, out_NM in zip(self.weights, x_ANK.unbind(), out_ANM.unbind(), strict=True):
            out_NM.addmm_(x_NK, weight_KM)


class PackedProduct:
    """A product with weights in the layout of oneDNN, which does not have to rearrange them for every product.

    packed (list[Tensor]): The weights of each direction, as `pack` returns them.
    """

    def __init__(self, packed: list[Tensor]) -> None:
        self.packed = packed

    def write(self, x_ANK: Tensor, out_ANM: Tensor) -> None:
        for packed, x_NK, out_NM in zip(self.packed, x_ANK.unbind(), out_ANM.unbind(), strict=True):
            out_NM.copy_(_multiply(x_NK, packed))

    def add(self, x_ANK: Tensor, out_ANM: Tensor) -> None:
        for packed, x_NK, out_NM in zip(self.packed, x_ANK.unbind(), out_ANM.unbind(), strict=True):
            out_NM.add_(_multiply(x_NK, packed))


class Int8Product:
    """A product in int8: weights with one scale for each output, inputs with one scale for each row.

    A row's result does not depend on other rows, and sums of products of int8 are exact.

    weight_AMK (Tensor): The quantized weights of the directions.
    scale_AM (Tensor): Their scales.
    """

    def __init__(self, weight_AMK: Tensor, scale_AM: Tensor) -> None:
        self.weights = [weight_MK.t() for weight_MK in weight_AMK.unbind()]
        self.scale_A1M = scale_AM.unsqueeze(1)

    def write(self, x_ANK: Tensor, out_ANM: Tensor) -> None:
        sums_ANM, scale_AN1 = self._multiply(x_ANK)
        torch.mul(sums_ANM, scale_AN1, out=out_ANM)

    def add(self, x_ANK: Tensor, out_ANM: Tensor) -> None:
        sums_ANM, scale_AN1 = self._multiply(x_ANK)
        out_ANM.addcmul_(sums_ANM, scale_AN1)

    def _multiply(self, x_ANK: Tensor) -> tuple[Tensor, Tensor]:
        """Multiply quantized rows. RETURNS (tuple): The products, which are still to be multiplied with the rows' scales."""
        rows_ANK, scale_AN1 = quantize(x_ANK)
        sums = [torch._int_mm(*pair) for pair in zip(rows_ANK.unbind(), self.weights, strict=True)]
        return torch.stack(sums).to(x_ANK.dtype).mul_(self.scale_A1M), scale_AN1


def quantize(x: Tensor) -> tuple[Tensor, Tensor]:
    """Quantize to int8, with one scale for each last dimension.

    x (Tensor): The values, (..., K).
    RETURNS (tuple): int8, (..., K), and scales, (..., 1): values are int8 times scale, up to half a scale.
    """
    scale = torch.linalg.vector_norm(x, torch.inf, dim=-1, keepdim=True).mul_(1 / 127)
    # Rows of zeros stay zeros.
    return x.div(scale.clamp(min=torch.finfo(x.dtype).tiny)).round_().to(torch.int8), scale


def can_pack(n_weights: int, device: torch.device) -> bool:
    """Say whether weights are worth packing, and can be packed here.

    n_weights (int): The number of weights in a product.
    device (torch.device): Their device.
    RETURNS (bool): Whether to pack them.
    """
    return n_weights >= PACKED_WEIGHTS and device.type == "cpu" and torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]


def pack(weight_KM: Tensor) -> Tensor:
    """RETURNS (Tensor): Weights in the layout of oneDNN. Only `unpack` and `PackedProduct` can read them."""
    packed: Tensor = torch.ops.mkldnn._reorder_linear_weight(weight_KM.detach().t())
    return packed


def unpack(packed: Tensor) -> Tensor:
    """RETURNS (Tensor): weight_KM, as it was before `pack`."""
    return packed.to_dense().t()


def _multiply(x_NK: Tensor, packed: Tensor) -> Tensor:
    product: Tensor = torch.ops.mkldnn._linear_pointwise(x_NK, packed, None, "none", [], "")
    return product
