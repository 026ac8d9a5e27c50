"""Format versions of our files: which ones this release can read, and which release wrote them."""

from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

VERSION_KEY, WRITER = "format_version", "spacy_elmo_version"


class NewerFormatError(ValueError):
    """A file has a later format than this release can read. It is not damaged."""


def add_version(data: dict[str, Any], *, current: int) -> dict[str, Any]:
    """Mark JSON-shaped data with the version of their format, and with the release that writes them.

    data (dict): The data.
    current (int): The version of the format.
    RETURNS (dict): The data with both.
    """
    return {VERSION_KEY: current, WRITER: installed_version(), **data}


def take_version(data: Any, *, current: int, where: Path | str) -> tuple[int, dict[str, Any]]:
    """Take the version off data. Refuse those of a later format than this release can read.

    data (Any): The data, which should be a dictionary.
    current (int): The latest version of the format.
    where (Path | str): The file of the data, for the error.
    RETURNS (tuple): The version, 0 for files of spacy-elmo 0.1.0, which have none; and the data without it.
    """
    if not isinstance(data, dict):
        raise ValueError(f"expected an object, got {data!r:.80}.")
    rest = {name: value for name, value in data.items() if name not in (VERSION_KEY, WRITER)}
    found, writer = data.get(VERSION_KEY, 0), data.get(WRITER)
    if isinstance(found, bool) or not isinstance(found, int) or found < 0:
        raise ValueError(f"{VERSION_KEY} must be a whole number, got {found!r:.80}.")
    if found > current:
        needed = f"spacy-elmo {writer:.20} or later" if isinstance(writer, str) else "a later release"
        raise NewerFormatError(
            f"{where} was written by a newer version of spacy-elmo: its format version is {found}, and spacy-elmo "
            f"{installed_version() or 'as installed here'} reads versions up to {current}. Install {needed}."
        )
    return found, rest


def installed_version() -> str | None:
    """RETURNS (str | None): The version of spacy-elmo, if it was installed and not only put on Python's path."""
    try:
        return version("spacy-elmo")
    except PackageNotFoundError:
        return None
