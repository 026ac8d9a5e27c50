"""Similarity in context: spaCy's own calls two uses of a word equal before it looks at their vectors."""

import warnings
from typing import Any

import numpy
from numpy.typing import NDArray
from spacy.errors import Warnings, filter_warning
from spacy.lexeme import Lexeme
from spacy.tokens import Doc, Span, Token

from .doc_layers import get_layers
from .vector_hooks import to_span


def cosine(one: Any, other: Any) -> float:
    """Compare two objects by their vectors.

    one (Any): A doc, span or token.
    other (Any): A doc, span, token or lexeme.
    RETURNS (float): The cosine of the angle between their vectors; 0 where one has none.
    """
    if isinstance(other, Lexeme):
        return _compare_with_lexeme(one, other)
    norms = float(one.vector_norm) * float(other.vector_norm)
    if not norms:
        warnings.warn(Warnings.W008.format(obj=type(one).__name__), stacklevel=2)  # as spaCy does
        return 0.0
    return float(numpy.dot(one.vector, other.vector)) / norms


def _compare_with_lexeme(one: Any, lexeme: Lexeme) -> float:
    """Compare with a word without context, as spaCy does: 1 for the same word, otherwise by static vectors."""
    span = to_span(one)
    if len(span) == 1 and span[0].orth == lexeme.orth:
        return 1.0
    if not lexeme.has_vector or len(one.vector) != len(lexeme.vector):
        return 0.0
    return _cosine(one.vector, numpy.asarray(lexeme.vector))


def elmo_similarity(one: Any, other: Any) -> float:
    """Compare two objects by the mean of ELMo's layers: `token._.elmo_similarity(other)`. It needs neither hooks nor
    Doc.tensor, so it works in docs that were serialized, and beside other components that write vectors.

    one, other (Any): Docs, spans or tokens, of docs with `_.elmo_layers`.
    RETURNS (float): The cosine of the angle between the vectors; 0 where one is zero.
    """
    if not isinstance(other, Doc | Span | Token):
        raise TypeError(
            f"Expected a token, span or doc to compare with, got {type(other).__name__}. Only those have a context."
        )
    return _cosine(_mean_of_layers(to_span(one)), _mean_of_layers(to_span(other)))


def _cosine(one_W: NDArray[Any], other_W: NDArray[Any]) -> float:
    norms = float(numpy.linalg.norm(one_W)) * float(numpy.linalg.norm(other_W))
    return float(numpy.dot(one_W, other_W)) / norms if norms else 0.0


def _mean_of_layers(span: Span) -> NDArray[Any]:
    layers_LTW = get_layers(span.doc)
    if layers_LTW is None:
        raise ValueError(
            f"The doc {span.doc.text[:40]!r} has no ELMo layers to compare. Run `elmo` on it, with keep_layers = true. A DocBin "
            f"stores layers only with store_user_data = True, and docs that are joined or cut out of others have none."
        )
    vectors_TW = layers_LTW.mean(axis=0)[span.start : span.end]
    mean: NDArray[Any] = vectors_TW.mean(axis=0) if len(vectors_TW) else numpy.zeros(layers_LTW.shape[2], "float32")
    return mean


def add_extensions() -> None:
    """Register `elmo_similarity` for docs, spans and tokens."""
    for cls in (Doc, Span, Token):
        cls.set_extension("elmo_similarity", method=elmo_similarity, force=True)


def set_similarity_hooks(doc: Doc) -> None:
    """Let a doc, its spans and its tokens be compared by vectors alone.

    Without this, spaCy calls two tokens of the same word equal before it looks at their vectors, and warns that there
    are none where they come from Doc.tensor. Existing hooks are kept.

    doc (Doc): The doc.
    """
    for hooks in (doc.user_hooks, doc.user_span_hooks, doc.user_token_hooks):
        hooks.setdefault("similarity", cosine)


def ignore_unsaved_hooks_warning() -> None:
    """Switch off spaCy's warning W109: a doc with hooks is serialized without them. Docs that come out of `elmo` always have
    hooks, so it would be shown for every doc. Only in processes that have the component.
    """
    filter_warning("ignore", error_msg="[W109]")
