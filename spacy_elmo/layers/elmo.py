"""Docs to one vector per token: the biLM, and a mix of its layers."""

import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any

from spacy.pipeline.tok2vec import Tok2Vec, Tok2VecListener
from spacy.tokens import Doc
from thinc.api import Model, chain
from thinc.types import Floats2d, Floats3d

from .listener import ElmoListener
from .mix import initialize_mix, mix_width

InT = list[Doc]
OutT = list[Floats2d]  # for each doc: (nT, nO)

ENCODER_NAME = "elmo_encoder"
LISTENER_ARCHITECTURE = "spacy_elmo.ElmoListener.v1"
STOCK_ARCHITECTURE = "spacy.Tok2VecListener.v1"

# What a mix is made of: a listener's own replaces the component's when the listener is replaced.
MIX_SETTINGS = ("layers", "gamma", "layer_norm", "dropout", "l2")


def elmo(
    encoder: Model[list[Doc], list[Floats3d]], mix: Model[list[Floats3d], OutT], settings: dict[str, Any]
) -> Model[InT, OutT]:
    """Put encoder and mix together. They are the model's two layers, in this order.

    encoder (Model): Docs to layers.
    mix (Model): Layers to vectors.
    settings (dict): The config that builds this model, for components that get a copy of it in place of a listener.
    RETURNS (Model): The model.
    """
    model: Model[InT, OutT] = chain(encoder, mix)
    model.init = init
    model.attrs["replace_listener"] = replace_listener
    model.attrs["replace_listener_cfg"] = partial(replace_listener_cfg, settings)
    return model


def init(model: Model[InT, OutT], X: InT | None = None, Y: OutT | None = None, *, only_if_new: bool = False) -> None:
    """Read the weights and start from the mean of the layers; with `only_if_new`, keep what was learned."""
    from .encoder import get_bilm

    encoder, mix = model.layers
    config = get_bilm(encoder, reread=not only_if_new).config
    initialize_mix(mix, config.depth + 1, only_if_new=only_if_new)
    model.set_dim("nO", mix_width(mix, config.depth + 1, config.width))


def replace_listener(model: Model[InT, OutT], listener: Tok2VecListener, component: Tok2Vec) -> Model[InT, OutT]:
    """Make what takes a listener's place: a biLM of its own, with the mix that the listener had learned.

    model (Model): A copy of the component's model.
    listener (Tok2VecListener): The listener.
    component (Tok2Vec): The component that it listened to.
    RETURNS (Model): The model.
    """
    if isinstance(listener, ElmoListener):
        model = elmo(model.layers[0], listener.layers[0], settings={})
    init(model, only_if_new=True)
    return model


def replace_listener_cfg(
    settings: dict[str, Any], component_config: dict[str, Any] | None, listener_config: dict[str, Any]
) -> dict[str, Any]:
    """Make the config of what takes a listener's place.

    settings (dict): The config that builds the component's model.
    component_config (dict | None): The `model` block of the component's config.
    listener_config (dict): The config of the listener, or of a tok2vec that it is in: spaCy passes `model.tok2vec`
        wherever the listener is. The first one in there is meant, since those before it have been replaced.
    RETURNS (dict): The config.
    """
    listener = next(_find_listeners(listener_config, LISTENER_ARCHITECTURE), {})
    if not listener and not any(_find_listeners(listener_config, STOCK_ARCHITECTURE)):
        warnings.warn(
            f"spaCy does not say where in the config the listener is that gets a biLM of its own, so the settings of `elmo` are "
            f"written there. Before you save the pipeline, set {', '.join(MIX_SETTINGS)} to those that the listener had.",
            stacklevel=2,
        )
    return {**settings, **{key: listener[key] for key in MIX_SETTINGS if key in listener}}


def _find_listeners(config: dict[str, Any], architecture: str) -> Iterator[dict[str, Any]]:
    if config.get("@architectures") == architecture:
        yield config
    for value in config.values():
        if isinstance(value, dict):
            yield from _find_listeners(value, architecture)
