"""Texts that are too long for spaCy, in pieces."""

import re
from collections.abc import Iterator

# Well below the longest text that spaCy accepts, and longer than any sentence.
LONGEST_PIECE = 100_000

FULL_STOPS = "。！？"  # of languages that are written without spaces

# The time of spaCy's tokenizer grows with the square of a word's length: 20,000 brackets take a minute. Text in scripts
# without spaces is not meant.
LONG_WORD = re.compile(r"[!-~]{500}(?=\S)")


def cut_text(text: str) -> Iterator[str]:
    """Cut a long text into pieces: at spaces, or after Chinese full stops if there are none, or else anywhere; and long
    words as well.

    text (str): The text.
    YIELDS (str): The pieces, at least one. Together they are the text.
    """
    start = 0
    while len(text) - start > LONGEST_PIECE:
        end = start + LONGEST_PIECE
        cut = text.rfind(" ", start + 1, end)
        if cut == -1:
            cut = max(text.rfind(mark, start, end) for mark in FULL_STOPS) + 1 or end
        yield from _cut_words(text[start:cut])
        start = cut
    yield from _cut_words(text[start:])


def _cut_words(text: str) -> Iterator[str]:
    start = 0
    for match in LONG_WORD.finditer(text):
        yield text[start : match.end()]
        start = match.end()
    yield text[start:]
