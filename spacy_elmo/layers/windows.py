"""A doc as the stretches of words that the biLM reads in one go."""

from collections.abc import Iterator
from typing import NamedTuple

from spacy.tokens import Doc

from ..corpora.sentences import doc_sentences


class Window(NamedTuple):
    """Tokens to read together, and which of them to keep; the others are there for context only.

    tokens (list[int]): The positions in the doc.
    keep (slice): The part of `tokens` whose vectors count.
    """

    tokens: list[int]
    keep: slice


def doc_windows(doc: Doc, size: int, overlap: int) -> Iterator[Window]:
    """Cut a doc into windows: its sentences where they are set, the whole doc otherwise, and where that is too long,
    overlapping pieces of it.

    Each token of a piece has `overlap` tokens of context before and after it, or all there are in its sentence, so that
    a cut is hardly felt, however long the sentence, and pieces run in parallel like any other sentences. Carrying the
    LSTM's state over the cut would be exact, but makes one long doc as slow as its tokens read one by one.

    doc (Doc): The doc.
    size (int): The most tokens in a window, context included.
    overlap (int): Tokens of context on either side of a cut.
    YIELDS (Window): The windows. They keep every token that is not whitespace exactly once.
    """
    for sentence in doc_sentences(doc):
        tokens = [token.i for token in sentence]
        if len(tokens) <= size:
            yield Window(tokens, slice(0, len(tokens)))
            continue
        start = 0  # of what is kept
        while start < len(tokens):
            first = max(0, start - overlap)
            # The last piece may read on to the end of the sentence, since it needs no context there.
            end = len(tokens) if len(tokens) - first <= size else first + size - overlap
            yield Window(tokens[first : end + overlap], slice(start - first, end - first))
            start = end


def check_window(size: int, overlap: int) -> None:
    """Refuse windows that would never get anywhere."""
    if overlap < 0:
        raise ValueError(f"overlap must be 0 or more, got {overlap}.")
    if 2 * overlap >= size:
        raise ValueError(
            f"window must be more than twice the overlap, so that a window has tokens of its own; "
            f"got window = {size} and overlap = {overlap}."
        )
