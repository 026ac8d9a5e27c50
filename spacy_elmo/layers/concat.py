"""All layers side by side: nothing is mixed, and what reads the vectors makes its own use of each layer."""

from collections.abc import Callable
from functools import partial

from thinc.api import Model
from thinc.types import Floats2d, Floats3d

InT = list[Floats3d]  # for each doc: (nL, nT, nI)
OutT = list[Floats2d]  # for each doc: (nT, nL * nI)

CONCAT_NAME = "concat_layers"


def concat_layers(*, gamma: float) -> Model[InT, OutT]:
    """Put the layers of each token side by side, the token layer first.

    gamma (float): A factor on the result.
    RETURNS (Model): The layer.
    """
    return Model(CONCAT_NAME, partial(forward, gamma=gamma))


def forward(
    model: Model[InT, OutT], layers: InT, is_train: bool, *, gamma: float
) -> tuple[OutT, Callable[[OutT], InT]]:
    xp = model.ops.xp

    def backprop(d_vectors: OutT) -> InT:
        return [gamma * xp.stack(xp.split(dY_TO, len(layers[0]), axis=1)) for dY_TO in d_vectors]

    return [gamma * xp.concatenate(list(layers_LTI), axis=1) for layers_LTI in layers], backprop
