"""Texts that are too long for spaCy, in pieces."""

from collections.abc import Iterator

# Well below the longest text that spaCy accepts, and longer than any sentence.
LONGEST_PIECE = 100_000


def cut_text(text: str) -> Iterator[str]:
    """Cut a long text into pieces: at spaces, or anywhere if there are none.

    text (str): The text.
    YIELDS (str): The pieces, at least one. Together they are the text.
    """
    start = 0
    while len(text) - start > LONGEST_PIECE:
        cut = text.rfind(" ", start + 1, start + LONGEST_PIECE)
        cut = start + LONGEST_PIECE if cut == -1 else cut
        yield text[start:cut]
        start = cut
    yield text[start:]
