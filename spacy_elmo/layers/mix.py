"""Layers to one vector per token: normalize, mix, drop."""

from typing import Any

from thinc.api import Model, chain
from thinc.types import Floats2d, Floats3d

from .concat import CONCAT_NAME, concat_layers
from .dropout import dropout as dropout_layer
from .fixed_mix import fixed_mix
from .layer_norm import layer_norm as layer_norm_layer
from .scalar_mix import SCALAR_MIX_NAME, initialize_scalar_mix, scalar_mix

InT = list[Floats3d]  # for each doc: (nL, nT, nO)
OutT = list[Floats2d]  # for each doc: (nT, nO), or (nT, nL * nO) where layers are put side by side


def mix(
    *, layers: str | int | list[float], gamma: float, layer_norm: bool, dropout: float, l2: float
) -> Model[InT, OutT]:
    """Build the way from all layers to one vector per token.

    layers (str | int | list[float]): "mix" for a learned mix, "concat" for all layers side by side; otherwise what
        `fixed_mix` takes.
    gamma (float): A factor on the result, learned too with "mix".
    layer_norm (bool): Whether each layer is normalized first.
    dropout (float): The share of the result that is dropped while training.
    l2 (float): How strongly a learned mix is pulled to the mean.
    RETURNS (Model): The layer.
    """
    mixer: Model[InT, OutT]
    if layers == "mix":
        mixer = scalar_mix(gamma=gamma, l2=l2)
    elif layers == "concat":
        mixer = concat_layers(gamma=gamma)
    else:
        mixer = fixed_mix(layers, gamma=gamma)
    parts: list[Model[Any, Any]] = [mixer, dropout_layer(dropout)]
    if layer_norm:
        parts.insert(0, layer_norm_layer())
    return chain(*parts)


def initialize_mix(model: Model[InT, OutT], n_layers: int, *, only_if_new: bool = False) -> None:
    """Tell a mix how many layers there are, so that it can start as their mean.

    model (Model): The mix.
    n_layers (int): Layers of the biLM, the token layer included.
    only_if_new (bool): Whether a mix that has weights keeps them.
    """
    for node in model.walk():
        if node.name == SCALAR_MIX_NAME and not (only_if_new and node.has_param("w")):
            initialize_scalar_mix(node, n_layers)


def mix_width(model: Model[InT, OutT], n_layers: int, width: int) -> int:
    """Say how wide the vectors are that a mix makes.

    model (Model): The mix.
    n_layers (int): Layers of the biLM, the token layer included.
    width (int): The width of each.
    RETURNS (int): The width of the vectors.
    """
    return n_layers * width if any(node.name == CONCAT_NAME for node in model.walk()) else width
