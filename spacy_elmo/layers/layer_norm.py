"""Layer normalization of each biLM layer before mixing, without parameters."""

from collections.abc import Callable

from thinc.api import Model
from thinc.types import Floats3d

InT = OutT = list[Floats3d]  # for each doc: (nL, nT, nO)

EPSILON = 1e-12


def layer_norm() -> Model[InT, OutT]:
    """Give every token's vector in every layer a mean of 0 and a variance of 1 (Ba et al. 2016).

    Each vector is normalized alone. AllenNLP normalizes over all vectors of a batch, so that a sentence's vectors
    depend on its neighbours; here they never do.
    """
    return Model("layer_norm", forward)


def forward(model: Model[InT, OutT], layers: InT, is_train: bool) -> tuple[OutT, Callable[[OutT], InT]]:
    scales = []
    outputs = []
    for layers_LTO in layers:
        centred = layers_LTO - layers_LTO.mean(axis=-1, keepdims=True)
        scale = model.ops.xp.sqrt((centred**2).mean(axis=-1, keepdims=True) + EPSILON)
        scales.append(scale)
        outputs.append(centred / scale)

    def backprop(d_outputs: OutT) -> InT:
        return [
            (dY - dY.mean(axis=-1, keepdims=True) - Y * (dY * Y).mean(axis=-1, keepdims=True)) / scale
            for Y, dY, scale in zip(outputs, d_outputs, scales, strict=True)
        ]

    return outputs, backprop
