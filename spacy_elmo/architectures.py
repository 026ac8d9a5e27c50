"""The registered builders: the table of contents of the model."""

from typing import Any

from spacy.tokens import Doc
from spacy.util import registry
from thinc.api import Model
from thinc.types import Floats2d

from .layers.elmo import ARCHITECTURE, LISTENER_ARCHITECTURE, elmo
from .layers.listener import ElmoListener
from .layers.mix import mix
from .layers.settings import ElmoSettings, ListenerSettings, with_settings_of
from .layers.tok2vec import tok2vec


@registry.architectures(ARCHITECTURE)
@with_settings_of(ElmoSettings)
def build_elmo_v1(**settings: Any) -> Model[list[Doc], list[Floats2d]]:
    """Build a biLM with a mix of its layers: for the `elmo` component, or a private one for a single component.

    settings: Those of `ElmoSettings`.
    RETURNS (Model): Docs to vectors.
    """
    return elmo(ElmoSettings(**settings))


@registry.architectures(LISTENER_ARCHITECTURE)
@with_settings_of(ListenerSettings)
def build_elmo_listener_v1(**settings: Any) -> Model[list[Doc], list[Floats2d]]:
    """Build a listener with its own mix: the paper's way, one mix for each task.

    settings: Those of `ListenerSettings`.
    RETURNS (Model): Docs to vectors, as wide as the upstream's biLM, or as all of its layers for "concat".
    """
    checked = ListenerSettings(**settings)
    return ElmoListener(checked.upstream, mix(checked))


@registry.architectures("spacy_elmo.Tok2Vec.v1")
def build_tok2vec_v1(
    *,
    embed: Model[list[Doc], list[Floats2d]] | None,
    encode: Model[list[Floats2d], list[Floats2d]] | None,
    elmo_in: Model[list[Doc], list[Floats2d]] | None = None,
    elmo_out: Model[list[Doc], list[Floats2d]] | None = None,
) -> Model[list[Doc], list[Floats2d]]:
    """Build a spacy.Tok2Vec.v2 with ELMo beside the embedding, beside the encoder's output, or both.

    embed (Model | None): Any embedding of spaCy's, or null to encode ELMo alone.
    encode (Model | None): Any encoder of spaCy's, or null for a task that has its own.
    elmo_in (Model | None): ELMo at the encoder's input, usually a spacy_elmo.ElmoListener.v1.
    elmo_out (Model | None): ELMo beside the encoder's output: another listener, with its own mix.
    RETURNS (Model): Docs to vectors.
    """
    return tok2vec(embed, elmo_in, encode, elmo_out)
