"""The learned mix of layers (Peters et al. 2018, equation 1)."""

from collections.abc import Callable
from functools import partial
from typing import cast

from thinc.api import Model
from thinc.types import Floats1d, Floats2d, Floats3d

InT = list[Floats3d]  # for each doc: (nL, nT, nO)
OutT = list[Floats2d]  # for each doc: (nT, nO)

SCALAR_MIX_NAME = "scalar_mix"


def scalar_mix(*, gamma: float, l2: float) -> Model[InT, OutT]:
    """Mix the layers of each token: gamma * sum_k softmax(w)_k * layer_k.

    Starts as the mean of all layers. The weights are Thinc's own, so that spaCy averages and saves them like any other.

    gamma (float): The scale to start from.
    l2 (float): The paper's lambda: how strongly the weights are pulled to the mean.
    RETURNS (Model): The layer, which has no weights until `initialize_scalar_mix` says how many layers there are.
    """
    if l2 < 0:
        raise ValueError(f"l2 must be 0 or more, got {l2}.")
    return Model(
        SCALAR_MIX_NAME, partial(forward, l2=l2), params={"w": None, "gamma": None}, attrs={"initial_gamma": gamma}
    )


def initialize_scalar_mix(model: Model[InT, OutT], n_layers: int) -> None:
    """Set a mix to the mean of the layers.

    model (Model): The mix.
    n_layers (int): Layers of the biLM, the token layer included.
    """
    model.set_param("w", model.ops.alloc1f(n_layers))
    model.set_param("gamma", model.ops.asarray1f([model.attrs["initial_gamma"]]))


def layer_shares(model: Model[InT, OutT]) -> list[float]:
    """Give the share that each layer has by now.

    model (Model): The mix.
    RETURNS (list[float]): One for each layer, the token layer first; they add up to 1.
    """
    return [float(share) for share in model.ops.softmax(cast(Floats1d, model.get_param("w")))]


def forward(model: Model[InT, OutT], layers: InT, is_train: bool, *, l2: float) -> tuple[OutT, Callable[[OutT], InT]]:
    xp = model.ops.xp
    w = cast(Floats1d, model.get_param("w"))
    gamma = cast(Floats1d, model.get_param("gamma"))
    share = model.ops.softmax(w)
    mixed = [xp.tensordot(share, layers_LTO, axes=1) for layers_LTO in layers]

    def backprop(d_vectors: OutT) -> InT:
        d_share = model.ops.alloc1f(len(share))
        d_gamma = model.ops.alloc1f(1)
        for layers_LTO, mixed_TO, dY_TO in zip(layers, mixed, d_vectors, strict=True):
            d_share += gamma[0] * xp.sum(layers_LTO * dY_TO, axis=(1, 2))
            d_gamma += xp.sum(mixed_TO * dY_TO)
        # The derivative of the softmax, and that of l2 * sum(w ** 2).
        model.inc_grad("w", share * (d_share - xp.dot(share, d_share)) + 2 * l2 * w)
        model.inc_grad("gamma", d_gamma)
        return [(gamma[0] * share)[:, None, None] * dY_TO for dY_TO in d_vectors]

    return [gamma[0] * mixed_TO for mixed_TO in mixed], backprop
