"""The learned mix of layers (Peters et al. 2018, equation 1)."""

from collections.abc import Callable
from functools import partial
from typing import Any, cast

from thinc.api import Model
from thinc.types import Floats1d, Floats2d, Floats3d

InT = list[Floats3d]  # for each doc: (nL, nT, nI)
OutT = list[Floats2d]  # for each doc: (nT, nO)


def scalar_mix(*, gamma: float, l2: float) -> Model[InT, OutT]:
    """Mix the layers of each token: gamma * sum_k softmax(w)_k * layer_k.

    Starts as the mean of all layers. The weights are Thinc's own, so that spaCy averages and saves them like any other.

    gamma (float): The scale to start from.
    l2 (float): The paper's lambda: how strongly the weights are pulled to the mean.
    RETURNS (Model): The layer. It has weights as soon as its dims nL and nI are set and it is initialized.
    """
    return Model(
        "scalar_mix",
        partial(forward, l2=l2),
        init=partial(init, gamma=gamma),
        params={"w": None, "gamma": None},
        dims={"nL": None, "nI": None, "nO": None},
    )


def init(model: Model[InT, OutT], X: Any = None, Y: Any = None, *, gamma: float) -> None:
    """Set the mix to the mean of the layers, unless it has learned weights."""
    if not model.has_param("w"):
        model.set_param("gamma", model.ops.asarray1f([gamma]))
        model.set_param("w", model.ops.alloc1f(model.get_dim("nL")))
    model.set_dim("nO", model.get_dim("nI"))  # last: another thread takes it for ready


def layer_weights(model: Model[InT, OutT]) -> list[float]:
    """Give the weights that the mix has learned.

    model (Model): The mix.
    RETURNS (list[float]): The softmax of `w`: one weight for each layer, the token layer first.
    """
    return [float(weight) for weight in model.ops.softmax(cast(Floats1d, model.get_param("w")))]


def forward(model: Model[InT, OutT], layers: InT, is_train: bool, *, l2: float) -> tuple[OutT, Callable[[OutT], InT]]:
    xp = model.ops.xp
    w = cast(Floats1d, model.get_param("w"))
    gamma = cast(Floats1d, model.get_param("gamma"))
    weights = model.ops.softmax(w)
    scales = gamma[0] * weights

    def backprop(d_vectors: OutT) -> InT:
        products = model.ops.alloc1f(len(weights))  # of each layer with the gradient
        for layers_LTI, dY_TO in zip(layers, d_vectors, strict=True):
            products += xp.sum(layers_LTI * dY_TO, axis=(1, 2))
        # The derivative of the softmax, and that of l2 * sum(w ** 2).
        model.inc_grad("w", scales * (products - xp.dot(weights, products)) + 2 * l2 * w)
        model.inc_grad("gamma", xp.dot(weights, products).reshape(1))
        return [scales[:, None, None] * dY_TO for dY_TO in d_vectors]

    return [xp.tensordot(scales, layers_LTI, axes=1) for layers_LTI in layers], backprop
