"""A mix of layers that is given and does not learn: one layer, their mean, or chosen weights."""

from collections.abc import Callable

from thinc.api import Model
from thinc.types import Floats2d, Floats3d

InT = list[Floats3d]  # for each doc: (nL, nT, nO)
OutT = list[Floats2d]  # for each doc: (nT, nO)


def fixed_mix(layers: str | int | list[float], *, gamma: float) -> Model[InT, OutT]:
    """Mix the layers of each token with given weights.

    layers (str | int | list[float]): "mean", "top", the index of one layer (0 is the token layer, negative ones count
        from the top), or a weight for each layer.
    gamma (float): A factor on the result.
    RETURNS (Model): The layer; the number of layers, nL, is set by whoever knows the biLM.
    """
    return Model("fixed_mix", forward, init=init, dims={"nL": None}, attrs={"layers": layers, "gamma": gamma})


def init(model: Model[InT, OutT], X: InT | None = None, Y: OutT | None = None) -> None:
    layer_weights(model.attrs["layers"], model.get_dim("nL"))  # raises where they do not fit this biLM


def forward(model: Model[InT, OutT], layers: InT, is_train: bool) -> tuple[OutT, Callable[[OutT], InT]]:
    weights = layer_weights(model.attrs["layers"], model.get_dim("nL"))
    share = model.ops.asarray1f(weights) * model.attrs["gamma"]

    def backprop(d_vectors: OutT) -> InT:
        return [share[:, None, None] * dY_TO for dY_TO in d_vectors]

    return [model.ops.xp.tensordot(share, layers_LTO, axes=1) for layers_LTO in layers], backprop


def layer_weights(layers: str | int | list[float], n_layers: int) -> list[float]:
    """Spell out which layers were asked for.

    layers (str | int | list[float]): As for `fixed_mix`.
    n_layers (int): How many layers the biLM has, the token layer included.
    RETURNS (list[float]): A weight for each layer.
    """
    if layers == "mean":
        return [1 / n_layers] * n_layers
    if layers == "top":
        layers = n_layers - 1
    if isinstance(layers, list):
        if len(layers) != n_layers:
            raise ValueError(
                f"layers has {len(layers)} weights, but this biLM has {n_layers} layers. Give one for each."
            )
        return layers
    if not isinstance(layers, int) or not -n_layers <= layers < n_layers:
        raise ValueError(
            f"layers must be 'mix', 'mean', 'top', an index from 0 (the token layer) to {n_layers - 1} (the top) "
            f"or {n_layers} weights, got {layers!r}."
        )
    return [float(i == layers % n_layers) for i in range(n_layers)]
