"""Similarity in context: spaCy's own calls two uses of a word equal before it looks at their vectors."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy
from numpy.typing import NDArray
from spacy.errors import filter_warning
from spacy.lexeme import Lexeme
from spacy.tokens import Doc, Span, Token

from .doc_layers import count_characters, get_layers

Vectors = NDArray[Any]  # vectors_TW


def cosine(one: Any, other: Any) -> float:
    """Compare two objects by their vectors.

    one, other (Any): Docs, spans, tokens or lexemes.
    RETURNS (float): The cosine of the angle between their vectors; 0 where one has none. A token is equal to the lexeme of
        the same word, as in spaCy: a lexeme has no context to compare.
    """
    if isinstance(other, Lexeme) and isinstance(one, Token) and one.orth == other.orth:
        return 1.0
    norms = float(one.vector_norm) * float(other.vector_norm)
    return float(numpy.dot(one.vector, other.vector)) / norms if norms else 0.0


def elmo_similarity(one: Any, other: Any) -> float:
    """Compare two objects by the mean of ELMo's layers: `token._.elmo_similarity(other)`. It needs neither hooks nor
    Doc.tensor, so it works in docs that were serialized, and beside other components that write vectors.

    one, other (Any): Docs, spans or tokens, of docs with `_.elmo_layers`.
    RETURNS (float): The cosine of the angle between the vectors; 0 where one is zero.
    """
    vectors = [_mean_of_layers(_to_span(each)) for each in (one, other)]
    norms = float(numpy.prod([numpy.linalg.norm(vector_W) for vector_W in vectors]))
    return float(numpy.dot(*vectors)) / norms if norms else 0.0


def _mean_of_layers(span: Span) -> NDArray[Any]:
    layers_LTW = get_layers(span.doc)
    if layers_LTW is None:
        raise ValueError(
            f"The doc {span.doc.text[:40]!r} has no ELMo layers to compare. Run `elmo` on it, with keep_layers = true. A DocBin "
            f"stores layers only with store_user_data = True."
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


def set_vector_hooks(doc: Doc, vectors_TW: Vectors) -> None:
    """Let the vectors of a doc, its spans and its tokens be these, whatever is in Doc.tensor or in the vocab.

    doc (Doc): The doc.
    vectors_TW (Vectors): A vector for each token.
    """
    starts_T, n_chars = doc.to_array("IDX"), count_characters(doc)
    for hooks in (doc.user_hooks, doc.user_span_hooks, doc.user_token_hooks):
        get_vector = partial(_mean_vector, starts_T=starts_T, n_chars=n_chars, vectors_TW=vectors_TW)
        hooks["vector"] = get_vector
        hooks["vector_norm"] = partial(_norm, get_vector)
        hooks["has_vector"] = partial(_has_vector, get_vector)


def _mean_vector(each: Any, *, starts_T: NDArray[Any], n_chars: int, vectors_TW: Vectors) -> NDArray[Any]:
    """The mean of the vectors of a doc, span or token, found by its characters: tokens may have been merged or split since
    the vectors were computed."""
    span = _to_span(each)
    if count_characters(span.doc) != n_chars:  # a doc that was made from a part of the first one, with its hooks
        rows_TW = span.doc.tensor[span.start : span.end]
    else:
        first = max(0, int(numpy.searchsorted(starts_T, span.start_char, side="right")) - 1)
        rows_TW = vectors_TW[first : max(first + 1, int(numpy.searchsorted(starts_T, span.end_char, side="left")))]
    mean: NDArray[Any] = rows_TW.mean(axis=0) if len(rows_TW) else numpy.zeros(vectors_TW.shape[1], dtype="float32")
    return mean


def _to_span(each: Any) -> Span:
    if isinstance(each, Token):
        return each.doc[each.i : each.i + 1]
    return each[:] if isinstance(each, Doc) else each


def _norm(get_vector: Callable[[Any], NDArray[Any]], each: Any) -> float:
    return float(numpy.linalg.norm(get_vector(each)))


def _has_vector(get_vector: Callable[[Any], NDArray[Any]], each: Any) -> bool:
    return bool(get_vector(each).any())


def accept_unsaved_hooks() -> None:
    """Keep spaCy from warning, whenever a doc is serialized, of hooks that the user never set and that need no saving.

    Only in processes that have the component: merely installed, this package changes nothing.
    """
    filter_warning("ignore", error_msg="[W109]")
