"""Docs to one vector per token: the biLM, and a mix of its layers."""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, fields
from functools import partial
from typing import TYPE_CHECKING, Any

from spacy.pipeline.tok2vec import Tok2Vec, Tok2VecListener
from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d, Floats3d

from .listener import ElmoListener
from .mix import fit_mix, mix, mixer_of, reset_mix
from .settings import ElmoSettings, MixSettings

if TYPE_CHECKING:
    from ..bilm.config import BiLMConfig
    from ..bilm.model import BiLM

InT = list[Doc]
OutT = list[Floats2d]  # for each doc: (nT, nO)

MODEL_NAME = "elmo"
ARCHITECTURE = "spacy_elmo.Elmo.v1"
LISTENER_ARCHITECTURE = "spacy_elmo.ElmoListener.v1"
STOCK_ARCHITECTURE = "spacy.Tok2VecListener.v1"


def elmo(settings: ElmoSettings) -> Model[InT, OutT]:
    """Build a biLM with a mix of its layers.

    settings (ElmoSettings): How to run the biLM and mix its layers.
    RETURNS (Model): The model. Its two layers are the encoder and the mix.
    """
    # spaCy imports every plugin at every start, so torch is imported only by those who use it.
    from .encoder import encoder

    model = _run_both(encoder(settings), mix(settings))
    config = {"@architectures": ARCHITECTURE, **asdict(settings)}
    model.attrs["replace_listener"] = replace_listener
    model.attrs["replace_listener_cfg"] = partial(replace_listener_cfg, config)
    return model


def _run_both(encoder: Model[InT, list[Floats3d]], mix: Model[list[Floats3d], OutT]) -> Model[InT, OutT]:
    return Model(MODEL_NAME, forward, init=init, layers=[encoder, mix], dims={"nO": None})


def load(model: Model[InT, OutT]) -> "BiLM":
    """Read the weights, if that has not happened, and tell the mix their sizes.

    model (Model): The model.
    RETURNS (BiLM): The biLM.
    """
    from .encoder import get_bilm

    encoder, mix = model.layers
    bilm = get_bilm(encoder)
    fit_mix(mix, bilm.config.depth + 1, bilm.config.width)
    return bilm


def check_weights(settings: ElmoSettings) -> "BiLMConfig":
    """Check that a weights directory exists and has the layers that the settings ask for, without reading the weights.

    settings (ElmoSettings): The settings.
    RETURNS (BiLMConfig): The sizes of the biLM.
    """
    from .encoder import read_bilm_config

    config = read_bilm_config(settings)
    fit_mix(mix(settings), config.depth + 1, config.width)
    return config


def begin_step(encoder: Model[InT, list[Floats3d]]) -> None:
    """Tell the encoder's cache that a step of training begins, also if it is not asked for any layers.

    encoder (Model): The encoder.
    """
    from .encoder import shim_of

    cache = shim_of(encoder).cache
    if cache is not None:
        cache.begin_step()


def init(model: Model[InT, OutT], X: InT | None = None, Y: OutT | None = None) -> None:
    """Start from the weights and from the mean of the layers."""
    from .encoder import get_bilm

    encoder, mix = model.layers
    get_bilm(encoder, reread=True)
    reset_mix(mix)
    load(model)
    model.set_dim("nO", mixer_of(mix).get_dim("nO"))


def forward(model: Model[InT, OutT], docs: InT, is_train: bool) -> tuple[OutT, Callable[[OutT], InT]]:
    load(model)
    encoder, mix = model.layers
    layers, backprop_encoder = encoder(docs, is_train)
    vectors, backprop_mix = mix(layers, is_train)

    def backprop(d_vectors: OutT) -> InT:
        docs: InT = backprop_encoder(backprop_mix(d_vectors))
        return docs

    return vectors, backprop


def replace_listener(model: Model[InT, OutT], listener: Tok2VecListener, component: Tok2Vec) -> Model[InT, OutT]:
    """Build the model that replaces a listener: its own biLM, with the mix that the listener has learned.

    model (Model): A copy of the component's model.
    listener (Tok2VecListener): The listener.
    component (Tok2Vec): The component that it listened to.
    RETURNS (Model): The model.
    """
    if isinstance(listener, ElmoListener):
        model = _run_both(model.layers[0], listener.layers[0])
    load(model)
    model.set_dim("nO", mixer_of(model.layers[1]).get_dim("nO"))
    return model


def replace_listener_cfg(
    config: dict[str, Any], component_config: dict[str, Any] | None, listener_config: dict[str, Any]
) -> dict[str, Any]:
    """Make the config of the model that replaces a listener.

    config (dict): The config that builds the component's model.
    component_config (dict | None): The `model` block of the component's config.
    listener_config (dict): The config of the listener, or of a tok2vec that contains it: spaCy passes `model.tok2vec`
        wherever the listener is. The first listener in it is meant, since those before it have been replaced.
    RETURNS (dict): The config.
    """
    listener = next(_find_blocks(listener_config, LISTENER_ARCHITECTURE), {})
    names = [field.name for field in fields(MixSettings)]
    if not listener and not any(_find_blocks(listener_config, STOCK_ARCHITECTURE)):
        warnings.warn(
            f"spaCy does not say where in the config the replaced listener is, so the settings of `elmo` are written there. "
            f"Before you save the pipeline, set {', '.join(names)} to those of the listener.",
            stacklevel=2,
        )
    return {**config, **{name: listener[name] for name in names if name in listener}}


def _find_blocks(config: dict[str, Any], architecture: str) -> Iterator[dict[str, Any]]:
    if config.get("@architectures") == architecture:
        yield config
    for value in config.values():
        if isinstance(value, dict):
            yield from _find_blocks(value, architecture)
