"""Vectors and similarity in context, and what survives of them."""

import warnings
from pathlib import Path

import numpy
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from spacy.language import Language
from spacy.tokens import Doc, DocBin

from spacy_elmo.bilm.weights import save_weights
from spacy_elmo.layers.vector_hooks import set_vector_hooks

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
    with pytest.warns(UserWarning, match="W008"):
        assert doc.similarity(nlp("")) == 0.0
    with pytest.warns(UserWarning, match="W008"):
        assert doc[1].similarity(nlp.make_doc(TEXT)[1]) == 0.0


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


def test_similarity_with_lexemes_is_spacys(nlp: Language) -> None:
    doc = nlp(TEXT)
    play, broadway = nlp.vocab["play"], nlp.vocab["Broadway"]
    assert [doc[1].similarity(play), doc[1:2].similarity(play)] == [1.0, 1.0]
    assert [doc[1].similarity(broadway), doc[1:3].similarity(play), doc.similarity(play)] == [0.0, 0.0, 0.0]
    nlp.vocab.set_vector("Broadway", numpy.ones(5, dtype="float32"))
    set_vector_hooks(doc, doc.tensor)
    assert doc[1].similarity(broadway) == 0.0  # of another width


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
    with pytest.raises(TypeError, match="Expected a token, span or doc to compare with, got Lexeme"):
        nlp(TEXT)[1]._.elmo_similarity(nlp.vocab["play"])
