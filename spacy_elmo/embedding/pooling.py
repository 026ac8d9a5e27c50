"""Docs to units: one vector for each document, sentence or token. Whitespace is left out."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple

import numpy
from numpy.typing import NDArray
from spacy.tokens import Doc, Token

from ..corpora.sentences import doc_sentences
from ..layers.doc_layers import count_characters
from .model import Embedder
from .rows import Row
from .settings import Unit


@dataclass
class Units:
    """Units of one row, as columns of the same length.

    row (Row): The row that they are from.
    vectors_NW (NDArray): Their vectors.
    texts (list[str]): Their texts.
    sentences, tokens (list[int]): The indices of their sentences and of their tokens in the row, where they have them.
    n_tokens, n_chars (int): The tokens and characters that they were made from.
    """

    row: Row
    vectors_NW: NDArray[Any]
    texts: list[str]
    sentences: list[int] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    n_tokens: int = 0
    n_chars: int = 0


class RowDoc(NamedTuple):
    """A doc of a row. A long text has several.

    number (int): The number of the row.
    row (Row): The row.
    doc (Doc): The doc, after the pipeline.
    """

    number: int
    row: Row
    doc: Doc


def pool_row(docs: Iterable[RowDoc], embedder: Embedder, unit: Unit) -> Iterator[Units]:
    """Give the units of a row.

    docs (Iterable[RowDoc]): Its docs, at least one, in order. They are not kept.
    embedder (Embedder): What gives their vectors.
    unit (Unit): What gets a vector.
    YIELDS (Units): The units of each doc, or those of all docs if the unit is the document.
    """
    if unit == "document":
        yield _pool_document(docs, embedder)
        return
    n_sentences = n_tokens = 0
    for _, row, doc in docs:
        sentences = list(doc_sentences(doc))
        make_units = _pool_sentences if unit == "sentence" else _list_tokens
        units = make_units(row, sentences, embedder.get_vectors(doc))
        units.sentences = [i + n_sentences for i in units.sentences]
        units.tokens = [i + n_tokens for i in units.tokens]
        units.n_tokens, units.n_chars = sum(map(len, sentences)), count_characters(doc)
        yield units
        n_sentences += len(sentences)
        n_tokens += len(doc)


def _pool_document(docs: Iterable[RowDoc], embedder: Embedder) -> Units:
    total_W, n_tokens, n_chars = numpy.zeros(embedder.width), 0, 0
    for piece in docs:
        is_word_T = piece.doc.to_array("IS_SPACE") == 0
        total_W += embedder.get_vectors(piece.doc)[is_word_T].sum(axis=0, dtype="float64")
        n_tokens += int(is_word_T.sum())
        n_chars += count_characters(piece.doc)
    row = piece.row
    text = row.content if isinstance(row.content, str) else row.content.text
    vectors_1W = (total_W / n_tokens).astype("float32")[None]
    return Units(row, vectors_1W, [text], n_tokens=n_tokens, n_chars=n_chars)


def _pool_sentences(row: Row, sentences: list[list[Token]], vectors_TW: NDArray[Any]) -> Units:
    positions = [[token.i for token in sentence] for sentence in sentences]
    means = [vectors_TW[tokens].mean(axis=0, dtype="float64").astype("float32") for tokens in positions]
    texts = [sentence[0].doc[sentence[0].i : sentence[-1].i + 1].text for sentence in sentences]
    vectors_SW = numpy.stack(means) if means else vectors_TW[:0]
    return Units(row, vectors_SW, texts, sentences=list(range(len(sentences))))


def _list_tokens(row: Row, sentences: list[list[Token]], vectors_TW: NDArray[Any]) -> Units:
    tokens = list(chain.from_iterable(sentences))
    return Units(
        row,
        vectors_TW[[token.i for token in tokens]],
        [token.text for token in tokens],
        sentences=[i for i, sentence in enumerate(sentences) for _ in sentence],
        tokens=[token.i for token in tokens],
    )
