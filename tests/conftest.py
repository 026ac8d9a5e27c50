"""Fixtures that all tests share."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from hypothesis import settings

from spacy_elmo.bilm.weights import save_weights

from .helpers import random_bilm

# The same examples in every run: a test that fails by chance is read by nobody.
settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=40)
settings.load_profile("repeatable")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The directory beside the checkout with data that do not belong to the package."""
    path = Path(__file__).parents[2] / "shared"
    if not path.is_dir():
        pytest.skip(f"needs the stored outputs of published models, which are not at {path}")
    return path


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """Run torch in one thread: for models of this size it spends most of its time waking the others."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def weights(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A weights directory of a small random biLM, which nobody changes."""
    path = tmp_path_factory.mktemp("weights") / "a"
    save_weights(random_bilm(1), path)
    return str(path)
