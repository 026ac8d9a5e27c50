"""doc._.elmo_layers, also after the tokens of a doc have changed."""

import warnings

import numpy
import pytest
import spacy
from numpy.testing import assert_array_equal
from spacy.tokens import Doc, DocBin

from spacy_elmo.layers.doc_layers import KEY, add_layers, computed_layers, set_layers

LAYERS = numpy.arange(3 * 4 * 2, dtype="float32").reshape(3, 4, 2)


@pytest.fixture
def doc() -> Doc:
    doc = spacy.blank("en")("They play a play")
    set_layers(doc, LAYERS, "elmo")
    return doc


def test_layers_can_be_set_and_removed(doc: Doc) -> None:
    assert_array_equal(doc._.elmo_layers, LAYERS)
    assert computed_layers(doc, "elmo") is LAYERS
    assert computed_layers(doc, "another") is None
    doc._.elmo_layers = None
    assert doc._.elmo_layers is None
    assert computed_layers(doc, "elmo") is None
    assert KEY not in doc.user_data


def test_merged_and_split_tokens(doc: Doc) -> None:
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[1:3])
        retokenizer.split(doc[3], ["pl", "ay"], heads=[doc[0], doc[0]])
    assert [token.text for token in doc] == ["They", "play a", "pl", "ay"]
    assert_array_equal(doc._.elmo_layers, LAYERS[:, [0, 2, 3, 3]])


def test_merged_tokens_have_the_row_that_spacy_keeps(doc: Doc) -> None:
    doc.tensor = LAYERS[1]
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[1:4])
    assert_array_equal(doc._.elmo_layers[1], doc.tensor)
    assert computed_layers(doc, "elmo") is None  # a listener needs those of the new tokens


def test_layers_are_serialized_with_the_doc(doc: Doc) -> None:
    restored = Doc(doc.vocab).from_bytes(doc.to_bytes())
    assert_array_equal(restored._.elmo_layers, LAYERS)
    assert_array_equal(computed_layers(restored, "elmo"), LAYERS)
    docs = DocBin(docs=[doc], store_user_data=True)
    (restored,) = DocBin(store_user_data=True).from_bytes(docs.to_bytes()).get_docs(doc.vocab)
    assert_array_equal(restored._.elmo_layers, LAYERS)


def test_layers_that_an_earlier_version_serialized(doc: Doc) -> None:
    doc.user_data[KEY] = LAYERS
    assert_array_equal(doc._.elmo_layers, LAYERS)
    assert computed_layers(doc, "elmo") is None


def test_part_of_a_doc_does_not_have_the_layers_of_other_words(doc: Doc) -> None:
    assert doc[1:3].as_doc(copy_user_data=True)._.elmo_layers is None


def test_joined_docs_warn_once_a_doc(doc: Doc) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        joined = Doc.from_docs([doc, doc])
    assert [str(warning.message) for warning in caught] == [str(caught[0].message)] * 2
    assert "'elmo_layers'" in str(caught[0].message)
    assert joined is not None
    assert joined._.elmo_layers is None


def test_each_component_has_its_layers(doc: Doc) -> None:
    other, third = LAYERS + 1, LAYERS + 2
    add_layers(doc, other, "other")  # for its listeners: it has not annotated the doc
    assert_array_equal(doc._.elmo_layers, LAYERS)
    set_layers(doc, third, "third")
    assert_array_equal(doc._.elmo_layers, third)
    for name, layers_LTW in (("elmo", LAYERS), ("other", other), ("third", third)):
        assert computed_layers(doc, name) is layers_LTW
    set_layers(doc, None, "third")
    assert_array_equal(doc._.elmo_layers, LAYERS)
