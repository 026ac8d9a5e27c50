"""Layer normalization of each biLM layer before mixing, without parameters."""

from collections.abc import Callable
from functools import partial

from thinc.api import Model
from thinc.types import Floats3d

InT = list[Floats3d]  # for each doc: (nL, nT, nO)
OutT = list[Floats3d]

EPSILON = 1e-12


def layer_norm() -> Model[InT, OutT]:
    """Give every token's vector in every layer a mean of 0 and a variance of 1 (Ba et al. 2016).

    Each vector is normalized alone. AllenNLP normalizes over all vectors of a batch, so that a sentence's vectors
    depend on its neighbours; here they never do.
    """
    return Model("layer_norm", forward)


def forward(model: Model[InT, OutT], layers: InT, is_train: bool) -> tuple[OutT, Callable[[OutT], InT]]:
    mean = partial(model.ops.xp.mean, axis=-1, keepdims=True)
    centred = [layers_LTO - mean(layers_LTO) for layers_LTO in layers]
    variances = [mean(layers_LTO**2) for layers_LTO in centred]
    # Whitespace vectors are zeros. Their scale is 0: dividing by almost zero would give huge gradients.
    scales = [(variance > 0) / model.ops.xp.sqrt(variance + EPSILON) for variance in variances]
    outputs = [layers_LTO * scale for layers_LTO, scale in zip(centred, scales, strict=True)]

    def backprop(d_outputs: OutT) -> InT:
        return [
            (dY - mean(dY) - Y * mean(dY * Y)) * scale for Y, dY, scale in zip(outputs, d_outputs, scales, strict=True)
        ]

    return outputs, backprop
