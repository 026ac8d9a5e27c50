"""Nearest neighbours in context: the uses of words in a text whose vectors are closest to the vector of one use."""

from collections.abc import Iterable, Sequence
from heapq import nlargest
from typing import NamedTuple

from spacy.language import Language
from spacy.tokens import Doc, Token

from .marked_use import MARKED
from .vectors import doc_vectors, stack_vectors, unit_vectors

ROUND = str.maketrans("[]", "()")


class Neighbour(NamedTuple):
    """A use of a word, and its similarity to the use that was searched for.

    similarity (float): The cosine of the angle between the two vectors.
    token (Token): The word, in its doc.
    """

    similarity: float
    token: Token


def find_neighbours(
    uses: list[Token], docs: Iterable[Doc], *, n: int = 5, layers: Sequence[int | None] = (None,)
) -> list[list[list[Neighbour]]]:
    """Find the nearest neighbours of some uses of words. Only docs that contain a neighbour stay in memory.

    uses (list[Token]): The uses.
    docs (Iterable[Doc]): The docs to search, with their vectors. A use is not its own neighbour.
    n (int): The number of neighbours to find for each use.
    layers (Sequence[int | None]): The layers of the language model to compare, where 0 is the token layer; None for
        Doc.tensor.
    RETURNS (list[list[list[Neighbour]]]): The neighbours for each layer and each use, closest first. Ties keep the
        order of the docs.
    """
    if not uses:
        return [[] for _ in layers]
    wanted = [unit_vectors(stack_vectors(uses, layer)) for layer in layers]
    found: list[list[list[Neighbour]]] = [[[] for _ in uses] for _ in layers]
    for doc in docs:
        for layer, wanted_UW, found_U in zip(layers, wanted, found, strict=True):
            similarities_UT = wanted_UW @ unit_vectors(doc_vectors(doc, layer)).T
            for use, best, similarities_T in zip(uses, found_U, similarities_UT, strict=True):
                here = [
                    Neighbour(float(similarities_T[token.i]), token)
                    for token in doc
                    if not token.text.isspace() and not (doc is use.doc and token.i == use.i)
                ]
                best[:] = nlargest(n, [*best, *here], key=lambda neighbour: neighbour.similarity)
    return found


def read_use(nlp: Language, text: str) -> Token:
    """Read a use of a word from a sentence that has the word in square brackets.

    nlp (Language): The pipeline that makes the doc.
    text (str): The sentence, such as "They [play] chess ."
    RETURNS (Token): The word, in its doc.
    """
    marks = list(MARKED.finditer(text))
    if len(marks) != 1:
        raise ValueError(
            f'Expected a sentence with one word in square brackets, as in "They [play] chess.", got {text!r}.'
        )
    start, word = marks[0].start(), marks[0][1]
    doc = nlp(text[:start] + word + text[marks[0].end() :])
    span = doc.char_span(start, start + len(word))
    if span is None or len(span) != 1:
        raise ValueError(
            f"{word!r} in square brackets is not one token of {text!r}; its tokens are {[token.text for token in doc]}."
        )
    return span[0]


def mark_use(token: Token, *, width: int | None = None) -> str:
    """Format a use of a word in the form that `read_use` reads. Other square brackets of the text become round ones.

    token (Token): The word, in its doc.
    width (int | None): The maximum number of characters on either side; None for no limit.
    RETURNS (str): The text with the word in square brackets.
    """
    text, start, end = token.doc.text, token.idx, token.idx + len(token)
    before, after = text[:start], text[end:].rstrip()
    if width is not None:
        before = before if len(before) <= width else "…" + before[len(before) - width + 1 :]
        after = after if len(after) <= width else after[: width - 1] + "…"
    before, word, after = (part.translate(ROUND) for part in (before, token.text, after))
    return f"{before}[{word}]{after}"
