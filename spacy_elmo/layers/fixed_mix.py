"""A mix of layers that is given and does not learn: one layer, their mean, or chosen weights."""

from collections.abc import Callable
from functools import partial

from thinc.api import Model
from thinc.types import Floats2d, Floats3d

InT = list[Floats3d]  # for each doc: (nL, nT, nO)
OutT = list[Floats2d]  # for each doc: (nT, nO)


def fixed_mix(layers: str | int | list[float], *, gamma: float) -> Model[InT, OutT]:
    """Mix the layers of each token with given weights.

    layers (str | int | list[float]): "mean", "top", the index of one layer (0 is the token layer, negative ones count
        from the top), or a weight for each layer.
    gamma (float): A factor on the result.
    RETURNS (Model): The layer.
    """
    return Model("fixed_mix", partial(forward, choice=layers, gamma=gamma))


def forward(
    model: Model[InT, OutT], layers: InT, is_train: bool, *, choice: str | int | list[float], gamma: float
) -> tuple[OutT, Callable[[OutT], InT]]:
    if not layers:
        return [], lambda d_vectors: []
    xp = model.ops.xp
    share = gamma * xp.asarray(layer_weights(choice, n_layers=layers[0].shape[0]), dtype="float32")

    def backprop(d_vectors: OutT) -> InT:
        return [share[:, None, None] * dY_TO for dY_TO in d_vectors]

    return [xp.tensordot(share, layers_LTO, axes=1) for layers_LTO in layers], backprop


def layer_weights(choice: str | int | list[float], n_layers: int) -> list[float]:
    """Spell out which layers were asked for.

    choice (str | int | list[float]): As for `fixed_mix`.
    n_layers (int): How many layers the biLM has, the token layer included.
    RETURNS (list[float]): A weight for each layer.
    """
    if choice == "mean":
        return [1 / n_layers] * n_layers
    if choice == "top":
        choice = n_layers - 1
    if isinstance(choice, list):
        if len(choice) != n_layers:
            raise ValueError(
                f"layers has {len(choice)} weights, but this biLM has {n_layers} layers. Give one for each."
            )
        return choice
    if not isinstance(choice, int) or not -n_layers <= choice < n_layers:
        raise ValueError(
            f"layers must be 'mix', 'mean', 'top', 'concat', an index from 0 (the token layer) to {n_layers - 1} (the top) "
            f"or {n_layers} weights, got {choice!r}."
        )
    return [float(i == choice % n_layers) for i in range(n_layers)]
