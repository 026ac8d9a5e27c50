"""Products of inputs and weights in prediction: weights as they are, packed for oneDNN, or quantized to int8.

Shape suffixes: N row, K input, M output. The functions can be compiled by TorchScript (see prediction.py).
"""

from typing import List, NamedTuple, Optional  # noqa: UP035 (TorchScript does not know list[...] everywhere)

import torch
from torch import Tensor


class Matrix(NamedTuple):
    """The weights of a product.

    weight (Tensor): weight_KM, as it is, or packed, or quantized.
    scale_M (Tensor | None): The scale of each output, if the weights are quantized.
    """

    weight: Tensor
    scale_M: Optional[Tensor] = None  # noqa: UP045 (TorchScript does not know X | None)


def multiply(x_NK: Tensor, matrix: Matrix) -> Tensor:
    """Multiply rows with weights.

    x_NK (Tensor): The rows.
    matrix (Matrix): The weights.
    RETURNS (Tensor): The product, (N, M).
    """
    weight, scale_M = matrix
    if scale_M is not None:
        product_NM, scale_N1 = _multiply_int8(x_NK, weight, scale_M)
        return product_NM.mul_(scale_N1)
    if weight.is_mkldnn:
        return _multiply_packed(x_NK, weight)
    return torch.mm(x_NK, weight)


def write_product(out_NM: Tensor, x_NK: Tensor, matrix: Matrix) -> None:
    """Write a product to a tensor.

    out_NM (Tensor): The tensor.
    x_NK (Tensor): The rows.
    matrix (Matrix): The weights.
    """
    if matrix.scale_M is None and not matrix.weight.is_mkldnn:
        torch.mm(x_NK, matrix.weight, out=out_NM)
    else:
        out_NM.copy_(multiply(x_NK, matrix))


def add_product(y_NM: Tensor, x_NK: Tensor, matrix: Matrix) -> Tensor:
    """Add a product to a tensor.

    y_NM (Tensor): The tensor, which may be changed.
    x_NK (Tensor): The rows.
    matrix (Matrix): The weights.
    RETURNS (Tensor): The sum, (N, M).
    """
    weight, scale_M = matrix
    if scale_M is not None:
        product_NM, scale_N1 = _multiply_int8(x_NK, weight, scale_M)
        return y_NM.addcmul_(product_NM, scale_N1)
    if weight.is_mkldnn:
        return y_NM.add_(_multiply_packed(x_NK, weight))
    return y_NM.addmm_(x_NK, weight)


def _multiply_packed(x_NK: Tensor, weight: Tensor, most_rows: int = 512) -> Tensor:
    """Multiply rows with packed weights. oneDNN prepares itself for every new number of rows, and keeps more than half a
    megabyte of each. So there are only a few: up to `most_rows` at once, padded with zeros."""
    products: List[Tensor] = []  # noqa: UP006
    for start in range(0, len(x_NK), most_rows):
        rows = x_NK[start : start + most_rows]
        n_rows = len(rows)
        step = 4 if n_rows <= 32 else 16 if n_rows <= 128 else 64
        padded = torch.constant_pad_nd(rows, [0, 0, 0, -n_rows % step])
        products.append(torch.ops.mkldnn._linear_pointwise(padded, weight, None, "none", [], "")[:n_rows])
    return products[0] if len(products) == 1 else torch.cat(products)


def _multiply_int8(x_NK: Tensor, weight_KM: Tensor, scale_M: Tensor) -> tuple[Tensor, Tensor]:
    """Multiply quantized rows. The result of a row does not depend on the other rows: sums of int8 products are exact.

    RETURNS (tuple): The product, (N, M), and a scale for each row that it is still to be multiplied with, (N, 1).
    """
    rows_NK, scale_N1 = quantize(x_NK)
    return torch._int_mm(rows_NK, weight_KM).to(x_NK.dtype).mul_(scale_M), scale_N1


def quantize(x: Tensor) -> tuple[Tensor, Tensor]:
    """Quantize to int8, with one scale for each last dimension.

    x (Tensor): The values, (..., K).
    RETURNS (tuple): int8, (..., K), and scales, (..., 1): values are int8 times scale, up to half a scale.
    """
    scale = x.abs().amax(dim=-1, keepdim=True).mul_(1 / 127)
    # Rows of zeros stay zeros.
    return x.div(scale.clamp(min=1e-38)).round_().to(torch.int8), scale


def can_pack(weight: Tensor) -> bool:
    """RETURNS (bool): Whether oneDNN can multiply with a tensor of weights here."""
    supported = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    return bool(weight.device.type == "cpu" and weight.dtype == torch.float32 and supported)


def pack(weight_KM: Tensor) -> Tensor:
    """Put weights into the layout of oneDNN, which otherwise has to be made for every product.

    weight_KM (Tensor): The weights.
    RETURNS (Tensor): The packed weights. Nothing but products and `unpack` can read them.
    """
    packed: Tensor = torch.ops.mkldnn._reorder_linear_weight(weight_KM.detach().t())
    return packed


def unpack(weight: Tensor) -> Tensor:
    """RETURNS (Tensor): weight_KM, whether it is packed or not."""
    return weight.to_dense().t() if weight.is_mkldnn else weight
