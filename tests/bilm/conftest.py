"""Fixtures of the tests of the biLM."""

import pytest

from spacy_elmo.bilm.model import BiLM

from ..helpers import random_bilm


@pytest.fixture(scope="module")
def bilm() -> BiLM:
    return random_bilm()
