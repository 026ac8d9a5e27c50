"""All layers concatenated, without mixing: the task's model weighs each value of each layer."""

from collections.abc import Callable
from functools import partial
from typing import Any

from thinc.api import Model
from thinc.types import Floats2d, Floats3d

InT = list[Floats3d]  # for each doc: (nL, nT, nI)
OutT = list[Floats2d]  # for each doc: (nT, nO), nO = nL * nI


def concat_layers(*, gamma: float) -> Model[InT, OutT]:
    """Concatenate the layers of each token, the token layer first.

    gamma (float): A factor on the result.
    RETURNS (Model): The layer.
    """
    return Model("concat_layers", partial(forward, gamma=gamma), init=init, dims={"nL": None, "nI": None, "nO": None})


def init(model: Model[InT, OutT], X: Any = None, Y: Any = None) -> None:
    model.set_dim("nO", model.get_dim("nL") * model.get_dim("nI"))


def forward(
    model: Model[InT, OutT], layers: InT, is_train: bool, *, gamma: float
) -> tuple[OutT, Callable[[OutT], InT]]:
    xp = model.ops.xp

    def backprop(d_vectors: OutT) -> InT:
        return [gamma * xp.stack(xp.split(dY_TO, model.get_dim("nL"), axis=1)) for dY_TO in d_vectors]

    return [gamma * xp.concatenate(list(layers_LTI), axis=1) for layers_LTI in layers], backprop
