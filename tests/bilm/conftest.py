"""Fixtures of the tests of the biLM."""

from collections.abc import Iterator

import pytest
import torch

from spacy_elmo.bilm.model import BiLM

from ..helpers import random_bilm


@pytest.fixture(scope="module")
def bilm() -> BiLM:
    return random_bilm()


@pytest.fixture
def restored_threads() -> Iterator[None]:
    """Give torch its number of threads back after a test that changes it."""
    n_threads = torch.get_num_threads()
    yield
    torch.set_num_threads(n_threads)
