"""Vectors and similarity in context, and what survives of them."""

import warnings
from pathlib import Path

import numpy
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from spacy.language import Language
from spacy.tokens import Doc, DocBin

from spacy_elmo.bilm.weights import save_weights

from ..helpers import make_elmo_nlp, random_bilm

TEXT = "They play a play on Broadway ."


@pytest.fixture
def nlp(weights: str) -> Language:
    return make_elmo_nlp(weights)


def test_similarity_is_of_the_vectors_in_context(nlp: Language) -> None:
    doc = nlp(TEXT)
    verb, noun = doc.tensor[1], doc.tensor[3]
    expected = float(verb @ noun / numpy.linalg.norm(verb) / numpy.linalg.norm(noun))
    assert expected < 0.999
    assert doc[1].similarity(doc[3]) == pytest.approx(expected, abs=1e-6)
    assert doc[1:2].similarity(doc[3]) == pytest.approx(expected, abs=1e-6)
    assert doc.similarity(nlp(TEXT)) == pytest.approx(1.0, abs=1e-6)
    assert doc.similarity(nlp("")) == 0.0


def test_vector_of_a_doc_is_never_that_of_another_model(weights: str, tmp_path: Path) -> None:
    save_weights(random_bilm(2), tmp_path / "other")
    doc = make_elmo_nlp(weights)(TEXT)
    old, old_norm = doc.vector, doc.vector_norm
    make_elmo_nlp(str(tmp_path / "other")).get_pipe("elmo")(doc)
    assert_allclose(doc.vector, doc.tensor.mean(axis=0), atol=1e-6)
    assert doc.vector_norm == pytest.approx(float(numpy.linalg.norm(doc.vector)))
    assert not numpy.allclose(doc.vector, old)
    assert doc.vector_norm != pytest.approx(old_norm)


def test_similarity_hooks_of_the_user_stay(nlp: Language) -> None:
    doc = nlp.make_doc(TEXT)
    doc.user_token_hooks["similarity"] = lambda one, other: 42.0
    nlp.get_pipe("elmo")(doc)
    assert doc[1].similarity(doc[3]) == 42.0


def test_serialized_doc_keeps_its_vectors(weights: str) -> None:
    nlp = make_elmo_nlp(weights)
    with warnings.catch_warnings():  # what is set in here is forgotten
        doc = nlp(TEXT)
    restored = Doc(nlp.vocab).from_bytes(doc.to_bytes())
    assert_array_equal(restored.tensor, doc.tensor)
    assert_array_equal(restored._.elmo_layers, doc._.elmo_layers)


def test_token_and_lexeme_of_the_same_word(nlp: Language) -> None:
    doc = nlp(TEXT)
    assert doc[1].similarity(nlp.vocab["play"]) == 1.0


def test_similarity_in_docs_that_were_serialized(nlp: Language) -> None:
    doc = nlp(TEXT)
    restored = Doc(nlp.vocab).from_bytes(doc.to_bytes())
    expected = doc[1].similarity(doc[3])
    assert restored[1].similarity(restored[3]) == 1.0  # spaCy's own, since hooks are not stored
    assert restored[1]._.elmo_similarity(restored[3]) == pytest.approx(expected, abs=1e-6)
    assert restored[1:2]._.elmo_similarity(doc[3]) == pytest.approx(expected, abs=1e-6)
    assert restored._.elmo_similarity(doc) == pytest.approx(1.0, abs=1e-6)


def test_similarity_whatever_else_writes_vectors(nlp: Language) -> None:
    doc = nlp(TEXT)
    expected = doc[1].similarity(doc[3])
    nlp.vocab.set_vector("play", numpy.ones(5, dtype="float32"))
    doc.tensor = numpy.ones((7, 12), dtype="float32")
    docs = DocBin(docs=[doc], store_user_data=True)
    (restored,) = DocBin(store_user_data=True).from_bytes(docs.to_bytes()).get_docs(nlp.vocab)
    for each in (doc, restored):
        assert each[1]._.elmo_similarity(each[3]) == pytest.approx(expected, abs=1e-6)


def test_similarity_without_layers(nlp: Language) -> None:
    (doc,) = DocBin().from_bytes(DocBin(docs=[nlp(TEXT)]).to_bytes()).get_docs(nlp.vocab)
    with pytest.raises(ValueError, match="The doc 'They play .* no ELMo layers.*keep_layers.*store_user_data = True"):
        doc[1]._.elmo_similarity(doc[3])
    assert nlp("")._.elmo_similarity(nlp(TEXT)) == 0.0


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
