"""The windows of a doc: the tokens that the biLM reads together."""

from collections.abc import Iterator
from typing import NamedTuple

from spacy.tokens import Doc

from ..corpora.sentences import doc_sentences

# Batches of this many `max_batch_items` are read ahead: sentences of similar length can share a batch, and memory is bounded
# however long the docs are.
READ_AHEAD = 4


class Window(NamedTuple):
    """Tokens to read together, and which of them to keep. The others are context.

    tokens (list[int]): The positions in the doc.
    keep (slice): The part of `tokens` whose vectors count.
    """

    tokens: list[int]
    keep: slice


def doc_windows(doc: Doc, size: int, overlap: int) -> Iterator[Window]:
    """Cut a doc into windows: its sentences where they are set, otherwise the whole doc. A sentence that is longer than a
    window is cut into overlapping windows.

    Each token keeps `overlap` tokens of context on both sides of a cut. Windows run in parallel, like sentences. Carrying the
    LSTM's state over a cut would be exact, but a long doc would then be read one token at a time.

    doc (Doc): The doc.
    size (int): The maximum number of tokens in a window, context included.
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
            # The last window may reach to the end of the sentence: no context follows there.
            end = len(tokens) if len(tokens) - first <= size else first + size - overlap
            yield Window(tokens[first : end + overlap], slice(start - first, end - first))
            start = end


def check_window(size: int, overlap: int) -> None:
    """Check that a window is longer than its two overlaps."""
    if overlap < 0:
        raise ValueError(f"overlap must be 0 or more, got {overlap}.")
    if 2 * overlap >= size:
        raise ValueError(f"window must be more than twice the overlap, got window = {size} and overlap = {overlap}.")
