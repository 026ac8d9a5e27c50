"""Format versions: what is written, and what is refused."""

from importlib.metadata import PackageNotFoundError, version
from typing import NoReturn

import pytest

from spacy_elmo.files import versions
from spacy_elmo.files.versions import NewerFormatError, add_version, installed_version, take_version


def test_version_roundtrip() -> None:
    marked = add_version({"size": 3}, current=5)
    assert marked == {"format_version": 5, "spacy_elmo_version": version("spacy-elmo"), "size": 3}
    for current in (5, 6):
        assert take_version(marked, current=current, where="file") == (5, {"size": 3})


def test_data_without_a_version_are_the_oldest() -> None:
    assert take_version({"size": 3}, current=5, where="file") == (0, {"size": 3})


def test_newer_data_name_the_release_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "version", lambda name: "0.9.0")
    with pytest.raises(
        NewerFormatError,
        match=(
            r"^a/file was written by a newer version of spacy-elmo: its format version is 6, and spacy-elmo 0\.9\.0 reads versions "
            r"up to 5\. Install spacy-elmo 1\.0\.0 or later\.$"
        ),
    ):
        take_version({"format_version": 6, "spacy_elmo_version": "1.0.0"}, current=5, where="a/file")


def test_an_endless_name_of_a_release_is_cut() -> None:
    with pytest.raises(NewerFormatError, match=r"Install spacy-elmo a{20} or later\.$"):
        take_version({"format_version": 6, "spacy_elmo_version": "a" * 100_000}, current=5, where="a/file")


def test_a_package_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str) -> NoReturn:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(versions, "version", fail)
    assert installed_version() is None
    assert add_version({}, current=1) == {"format_version": 1, "spacy_elmo_version": None}
    with pytest.raises(NewerFormatError, match=r"spacy-elmo as installed here reads .* Install a later release\."):
        take_version({"format_version": 2, "spacy_elmo_version": None}, current=1, where="file")


def test_data_must_be_a_dictionary() -> None:
    with pytest.raises(ValueError, match=r"expected an object, got \[1\]"):
        take_version([1], current=1, where="file")
