"""ELMo's vectors as the vectors of a doc, whatever is in Doc.tensor or in the vocab."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy
from numpy.typing import NDArray
from spacy.tokens import Doc, Span, Token

from .doc_layers import count_characters

Vectors = NDArray[Any]  # vectors_TW


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
    span = to_span(each)
    rows_TW = vectors_TW[:0]
    if count_characters(span.doc) == n_chars:
        first = int(numpy.searchsorted(starts_T, span.start_char, side="right")) - 1
        last = int(numpy.searchsorted(starts_T, span.end_char, side="left"))
        rows_TW = vectors_TW[max(0, first) : last] if len(span) else rows_TW
    elif span.doc.tensor.shape[1:] == vectors_TW.shape[1:]:
        # The doc was made from a part of the first one, with its hooks. spaCy has copied the rows of Doc.tensor.
        rows_TW = span.doc.tensor[span.start : span.end]
    mean: NDArray[Any] = rows_TW.mean(axis=0) if len(rows_TW) else numpy.zeros(vectors_TW.shape[1], dtype="float32")
    return mean


def to_span(each: Any) -> Span:
    """RETURNS (Span): The span of a doc, span or token."""
    if isinstance(each, Token):
        return each.doc[each.i : each.i + 1]
    return each[:] if isinstance(each, Doc) else each


def _norm(get_vector: Callable[[Any], NDArray[Any]], each: Any) -> float:
    return float(numpy.linalg.norm(get_vector(each)))


def _has_vector(get_vector: Callable[[Any], NDArray[Any]], each: Any) -> bool:
    return bool(get_vector(each).any())
