"""The pipeline that embeds: how it is loaded, and what makes two of them the same."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

import numpy
import spacy
from numpy.typing import NDArray
from spacy.language import Language
from spacy.tokenizer import Tokenizer
from spacy.tokens import Doc
from spacy.util import get_package_path, is_package

from ..bilm.frozen import precision_of
from ..corpora.tokenizer import make_language, make_tokenizer
from ..files.checksums import checksum
from ..files.versions import installed_version
from ..layers.encoder import shim_of
from ..layers.fixed_mix import fixed_weights
from ..models import choose_model, find_existing_weights
from ..pipeline import Elmo
from .settings import ALL, LAYER_CHOICES, MIXED, EmbeddingSettings

PROBE = "This is a sentence. This is another one."


@dataclass(frozen=True)
class Embedder:
    """A pipeline, and how to take vectors from its docs.

    nlp (Language): The pipeline.
    elmo (Elmo): Its component `elmo`.
    width (int): The length of a vector.
    get_vectors (Callable): Gives vectors_TW of a doc, in float32.
    identity (dict[str, str]): What the vectors depend on besides the text and the settings: checksums of the weights and of
        the pipeline, and versions of libraries. The content of files counts, not their paths.
    """

    nlp: Language
    elmo: Elmo
    width: int
    get_vectors: Callable[[Doc], NDArray[Any]]
    identity: dict[str, str]

    def clear_cache(self) -> None:
        """Empty the cache of word types: which words are computed together, and so the rounding, must not depend on the
        texts before."""
        cache = shim_of(self.elmo.encoder).cache
        if cache is not None:
            cache.clear()


@lru_cache(maxsize=1)
def load_embedder(settings: EmbeddingSettings) -> Embedder:
    """Load the pipeline. A process does this once, so that its vectors always belong to its identity.

    settings (EmbeddingSettings): The settings.
    RETURNS (Embedder): The pipeline, with its weights read and its layers chosen.
    """
    nlp = _load_pipeline(settings)
    name = _find_elmo(nlp)
    identity = _identify(settings, nlp.lang, has_weights=name is not None)
    if name is None:
        name = "elmo"
        nlp.add_pipe(name, config={"weights": settings.weights, "precision": settings.precision})
    elif settings.weights is not None or settings.precision != "float32":
        raise ValueError(
            f"The pipeline {settings.pipeline} has its own component {name!r}. Leave out --weights and --precision."
        )
    elmo = cast(Elmo, nlp.get_pipe(name))
    elmo.settings = replace(elmo.settings, keep_layers=True)
    bilm, precision = elmo.load(), elmo.encoder.attrs["settings"].precision
    if precision_of(bilm) != precision:
        # Other machines may compute other shards, and vectors must not depend on the machine.
        raise ValueError(f"This machine cannot embed in {precision}. Embed in float32.")
    n_layers = bilm.config.depth + 1
    get_vectors = _choose_layers(elmo, settings.layers, n_layers)
    doc = nlp(PROBE)  # a pipeline that does not run, or lacks sentences, is better found now
    if settings.unit == "sentence" and not settings.tokenized and not doc.has_annotation("SENT_START"):
        raise ValueError(
            f"The pipeline {settings.pipeline} sets no sentence boundaries. Add a component that does, such as "
            f"'sentencizer', or embed documents or tokens."
        )
    return Embedder(nlp, elmo, get_vectors(doc).shape[1], get_vectors, identity)


def _load_pipeline(settings: EmbeddingSettings) -> Language:
    if settings.pipeline is not None:
        try:
            return spacy.load(settings.pipeline)
        except OSError as error:
            raise ValueError(f"There is no pipeline {settings.pipeline!r}: {error}") from error
    if not settings.tokenized:
        return make_tokenizer(settings.lang, settings.segmenter)
    nlp = make_language(settings.lang)
    nlp.tokenizer = Tokenizer(nlp.vocab)  # at spaces: how the language would cut words does not matter
    return nlp


def _find_elmo(nlp: Language) -> str | None:
    names = [name for name in nlp.pipe_names if nlp.get_pipe_meta(name).factory == "elmo"]
    if len(names) > 1:
        raise ValueError(
            f"The pipeline has several `elmo`: {', '.join(names)}. Disable all but one of them in its config."
        )
    return names[0] if names else None


def _choose_layers(elmo: Elmo, layers: str | int, n_layers: int) -> Callable[[Doc], NDArray[Any]]:
    # Not Doc.tensor, which a later component may have overwritten.
    if layers == MIXED:
        return lambda doc: numpy.asarray(elmo.mix.predict([doc._.elmo_layers])[0])
    if layers == ALL:
        return lambda doc: numpy.concatenate(list(doc._.elmo_layers), axis=1)
    if isinstance(layers, int) and not -n_layers <= layers < n_layers:
        raise ValueError(
            f"layers must be {', '.join(LAYER_CHOICES)} or an index from 0 (the token layer) to {n_layers - 1} (the top), got {layers}."
        )
    weights = numpy.asarray(fixed_weights(layers, n_layers), dtype="float32")
    return lambda doc: numpy.tensordot(weights, doc._.elmo_layers, axes=1)


def _identify(settings: EmbeddingSettings, lang: str | None, *, has_weights: bool) -> dict[str, str]:
    return {
        "weights": "" if has_weights else checksum(find_existing_weights(choose_model(settings.weights, lang))),
        "pipeline": "" if settings.pipeline is None else checksum(_find_pipeline(settings.pipeline)),
        "spacy-elmo": installed_version() or "",
        "spacy": version("spacy"),
        "torch": version("torch"),
        **({"jieba": version("jieba")} if settings.segmenter == "jieba" else {}),
    }


def _find_pipeline(name: str) -> Path:
    return get_package_path(name) if is_package(name) else Path(name)
