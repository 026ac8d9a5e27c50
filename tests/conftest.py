"""Fixtures that all tests share."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import spacy
import torch
from hypothesis import settings
from spacy.tokens import DocBin, Span

from spacy_elmo.bilm.weights import save_weights

from .fresh_python import FreshPython
from .helpers import random_bilm
from .skips import NEEDS_SHARED, pytest_addoption, pytest_sessionfinish, pytest_terminal_summary

__all__ = ["pytest_addoption", "pytest_sessionfinish", "pytest_terminal_summary"]

# One thread here and in the processes that tests start: models of this size would spend most of their time waking other
# threads, and xdist runs a test on every core.
os.environ.setdefault("OMP_NUM_THREADS", "1")
torch.set_num_threads(1)

# A shell starts background jobs with this signal ignored, and processes inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# The same examples in every run: a test that fails by chance is read by nobody.
settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=40)
settings.load_profile("repeatable")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The directory beside the checkout with data that do not belong to the package."""
    path = Path(__file__).parents[2] / "shared"
    if not path.is_dir():
        pytest.skip(f"{NEEDS_SHARED}: stored outputs of published models, and public data")
    return path


@pytest.fixture(scope="session")
def fresh_python() -> Iterator[FreshPython]:
    """Interpreters that have not imported what a test asks about."""
    fresh = FreshPython()
    yield fresh
    fresh.close()


@pytest.fixture(scope="session")
def task_docs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with a few docs that have all that any of the configs learns."""
    nlp = spacy.blank("en")
    made = []
    for text, label in (("Ada wrote it in London .", "good"), ("It was Bob who saw Paris .", "bad")) * 6:
        doc = nlp(text)
        doc.set_ents([Span(doc, i, i + 1, "NAME") for i, token in enumerate(doc) if token.text[1:] and token.is_title])
        doc.cats = {name: float(name == label) for name in ("good", "bad")}
        for token in doc:
            token.tag_ = "NAME" if token.is_title else "OTHER"
        made.append(doc)
    path = tmp_path_factory.mktemp("docs") / "docs.spacy"
    DocBin(docs=made).to_disk(path)
    return path


@pytest.fixture(scope="session")
def weights(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A weights directory of a small random biLM, which nobody changes."""
    path = tmp_path_factory.mktemp("weights") / "a"
    save_weights(random_bilm(1), path)
    return str(path)


@pytest.fixture
def restored_threads() -> Iterator[None]:
    """Give torch its number of threads back after a test that changes it."""
    n_threads = torch.get_num_threads()
    yield
    torch.set_num_threads(n_threads)
