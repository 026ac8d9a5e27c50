"""Fixtures of the tests of the biattentive classifier."""

import pytest
from thinc.api import fix_random_seed


@pytest.fixture(autouse=True)
def seed() -> None:
    fix_random_seed(0)
