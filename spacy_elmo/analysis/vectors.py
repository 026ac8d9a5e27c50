"""The vectors that analyses read from docs."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import numpy
from numpy.typing import NDArray
from spacy.language import Language
from spacy.tokens import Doc, Token

from .layer_name import layer_name

Floats = NDArray[Any]
Combine = Callable[[Any], Any]  # layers_LNW to vectors_NV, both NumPy's or both torch's
Combination = tuple[list[int], Combine]  # the layers that are read, and a function of all layers
ContextT = TypeVar("ContextT")


def doc_vectors(doc: Doc, layer: int | None = None) -> Floats:
    """Look up the vectors of a doc's tokens.

    doc (Doc): The doc, after `elmo` has run on it.
    layer (int | None): A layer of the language model, where 0 is the token layer; None for Doc.tensor.
    RETURNS (NDArray): vectors_TW.
    """
    if layer is None:
        if len(doc.tensor) != len(doc):
            raise ValueError(f"The doc {doc.text[:50]!r} has no vectors in Doc.tensor. Run `elmo` on it first.")
        return numpy.asarray(doc.tensor)
    layers_LTW = doc_layers(doc)
    if not 0 <= layer < len(layers_LTW):
        raise ValueError(f"There is no layer {layer}: the layers are 0 to {len(layers_LTW) - 1}.")
    return numpy.asarray(layers_LTW[layer])


def doc_layers(doc: Doc) -> Floats:
    """Look up all layers of a doc's tokens.

    doc (Doc): The doc, after `elmo` has run on it with keep_layers = true.
    RETURNS (NDArray): layers_LTW.
    """
    layers_LTW: Floats | None = doc._.elmo_layers
    if layers_LTW is None:
        raise ValueError(f"The doc {doc.text[:50]!r} has no layers. Run `elmo` on it first, with keep_layers = true.")
    if layers_LTW.shape[1] != len(doc):
        raise ValueError(
            f"The doc {doc.text[:50]!r} was retokenized: its layers are those of other tokens. Run `elmo` on it again."
        )
    return layers_LTW


def embed_sentences(
    nlp: Language, sentences: Iterable[tuple[Sequence[str], ContextT]]
) -> Iterator[tuple[Floats, ContextT]]:
    """Compute the layers of sentences, a batch at a time.

    nlp (Language): The pipeline, with an `elmo` component that keeps its layers.
    sentences (Iterable[tuple]): The words of a sentence, and anything that belongs to it.
    YIELDS (tuple): layers_LTW, and what belongs to the sentence.
    """
    docs = ((Doc(nlp.vocab, words=list(words)), context) for words, context in sentences)
    for doc, context in nlp.pipe(docs, as_tuples=True):
        yield doc_layers(doc), context


def stack_vectors(tokens: Sequence[Token], layer: int | None = None) -> Floats:
    """Look up the vectors of tokens, which may be in different docs.

    tokens (Sequence[Token]): The tokens, at least one.
    layer (int | None): As for `doc_vectors`.
    RETURNS (NDArray): vectors_NW.
    """
    return numpy.stack([doc_vectors(token.doc, layer)[token.i] for token in tokens])


def unit_vectors(vectors_NW: Floats) -> Floats:
    """Scale vectors to a length of 1, so that their dot products are cosines. A vector of zeros stays as it is.

    vectors_NW (NDArray): The vectors.
    RETURNS (NDArray): units_NW.
    """
    norms_N1 = numpy.linalg.norm(vectors_NW, axis=1, keepdims=True)
    return vectors_NW / numpy.where(norms_N1 == 0, 1, norms_N1)


def layer_combinations(n_layers: int) -> dict[str, Combination]:
    """List the ways in which analyses make one vector of a token's layers, without learning anything.

    n_layers (int): The number of layers.
    RETURNS (dict[str, Combination]): Combinations by name: each layer alone, their mean, and all of them side by side.
    """

    def only(i: int) -> Combine:
        return lambda layers_LNW: layers_LNW[i]

    everything = list(range(n_layers))
    return {
        **{layer_name(i): ([i], only(i)) for i in everything},
        "mean": (everything, lambda layers_LNW: layers_LNW.mean(0)),
        "side by side": (
            everything,
            lambda layers_LNW: layers_LNW.swapaxes(0, 1).reshape(layers_LNW.shape[1], -1),
        ),
    }
