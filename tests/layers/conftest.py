"""Fixtures of the tests of layers."""

import pytest
from spacy.language import Language
from thinc.api import fix_random_seed

from ..listening import save_random_weights, train_both


@pytest.fixture(autouse=True)
def seed() -> None:
    fix_random_seed(0)


@pytest.fixture(scope="session")
def weights(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Weights with clips that are wide enough to learn with."""
    return save_random_weights(tmp_path_factory.mktemp("weights") / "layers")


@pytest.fixture(scope="module")
def trained(weights: str) -> Language:
    """A pipeline with two components that have learned. Tests must not change it."""
    return train_both(weights)
