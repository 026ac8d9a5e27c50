"""Similarity in context: spaCy's own takes the same word for the same vector."""

from typing import Any

import numpy
from spacy.errors import filter_warning
from spacy.tokens import Doc


def cosine(one: Any, other: Any) -> float:
    """Compare two objects by their vectors.

    one, other (Any): Docs, spans, tokens or lexemes.
    RETURNS (float): The cosine of the angle between their vectors; 0 where one has none.
    """
    norms = float(one.vector_norm) * float(other.vector_norm)
    return float(numpy.dot(one.vector, other.vector)) / norms if norms else 0.0


def set_similarity_hooks(doc: Doc) -> None:
    """Let a doc and what is in it be compared by vectors alone.

    Without this, spaCy calls two tokens of the same word equal before it looks at their vectors, and warns that there
    are none where they come from Doc.tensor. Hooks that the doc has already are left alone.

    doc (Doc): The doc.
    """
    for hooks in (doc.user_hooks, doc.user_span_hooks, doc.user_token_hooks):
        hooks.setdefault("similarity", cosine)


def accept_unsaved_hooks() -> None:
    """Keep spaCy from warning, whenever a doc is serialized, of hooks that the user never set and that need no saving.

    Only in processes that have the component: merely installed, this package changes nothing.
    """
    filter_warning("ignore", error_msg="[W109]")
