"""The biattentive network as a Thinc layer: token vectors to one vector for each doc."""

from collections.abc import Callable
from functools import partial
from typing import Any, cast

import torch
from thinc.api import ArgsKwargs, Model, get_torch_default_device, torch2xp, xp2torch
from thinc.types import Floats2d, Floats3d

from ...layers.forks import use_one_thread_after_fork
from ...layers.torch_shim import TorchShim
from .network import BiattentiveNetwork, Sizes
from .weights import from_bytes, to_bytes

InT = list[list[Floats2d]]  # for each source (the input, and optionally the output), for each doc: (nT, nI), nT >= 1
OutT = Floats2d  # (nB, nO)

use_one_thread_after_fork()


def biattention(sizes: Sizes, *, dropout: float | None) -> Model[InT, OutT]:
    """Build a biattentive network as a layer. No doc may be empty.

    The network is built at initialization, when the widths of its input vectors are known.

    sizes (Sizes): All other sizes.
    dropout (float | None): The fraction of values to drop while training, from 0 to below 1; None for the rate that spaCy
        sets, which is [training.dropout].
    RETURNS (Model): The layer.
    """
    if dropout is not None and not 0 <= dropout < 1:
        raise ValueError(f"dropout must be from 0 to below 1, or null for [training.dropout], got {dropout}.")
    shim = TorchShim(None, serialize_model=_serialize, deserialize_model=_deserialize)
    return Model(
        "biattention",
        partial(forward, fixed_rate=dropout),
        init=partial(init, sizes=sizes),
        dims={"nO": sizes.maxout_width},
        shims=[shim],
        # spaCy sets this attribute before every update, in every layer that has it.
        attrs={"dropout_rate": 0.0} if dropout is None else {},
    )


def init(model: Model[InT, OutT], X: InT, Y: OutT | None = None, *, sizes: Sizes) -> None:
    model.shims[0]._model = BiattentiveNetwork(sizes, *_widths(X)).to(get_torch_default_device())


def forward(
    model: Model[InT, OutT], sources: InT, is_train: bool, *, fixed_rate: float | None
) -> tuple[OutT, Callable[[OutT], InT]]:
    shim = cast(TorchShim, model.shims[0])
    _check_widths(shim._model, _widths(sources))
    rate = model.attrs["dropout_rate"] if fixed_rate is None else fixed_rate
    lengths = [len(vectors_TI) for vectors_TI in sources[0]]
    x_BTI, *output = (
        xp2torch(model.ops.pad(vectors), requires_grad=is_train, device=shim.device) for vectors in sources
    )
    inputs = ArgsKwargs((x_BTI, torch.as_tensor(lengths), *output), {"dropout": rate, "is_train": is_train})
    y_BO, torch_backprop = shim(inputs, is_train)

    def backprop(d_vectors_BO: OutT) -> InT:
        dY_BO = xp2torch(d_vectors_BO, device=shim.device)
        d_x_BTI, _, *d_output = torch_backprop(ArgsKwargs(((y_BO,),), {"grad_tensors": dY_BO})).args
        return [
            cast(list[Floats2d], model.ops.unpad(cast(Floats3d, torch2xp(gradient)), lengths))
            for gradient in (d_x_BTI, *d_output)
        ]

    return cast(Floats2d, torch2xp(y_BO)), backprop


def _widths(sources: InT) -> list[int]:
    return [vectors[0].shape[1] for vectors in sources]


def _check_widths(network: BiattentiveNetwork | None, widths: list[int]) -> None:
    if network is None:
        raise ValueError("This classifier has no weights yet. Call nlp.initialize(), or load a trained pipeline.")
    expected = [width for width in (network.input_width, network.output_width) if width]
    if widths != expected:
        raise ValueError(
            f"This classifier was trained on vectors of width {expected} (tok2vec, and output if there is one), "
            f"got {widths}. Use the tok2vec that it was trained with, or initialize and train it again."
        )


def _serialize(network: BiattentiveNetwork | None) -> bytes:
    return b"" if network is None else to_bytes(network)


def _deserialize(_: Any, data: bytes, device: torch.device) -> BiattentiveNetwork | None:
    return from_bytes(data, device) if data else None
