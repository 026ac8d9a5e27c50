"""ELMo's vectors as the vectors of a doc."""

import numpy
import pytest
from numpy.testing import assert_allclose

from ..helpers import make_elmo_nlp

TEXT = "They play a play on Broadway ."


def test_vector_hooks_are_off_unless_asked_for(weights: str) -> None:
    doc = make_elmo_nlp(weights)(TEXT)
    doc.tensor = numpy.ones((7, 3), dtype="float32")
    assert doc[0].vector.shape == (3,)


def test_vector_hooks_keep_elmos_vectors(weights: str) -> None:
    nlp = make_elmo_nlp(weights, vector_hooks=True)
    nlp.vocab.set_vector("play", numpy.ones(5, dtype="float32"))
    doc, vectors = nlp(TEXT), make_elmo_nlp(weights)(TEXT).tensor
    doc.tensor = numpy.ones((7, 3), dtype="float32")
    assert_allclose(doc.vector, vectors.mean(axis=0), atol=1e-6)
    assert_allclose(doc[1:3].vector, vectors[1:3].mean(axis=0), atol=1e-6)
    assert_allclose([token.vector for token in doc], vectors, atol=1e-6)
    assert doc[1].vector_norm == pytest.approx(float(numpy.linalg.norm(vectors[1])), abs=1e-6)
    assert doc.has_vector
    assert doc[1].has_vector
    assert nlp("").vector.shape == (12,)
    assert not nlp("").has_vector


def test_vector_hooks_after_retokenization(weights: str) -> None:
    doc = make_elmo_nlp(weights, vector_hooks=True)(TEXT)
    vectors = doc.tensor.copy()
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[1:3])
        retokenizer.split(doc[5], ["Broad", "way"], heads=[doc[4], doc[4]])
    assert [token.text for token in doc] == ["They", "play a", "play", "on", "Broad", "way", "."]
    assert_allclose(doc[1].vector, vectors[1:3].mean(axis=0), atol=1e-6)
    for i, row in ((0, 0), (2, 3), (4, 5), (5, 5), (6, 6)):
        assert_allclose(doc[i].vector, vectors[row], atol=1e-6)


def test_vector_hooks_of_a_doc_made_from_a_span(weights: str) -> None:
    doc = make_elmo_nlp(weights, vector_hooks=True)(TEXT)
    part = doc[3:6].as_doc()
    assert_allclose([token.vector for token in part], doc.tensor[3:6], atol=1e-6)
    assert_allclose(part.vector, doc.tensor[3:6].mean(axis=0), atol=1e-6)


def test_vector_hooks_never_give_other_vectors(weights: str) -> None:
    doc = make_elmo_nlp(weights, vector_hooks=True)(TEXT)
    doc.tensor = numpy.ones((7, 5), dtype="float32")  # as a tok2vec would
    assert_allclose(doc[3:6].as_doc().vector, numpy.zeros(12))
    assert_allclose(doc[2:2].vector, numpy.zeros(12))
    assert not doc[2:2].has_vector
