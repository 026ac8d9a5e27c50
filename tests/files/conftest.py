"""Fixtures of the tests of files."""

import pytest

from spacy_elmo.files import atomic


@pytest.fixture
def no_exchange(monkeypatch: pytest.MonkeyPatch) -> None:
    """A system that cannot exchange two directories in one step."""
    monkeypatch.setattr(atomic, "_exchange", lambda one, other: False)
