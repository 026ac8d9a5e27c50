"""Fixtures of the tests of `crf_ner`."""

import pytest
from spacy.language import Language

from .pipelines import learn, make_nlp


@pytest.fixture(scope="module")
def trained() -> Language:
    nlp = make_nlp()
    losses = learn(nlp)
    assert losses[-1] < 0.01 * losses[0]
    return nlp
