"""The vectors that analyses read from docs."""

import numpy
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from spacy.tokens import Doc
from spacy.vocab import Vocab

import spacy_elmo.pipeline  # noqa: F401  registers doc._.elmo_layers
from spacy_elmo.analysis.layer_name import layer_name
from spacy_elmo.analysis.vectors import doc_layers, doc_vectors, stack_vectors, unit_vectors


@pytest.fixture
def doc() -> Doc:
    doc = Doc(Vocab(), words=["It", "is"])
    doc._.elmo_layers = numpy.arange(12, dtype="float32").reshape(2, 2, 3)
    doc.tensor = doc._.elmo_layers.mean(axis=0)
    return doc


def test_layers_and_the_tensor_are_looked_up(doc: Doc) -> None:
    assert_array_equal(doc_vectors(doc), [[3, 4, 5], [6, 7, 8]])
    assert_array_equal(doc_vectors(doc, 1), [[6, 7, 8], [9, 10, 11]])
    assert_array_equal(doc_layers(doc)[1], doc_vectors(doc, 1))
    assert_array_equal(stack_vectors([doc[1], doc[0], doc[1]], 0), [[3, 4, 5], [0, 1, 2], [3, 4, 5]])


@pytest.mark.parametrize("layer", [-1, 2])
def test_layers_out_of_range(doc: Doc, layer: int) -> None:
    with pytest.raises(ValueError, match=f"There is no layer {layer}: the layers are 0 to 1"):
        doc_vectors(doc, layer)


def test_docs_without_vectors() -> None:
    bare = Doc(Vocab(), words=["It", "is"])
    with pytest.raises(ValueError, match=r"The doc 'It is ' has no vectors in Doc\.tensor. Run `elmo` on it first"):
        doc_vectors(bare)
    with pytest.raises(ValueError, match=r"The doc 'It is ' has no layers.*keep_layers = true"):
        doc_layers(bare)


def test_docs_that_were_retokenized(doc: Doc) -> None:
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[0:2])
    with pytest.raises(ValueError, match="was retokenized: its layers are those of other tokens"):
        doc_layers(doc)


def test_unit_vectors_have_a_length_of_one_or_zero() -> None:
    assert_allclose(unit_vectors(numpy.asarray([[3.0, 4.0], [0.0, 0.0]])), [[0.6, 0.8], [0, 0]])


def test_layer_names() -> None:
    assert [layer_name(i) for i in range(3)] == ["token layer", "LSTM layer 1", "LSTM layer 2"]
