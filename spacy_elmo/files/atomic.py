"""Write files and directories so that nobody ever sees half of them."""

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

ASIDE = "-old"


@contextmanager
def write_directory(directory: Path, *, files: set[str], kept: frozenset[str] = frozenset()) -> Iterator[Path]:
    """Fill a directory aside and put it in place when it is complete. If anything fails, what was there stays.

    directory (Path): The directory to write.
    files (set[str]): The names of what will be in it. A directory that exists is replaced if it has nothing else, and
        otherwise kept: a mistyped path must not cost anyone their files.
    kept (frozenset[str]): The names of files that are not written, but stay as they are if they are there.
    YIELDS (Path): Where to write meanwhile.
    """
    directory = directory.resolve()  # a link stays one, and what it points to is written
    recover_directory(directory)
    if directory.exists() and not directory.is_dir():
        raise ValueError(f"{directory} is a file; a directory is to be written there. Choose another place.")
    found = {path.name for path in directory.iterdir()} if directory.exists() else set()
    others = sorted(found - files - kept)
    if others:
        raise ValueError(f"{directory} has other files in it, such as {others[0]!r}. Choose another place.")
    directory.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f".{directory.name}-", dir=directory.parent))
    aside = draft.with_name(f"{draft.name}{ASIDE}")
    try:
        # mkdtemp makes directories that only their owner can read.
        draft.chmod(0o777 & ~umask())
        with naming(directory):
            yield draft
            for name in found & kept:
                shutil.copy2(directory / name, draft / name)
            _sync(draft)
        if directory.exists():
            # A rename cannot replace a full directory, so the old one steps aside until the new one is in place.
            directory.rename(aside)
        draft.rename(directory)
    finally:
        if aside.exists() and not directory.exists():
            aside.rename(directory)
        shutil.rmtree(aside, ignore_errors=True)
        shutil.rmtree(draft, ignore_errors=True)


def write_file(path: Path, text: str) -> None:
    """Write a text file aside and put it in place when it is complete.

    path (Path): The file.
    text (str): What will be in it.
    """
    with open_file(path) as file:
        file.write(text)


@contextmanager
def open_file(path: Path) -> Iterator[IO[str]]:
    """Open a text file to be written piece by piece: aside, and put in place when it is complete.

    path (Path): The file.
    YIELDS (IO[str]): What to write to.
    """
    draft = path.with_name(f".{path.name}-draft")
    try:
        with naming(path):
            with draft.open("w", encoding="utf8") as file:
                yield file
            draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Say in an error what could not be written: a full disk does not.

    path (Path): What is written.
    """
    try:
        yield
    except OSError as error:
        raise OSError(f"{path} could not be written: {error}. Is the disk full, or are you not allowed to?") from error


def recover_directory(directory: Path) -> None:
    """Put back a directory that had stepped aside when its replacement was killed, in the instant before the new one took
    its place.

    directory (Path): The directory.
    """
    found = _leftovers(directory, ASIDE)
    if found and not directory.exists():
        max(found, key=lambda path: path.stat().st_mtime_ns).rename(directory)


def remove_leftovers(directory: Path) -> None:
    """Remove what writers of a directory left beside it when they were killed. Nobody may be writing it meanwhile.

    directory (Path): The directory.
    """
    recover_directory(directory)
    for path in _leftovers(directory, f"({ASIDE})?"):
        shutil.rmtree(path, ignore_errors=True)


def _leftovers(directory: Path, ending: str) -> list[Path]:
    of_this = re.compile(rf"\.{re.escape(directory.name)}-[a-z0-9_]{{8}}{ending}")  # as mkdtemp makes names
    return [path for path in directory.parent.glob(".*") if of_this.fullmatch(path.name)]


def umask() -> int:
    """RETURNS (int): What new files do not allow, as the user has set it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _sync(directory: Path) -> None:
    for path in directory.iterdir():
        with path.open("rb") as file:
            os.fsync(file.fileno())
