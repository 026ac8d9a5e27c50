"""A mix of layers that is given and not learned: one layer, their mean, or chosen weights."""

from collections.abc import Callable
from functools import partial
from typing import Any

from thinc.api import Model
from thinc.types import Floats2d, Floats3d

from .settings import LAYER_CHOICES, config_error

InT = list[Floats3d]  # for each doc: (nL, nT, nI)
OutT = list[Floats2d]  # for each doc: (nT, nO)


def fixed_mix(layers: str | int | list[float], *, gamma: float) -> Model[InT, OutT]:
    """Mix the layers of each token with given weights.

    layers (str | int | list[float]): "mean", "top", the index of one layer (0 is the token layer, negative ones count
        from the top), or a weight for each layer.
    gamma (float): A factor on the result.
    RETURNS (Model): The layer.
    """
    return Model(
        "fixed_mix",
        partial(forward, choice=layers, gamma=gamma),
        init=partial(init, choice=layers),
        dims={"nL": None, "nI": None, "nO": None},
    )


def init(model: Model[InT, OutT], X: Any = None, Y: Any = None, *, choice: str | int | list[float]) -> None:
    fixed_weights(choice, model.get_dim("nL"))  # does the choice fit the number of layers?
    model.set_dim("nO", model.get_dim("nI"))


def forward(
    model: Model[InT, OutT], layers: InT, is_train: bool, *, choice: str | int | list[float], gamma: float
) -> tuple[OutT, Callable[[OutT], InT]]:
    xp = model.ops.xp
    weights = gamma * xp.asarray(fixed_weights(choice, model.get_dim("nL")), dtype="float32")

    def backprop(d_vectors: OutT) -> InT:
        return [weights[:, None, None] * dY_TO for dY_TO in d_vectors]

    return [xp.tensordot(weights, layers_LTI, axes=1) for layers_LTI in layers], backprop


def fixed_weights(choice: str | int | list[float], n_layers: int) -> list[float]:
    """Give the weight of each layer.

    choice (str | int | list[float]): As for `fixed_mix`.
    n_layers (int): Layers of the biLM, the token layer included.
    RETURNS (list[float]): A weight for each layer.
    """
    if choice == "mean":
        return [1 / n_layers] * n_layers
    if choice == "top":
        choice = n_layers - 1
    if isinstance(choice, list):
        if len(choice) != n_layers:
            raise config_error(
                f"layers has {len(choice)} weights, but this biLM has {n_layers} layers. Give one for each."
            )
        return choice
    if not isinstance(choice, int) or not -n_layers <= choice < n_layers:
        choices = ", ".join(map(repr, LAYER_CHOICES))
        raise config_error(
            f"layers must be {choices}, an index from 0 (the token layer) to {n_layers - 1} (the top) or {n_layers} weights, "
            f"got {choice!r}."
        )
    return [float(i == choice % n_layers) for i in range(n_layers)]
