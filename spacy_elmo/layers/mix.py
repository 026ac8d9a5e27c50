"""Layers to one vector per token: normalize, mix, drop."""

from typing import Any

from thinc.api import Model, chain
from thinc.types import Floats2d, Floats3d

from .concat import concat_layers
from .dropout import dropout
from .fixed_mix import fixed_mix
from .layer_norm import layer_norm
from .scalar_mix import scalar_mix
from .settings import CONCATENATED, LEARNED, MixSettings

InT = list[Floats3d]  # for each doc: (nL, nT, nI)
OutT = list[Floats2d]  # for each doc: (nT, nO)


def mix(settings: MixSettings) -> Model[InT, OutT]:
    """Build a mix: layers to one vector per token.

    settings (MixSettings): The settings.
    RETURNS (Model): The layer. `mixer_of` gives the part that has its dims, and `fit_mix` sets them.
    """
    mixer: Model[InT, OutT]
    if settings.layers == LEARNED:
        mixer = scalar_mix(gamma=settings.gamma, l2=settings.l2)
    elif settings.layers == CONCATENATED:
        mixer = concat_layers(gamma=settings.gamma)
    else:
        mixer = fixed_mix(settings.layers, gamma=settings.gamma)
    parts: list[Model[Any, Any]] = [mixer, dropout(settings.dropout)]
    if settings.layer_norm:
        parts.insert(0, layer_norm())
    return chain(*parts)


def mixer_of(model: Model[InT, OutT]) -> Model[InT, OutT]:
    """RETURNS (Model): The part of a mix that has its dims: nL layers, their width nI, and the vectors' width nO."""
    return next(layer for layer in model.layers if "nL" in layer.dim_names)


def mix_sizes(model: Model[InT, OutT]) -> tuple[int | None, int | None]:
    """RETURNS (tuple): The number of layers that a mix expects, and their width, as far as they are known."""
    mixer = mixer_of(model)
    n_layers, width = mixer.maybe_get_dim("nL"), mixer.maybe_get_dim("nI")
    if n_layers is None and mixer.has_param("w"):
        n_layers = len(mixer.get_param("w"))  # as 0.1.0 saved it
    return n_layers, width


def fit_mix(model: Model[InT, OutT], n_layers: int, width: int) -> None:
    """Set the sizes of a mix to those of the biLM. A learned mix gets weights if it has none.

    model (Model): The mix. It may have these sizes already, but no others.
    n_layers (int): Layers of the biLM, the token layer included.
    width (int): The width of each.
    """
    mixer = mixer_of(model)
    if not mixer.has_dim("nO"):
        mixer.set_dim("nL", n_layers)
        mixer.set_dim("nI", width)
        mixer.initialize()


def reset_mix(model: Model[InT, OutT]) -> None:
    """Reset the sizes and the weights of a mix.

    model (Model): The mix.
    """
    mixer = mixer_of(model)
    for name in mixer.param_names:
        mixer.set_param(name, None)
    for name in mixer.dim_names:
        mixer.set_dim(name, None, force=True)  # type: ignore[arg-type]
