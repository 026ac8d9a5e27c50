"""Nearest neighbours in context: of all uses of all words in a text, those whose vectors are closest to that of one use."""

import re
from collections.abc import Iterable, Sequence
from heapq import nlargest
from typing import NamedTuple

import numpy
import numpy.typing
from spacy.language import Language
from spacy.tokens import Doc, Token

MARKED = re.compile(r"\[([^\[\]]+)\]")


class Neighbour(NamedTuple):
    """One use of a word, and how close it is.

    similarity (float): The cosine of the angle between the two vectors.
    token (Token): The word, in its doc.
    """

    similarity: float
    token: Token


def find_neighbours(
    uses: list[Token], docs: Iterable[Doc], *, n: int = 5, layers: Sequence[int | None] = (None,)
) -> list[list[list[Neighbour]]]:
    """Find the nearest neighbours of some uses of words. Of the docs, only those with a neighbour are held.

    uses (list[Token]): The uses.
    docs (Iterable[Doc]): Where to look, each doc with its vectors. A use is no neighbour of itself.
    n (int): How many neighbours to find for each.
    layers (Sequence[int | None]): The layers of the language model to compare, 0 being the token layer; None for
        Doc.tensor.
    RETURNS (list[list[list[Neighbour]]]): For each layer and each use its neighbours, the closest first; of equally close
        ones, the first in the docs.
    """
    if not uses:
        return [[] for _ in layers]
    wanted = [numpy.stack([_unit_vectors(use.doc, layer)[use.i] for use in uses]) for layer in layers]
    found: list[list[list[Neighbour]]] = [[[] for _ in uses] for _ in layers]
    for doc in docs:
        for layer, wanted_UW, found_U in zip(layers, wanted, found, strict=True):
            similarities_UT = wanted_UW @ _unit_vectors(doc, layer).T
            for use, best, similarities_T in zip(uses, found_U, similarities_UT, strict=True):
                here = [
                    Neighbour(float(similarities_T[token.i]), token)
                    for token in doc
                    if not token.text.isspace() and not (doc is use.doc and token.i == use.i)
                ]
                best[:] = nlargest(n, [*best, *here], key=lambda neighbour: neighbour.similarity)
    return found


def _unit_vectors(doc: Doc, layer: int | None) -> numpy.typing.NDArray[numpy.floating]:
    vectors_TW = _vectors(doc, layer)
    norms_T1 = numpy.linalg.norm(vectors_TW, axis=1, keepdims=True)
    return vectors_TW / numpy.where(norms_T1 == 0, 1, norms_T1)


def _vectors(doc: Doc, layer: int | None) -> numpy.typing.NDArray[numpy.floating]:
    if layer is None:
        if len(doc.tensor) != len(doc):
            raise ValueError(f"The doc {doc.text[:50]!r} has no vectors in Doc.tensor. Run `elmo` on it first.")
        return numpy.asarray(doc.tensor)
    layers_LTW = doc._.elmo_layers
    if layers_LTW is None:
        raise ValueError(f"The doc {doc.text[:50]!r} has no layers. Run `elmo` on it first, with keep_layers = true.")
    if layers_LTW.shape[1] != len(doc):
        raise ValueError(
            f"The doc {doc.text[:50]!r} has layers for other tokens than it has now. Run `elmo` on it again."
        )
    if not 0 <= layer < len(layers_LTW):
        raise ValueError(f"There is no layer {layer}: the layers are 0 to {len(layers_LTW) - 1}.")
    return numpy.asarray(layers_LTW[layer])


def read_use(nlp: Language, text: str) -> Token:
    """Read a use of a word: a sentence with the word in square brackets.

    nlp (Language): The pipeline.
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
    """Write a use of a word as it is read.

    token (Token): The word, in its doc.
    width (int | None): The most characters on either side; None for all.
    RETURNS (str): The text with the word in square brackets.
    """
    text, start, end = token.doc.text, token.idx, token.idx + len(token)
    before, after = text[:start], text[end:].rstrip()
    if width is not None:
        before = before if len(before) <= width else "…" + before[len(before) - width + 1 :]
        after = after if len(after) <= width else after[: width - 1] + "…"
    return f"{before}[{token.text}]{after}"
