"""Docs to the layers of the biLM: long docs run in groups of windows."""

from typing import Any

import numpy
import pytest
import spacy
from numpy.testing import assert_allclose, assert_array_equal
from spacy.tokens import Doc
from thinc.api import Model

from spacy_elmo.layers.encoder import _group_windows, encoder, get_bilm
from spacy_elmo.layers.settings import EncoderSettings

WORDS = ["Ada", " ", "wrote", "it", ".", "\n", "naïve", "ducks", "swim"] * 6
VOCAB = spacy.blank("xx").vocab


def make_encoder(weights: str, **settings: Any) -> Model[Any, Any]:
    return encoder(EncoderSettings(weights=weights, **settings))


def make_docs() -> list[Doc]:
    """A long doc in sentences, a short one, an empty one, one of whitespace, and a long one without sentences."""
    starts = [i % 9 in (0, 6) for i in range(len(WORDS))]
    return [
        Doc(VOCAB, words=WORDS, sent_starts=starts),
        Doc(VOCAB, words=WORDS[:3]),
        Doc(VOCAB, words=[]),
        Doc(VOCAB, words=[" ", "\n"]),
        Doc(VOCAB, words=WORDS),
    ]


@pytest.mark.parametrize("frozen", [True, False])
def test_groups_of_windows_change_no_layer(weights: str, frozen: bool) -> None:
    docs = make_docs()
    sizes = {"window": 9, "overlap": 2, "frozen": frozen}
    in_groups, at_once = (make_encoder(weights, max_batch_items=n, **sizes) for n in (5, 1000))
    assert len(list(_group_windows(docs, in_groups.attrs["settings"]))) > 4
    assert len(list(_group_windows(docs, at_once.attrs["settings"]))) == 1
    for found, expected, doc in zip(in_groups.predict(docs), at_once.predict(docs), docs, strict=True):
        assert found.shape == (3, len(doc), expected.shape[2])
        assert_allclose(found, expected, atol=1e-6)
        is_space = numpy.asarray([token.is_space for token in doc], dtype=bool)
        assert_array_equal(found[:, is_space], 0)
        assert (abs(found[:, ~is_space]).max(axis=2) > 0.01).all()


def test_groups_of_windows_change_no_gradient(weights: str) -> None:
    docs = make_docs()
    gradients = []
    for max_batch_items in (5, 1000):
        model = make_encoder(weights, max_batch_items=max_batch_items, window=9, overlap=2, frozen=False)
        layers, backprop = model.begin_update(docs)
        backprop([layer * (i + 1) for i, layer in enumerate(layers)])
        gradients.append({name: parameter.grad for name, parameter in get_bilm(model).named_parameters()})
    assert any(abs(gradient).max() > 0.01 for gradient in gradients[0].values() if gradient is not None)
    for name, gradient in gradients[0].items():
        assert_allclose(gradient, gradients[1][name], rtol=1e-5, atol=1e-4, err_msg=name)
