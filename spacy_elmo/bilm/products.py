"""Products of inputs and weights in prediction: weights as they are, packed for oneDNN, or quantized to int8.

Shape suffixes: N row, K input, M output. The functions can be compiled by TorchScript (see prediction.py).
"""

from typing import NamedTuple, Optional

import torch
from torch import Tensor


class Matrix(NamedTuple):
    """The weights of a product.

    weight (Tensor): weight_KM, as it is, or packed, or quantized.
    scale_M (Tensor | None): The scale of each output, if the weights are quantized.
    packed (Tensor | None): The same weights packed, for products of more than one row, if `weight` is as it is.
    two_parts (bool): If the weights are quantized, whether rows become the sum of two int8, which takes twice as long.
    """

    weight: Tensor
    scale_M: Optional[Tensor] = None  # noqa: UP045 (TorchScript does not know X | None)
    packed: Optional[Tensor] = None  # noqa: UP045
    two_parts: bool = False


def multiply(x_NK: Tensor, matrix: Matrix, bias_M: Tensor) -> Tensor:
    """Multiply rows with weights and add a bias.

    x_NK (Tensor): The rows.
    matrix (Matrix): The weights.
    bias_M (Tensor): The bias.
    RETURNS (Tensor): The sum, (N, M).
    """
    weight, scale_M = _choose_weight(matrix, len(x_NK)), matrix.scale_M
    if scale_M is not None:
        product_NM, scale_N1 = _multiply_int8(x_NK, weight, scale_M, matrix.two_parts)
        return torch.addcmul(bias_M, product_NM, scale_N1, out=product_NM)
    if weight.is_mkldnn:
        return _multiply_packed(x_NK, weight, None, bias_M)
    return torch.addmm(bias_M, x_NK, weight)


def write_product(out_NM: Tensor, x_NK: Tensor, matrix: Matrix) -> None:
    """Write a product to a tensor.

    out_NM (Tensor): The tensor.
    x_NK (Tensor): The rows. If they become two int8, their values are from -1 to 1, as those of memory cells that are projected.
    matrix (Matrix): The weights.
    """
    weight, scale_M = _choose_weight(matrix, len(x_NK)), matrix.scale_M
    if scale_M is not None and matrix.two_parts:
        _write_in_two_parts(out_NM, x_NK * 127, weight, scale_M)  # faster than a scale for each row
        out_NM.mul_(1 / 127)
    elif scale_M is not None:
        product_NM, scale_N1 = _multiply_int8(x_NK, weight, scale_M, two_parts=False)
        torch.mul(product_NM, scale_N1, out=out_NM)
    elif weight.is_mkldnn:
        out_NM.copy_(_multiply_packed(x_NK, weight, None, None))
    else:
        torch.mm(x_NK, weight, out=out_NM)


def add_product(y_NM: Tensor, x_NK: Tensor, matrix: Matrix) -> Tensor:
    """Add a product to a tensor.

    y_NM (Tensor): The tensor, which may be changed.
    x_NK (Tensor): The rows.
    matrix (Matrix): The weights.
    RETURNS (Tensor): The sum, (N, M).
    """
    weight, scale_M = _choose_weight(matrix, len(x_NK)), matrix.scale_M
    if scale_M is not None:
        product_NM, scale_N1 = _multiply_int8(x_NK, weight, scale_M, matrix.two_parts)
        return y_NM.addcmul_(product_NM, scale_N1)
    if weight.is_mkldnn:
        return y_NM.add_(_multiply_packed(x_NK, weight, None, None))
    return y_NM.addmm_(x_NK, weight)


def _choose_weight(matrix: Matrix, n_rows: int) -> Tensor:
    packed = matrix.packed
    return matrix.weight if packed is None or n_rows == 1 else packed


def _multiply_packed(
    rows_NK: Tensor,
    weight: Tensor,
    scale_M: Optional[Tensor],  # noqa: UP045
    bias_M: Optional[Tensor],  # noqa: UP045
) -> Tensor:
    """Multiply rows with packed weights. oneDNN prepares itself for every new number of rows, and keeps up to a megabyte of
    each. So there are only a few: not too many rows at once, padded with zeros.

    rows_NK (Tensor): The rows, quantized if the weights are.
    weight (Tensor): The packed weights.
    scale_M (Tensor | None): The scale of each output, if the weights are quantized.
    bias_M (Tensor | None): The bias to add, for weights that are not quantized.
    RETURNS (Tensor): The product, (N, M).
    """
    n_rows, most_rows = len(rows_NK), 512 if scale_M is None else 128
    first = _multiply_padded(rows_NK[:most_rows], weight, scale_M, bias_M)
    if n_rows <= most_rows:
        return first
    product_NM = first.new_empty([n_rows, first.shape[1]])
    product_NM[:most_rows] = first
    for start in range(most_rows, n_rows, most_rows):
        rows = rows_NK[start : start + most_rows]
        product_NM[start : start + most_rows] = _multiply_padded(rows, weight, scale_M, bias_M)
    return product_NM


def _multiply_padded(
    rows_NK: Tensor,
    weight: Tensor,
    scale_M: Optional[Tensor],  # noqa: UP045
    bias_M: Optional[Tensor],  # noqa: UP045
) -> Tensor:
    n_rows = len(rows_NK)
    # In float32, a product of one or two rows may add up in another order than others.
    step = 4 if n_rows <= 32 else 8 if n_rows <= 64 else 16 if n_rows <= 128 else 32 if n_rows <= 256 else 64
    if n_rows <= 2 and scale_M is not None:
        step = 1
    if n_rows % step:
        rows_NK = torch.constant_pad_nd(rows_NK, [0, 0, 0, -n_rows % step])
    if scale_M is None:
        product = torch.ops.mkldnn._linear_pointwise(rows_NK, weight, bias_M, "none", [], "")
    else:
        # For signed rows, oneDNN has only a slow product. So 128 is added to them: 128 is the zero point of the rows.
        unsigned_NK = rows_NK.to(torch.uint8).bitwise_xor_(128)
        no_zero_points = torch.zeros([0], dtype=torch.int64)  # of the weights
        product = torch.ops.onednn.qlinear_pointwise(
            unsigned_NK, 1.0, 128, weight, scale_M, no_zero_points, None, 1.0, 0, torch.float32, "none", [], ""
        )
    product_NM: Tensor = product[:n_rows]
    return product_NM


def _multiply_int8(x_NK: Tensor, weight: Tensor, scale_M: Tensor, two_parts: bool) -> tuple[Tensor, Tensor]:
    """Multiply quantized rows. The result of a row does not depend on the other rows: sums of int8 products are exact.

    RETURNS (tuple): The product, (N, M), and a scale for each row that it is still to be multiplied with, (N, 1).
    """
    if not two_parts:
        rows_NK, scale_N1 = quantize(x_NK)
        return _multiply_quantized(rows_NK, weight, scale_M), scale_N1
    steps_NK, scale_N1 = _count_steps(x_NK)
    product_NM = x_NK.new_empty([len(x_NK), len(scale_M)])
    _write_in_two_parts(product_NM, steps_NK, weight, scale_M)
    return product_NM, scale_N1


def _write_in_two_parts(out_NM: Tensor, steps_NK: Tensor, weight: Tensor, scale_M: Tensor) -> None:
    """Write the product of rows that become the sum of two int8.

    out_NM (Tensor): The tensor.
    steps_NK (Tensor): The rows, with values of -127 to 127.
    weight, scale_M (Tensor): The quantized weights.
    """
    for start in range(0, len(steps_NK), 128):  # blocks stay in the processor's cache
        whole, rest = split(steps_NK[start : start + 128])
        product = _multiply_quantized(whole, weight, scale_M)
        torch.add(product, _multiply_quantized(rest, weight, scale_M), alpha=1 / 127, out=out_NM[start : start + 128])


def _multiply_quantized(rows_NK: Tensor, weight: Tensor, scale_M: Tensor) -> Tensor:
    if weight.is_mkldnn:
        return _multiply_packed(rows_NK, weight, scale_M, None)
    return torch._int_mm(rows_NK, weight).to(scale_M.dtype).mul_(scale_M)


def quantize(x: Tensor) -> tuple[Tensor, Tensor]:
    """Quantize to int8, with one scale for each last dimension.

    x (Tensor): The values, (..., K).
    RETURNS (tuple): int8, (..., K), and scales, (..., 1): values are int8 times scale, up to half a scale.
    """
    steps, scale = _count_steps(x)
    return steps.round_().to(torch.int8), scale


def split(steps: Tensor) -> tuple[Tensor, Tensor]:
    """Quantize to the sum of two int8.

    steps (Tensor): Values of -127 to 127.
    RETURNS (tuple): Their whole parts, and 127 times the rest.
    """
    return steps.to(torch.int8), steps.frac().mul_(127).to(torch.int8)


def _count_steps(x: Tensor) -> tuple[Tensor, Tensor]:
    """RETURNS (tuple): Values of -127 to 127, (..., K), and the scale of each last dimension, (..., 1)."""
    scale = x.abs().amax(dim=-1, keepdim=True).mul_(1 / 127)
    # Rows of zeros stay zeros.
    return x.div(scale.clamp(min=1e-38)), scale


def can_pack(weight: Tensor) -> bool:
    """RETURNS (bool): Whether oneDNN can multiply with a tensor of weights here."""
    supported = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    return bool(weight.device.type == "cpu" and weight.dtype == torch.float32 and supported)


def pack(weight_KM: Tensor) -> Tensor:
    """Put weights into the layout of oneDNN, which otherwise has to be made for every product.

    weight_KM (Tensor): The weights, in float32 or int8.
    RETURNS (Tensor): The packed weights. Nothing but products and `unpack` can read them.
    """
    packed: Tensor
    if weight_KM.dtype == torch.int8:
        # The operator ignores strides.
        packed = torch.ops.onednn.qlinear_prepack(weight_KM.t().contiguous(), None)
    else:
        packed = torch.ops.mkldnn._reorder_linear_weight(weight_KM.detach().t())
    return packed


def unpack(weight: Tensor) -> Tensor:
    """RETURNS (Tensor): weight_KM, whether it is packed or not."""
    if not weight.is_mkldnn:
        return weight
    return weight.to_dense() if weight.dtype == torch.int8 else weight.to_dense().t()
