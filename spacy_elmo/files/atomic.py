"""Write files and directories to a draft, then rename it: a crash leaves the old version or the new one, never a part.

A draft is beside the file that it replaces, and has a unique name, so that two writers never share one. It is synced to the
disk before it is renamed, and so is the rename before the writer continues. Its writer holds a lock on it, which ends with
the process: a draft without one was left by a killed writer, and the next writer removes it.
"""

import ctypes
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

if os.name != "nt":
    import fcntl

DRAFT_SUFFIX = ".draft"
OLD_SUFFIX = "-old"
AT_FDCWD, RENAME_EXCHANGE = -100, 2  # of Linux


@contextmanager
def write_directory(directory: Path, *, files: set[str], kept: frozenset[str] = frozenset()) -> Iterator[Path]:
    """Fill a draft of a directory, and put it in place when it is complete. If anything fails, an existing directory stays.

    directory (Path): The directory to write.
    files (set[str]): The names of its future files. An existing directory is replaced only if it has no others. This
        protects against a mistyped path.
    kept (frozenset[str]): The names of others that are copied from the old directory if they are there.
    YIELDS (Path): The draft.
    """
    directory = directory.resolve()  # a link stays one, and its target is written
    remove_leftovers(directory)
    if directory.exists() and not directory.is_dir():
        raise ValueError(f"{directory} is a file; a directory is to be written there. Choose another path.")
    found = {path.name for path in directory.iterdir()} if directory.exists() else set()
    others = sorted(found - files - kept)
    if others:
        raise ValueError(f"{directory} has other files in it, such as {others[0]!r}. Choose another path.")
    with _make_draft(directory, is_directory=True) as draft:
        old = draft.with_name(f"{draft.name}{OLD_SUFFIX}")
        try:
            with explain_write_errors(directory):
                draft.chmod(0o777 & ~_umask())  # mkdtemp gives permissions to the owner alone
                yield draft
                for name in found - files:
                    copy = shutil.copytree if (directory / name).is_dir() else shutil.copy2
                    copy(directory / name, draft / name)
                for path in [*draft.rglob("*"), draft]:
                    _sync(path)
                if not directory.exists():
                    draft.rename(directory)
                elif not _exchange(draft, directory):
                    # A rename cannot replace a directory with files in it, so the old one gets another name first.
                    directory.rename(old)
                    draft.rename(directory)
                _sync_entry(directory)
        finally:
            if old.exists() and not directory.exists():
                old.rename(directory)
            shutil.rmtree(old, ignore_errors=True)
            shutil.rmtree(draft, ignore_errors=True)


@contextmanager
def draft_file(path: Path) -> Iterator[Path]:
    """Fill a draft of a file, and put it in place when it is complete. If anything fails, an existing file stays.

    path (Path): The file to write. Its directory is made if necessary.
    YIELDS (Path): The draft, an empty file.
    """
    path = path.resolve()  # a link stays one, and its target is written
    remove_leftovers(path)
    with _make_draft(path, is_directory=False) as draft:
        try:
            with explain_write_errors(path):
                yield draft
                draft.chmod(0o666 & ~_umask())  # mkstemp gives permissions to the owner alone
                _sync(draft)
                draft.replace(path)
                _sync_entry(path)
        finally:
            draft.unlink(missing_ok=True)


@contextmanager
def open_file(path: Path) -> Iterator[IO[str]]:
    """Open the draft of a text file, to be written piece by piece and put in place when it is complete.

    path (Path): The file to write.
    YIELDS (IO[str]): The open draft.
    """
    with draft_file(path) as draft, draft.open("w", encoding="utf8") as file:
        yield file


def write_file(path: Path, text: str) -> None:
    """Write a text file to a draft, and put it in place when it is complete.

    path (Path): The file to write.
    text (str): Its contents.
    """
    with open_file(path) as file:
        file.write(text)


class WriteError(OSError):
    """An error of writing, with its path."""


@contextmanager
def explain_write_errors(path: Path) -> Iterator[None]:
    """Put a path into the errors of writing it: that of a full disk has none.

    path (Path): The file or directory that is being written.
    """
    try:
        yield
    except WriteError:
        raise  # of a file in this directory
    except OSError as error:
        raise WriteError(
            f"{path} could not be written: {error}. Is the disk full, or is writing not permitted?"
        ) from error


def recover_directory(directory: Path) -> None:
    """Restore a directory whose writer was killed after it had renamed the old one, and before the new one was in place.

    directory (Path): The directory.
    """
    found = []
    for old in _leftovers(directory, OLD_SUFFIX):
        with _take_over(old) as is_abandoned:
            found += [old] if is_abandoned else []
    if found and not directory.exists():
        max(found, key=lambda path: path.stat().st_mtime_ns).rename(directory)


def remove_leftovers(path: Path) -> None:
    """Remove the drafts that killed writers left beside a file or directory.

    path (Path): The file or directory.
    """
    recover_directory(path)
    for leftover in _leftovers(path, f"({OLD_SUFFIX})?"):
        with _take_over(leftover) as is_abandoned:
            if is_abandoned and leftover.is_dir():
                shutil.rmtree(leftover, ignore_errors=True)
            elif is_abandoned:
                leftover.unlink(missing_ok=True)


def _leftovers(path: Path, ending: str) -> list[Path]:
    # As tempfile makes them. Users have files such as `.notes.txt-original`, so drafts have their own suffix.
    names = re.compile(rf"\.{re.escape(path.name)}-[a-z0-9_]{{8}}{re.escape(DRAFT_SUFFIX)}{ending}")
    return [other for other in path.parent.glob(".*") if names.fullmatch(other.name)]


@contextmanager
def _make_draft(path: Path, *, is_directory: bool) -> Iterator[Path]:
    """Make an empty draft, and hold a lock on it.

    YIELDS (Path): The draft.
    """
    with explain_write_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        draft, handle = _make_locked(path, is_directory)
        while not draft.exists():  # another writer has taken it for a leftover before it was locked
            _close(handle)
            draft, handle = _make_locked(path, is_directory)
    try:
        yield draft
    finally:
        _close(handle)


def _make_locked(path: Path, is_directory: bool) -> tuple[Path, int | None]:
    if is_directory:
        name = tempfile.mkdtemp(suffix=DRAFT_SUFFIX, prefix=f".{path.name}-", dir=path.parent)
        handle = None if os.name == "nt" else os.open(name, os.O_RDONLY)
    else:
        handle, name = tempfile.mkstemp(suffix=DRAFT_SUFFIX, prefix=f".{path.name}-", dir=path.parent)
    if handle is None or os.name == "nt":  # no file with an open handle can be renamed there
        _close(handle)
        return Path(name), None
    with suppress(OSError):  # some network file systems have no locks
        fcntl.flock(handle, fcntl.LOCK_EX)
    return Path(name), handle


def _close(handle: int | None) -> None:
    if handle is not None:
        os.close(handle)


@contextmanager
def _take_over(leftover: Path) -> Iterator[bool]:
    """Lock a draft, or the draft that replaces an old directory, if its writer does not live.

    YIELDS (bool): Whether it is locked, or there is none.
    """
    if os.name == "nt":
        yield False
        return
    draft = leftover.with_name(leftover.name.removesuffix(OLD_SUFFIX))
    try:
        # On NFS, only a file that is open for writing can be locked.
        handle = os.open(draft, os.O_RDONLY if draft.is_dir() else os.O_RDWR)
    except FileNotFoundError:
        yield True
        return
    except PermissionError:
        yield False  # another user's
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        yield False  # its writer has the lock, or there are no locks
    else:
        yield True
    finally:
        os.close(handle)


def _exchange(one: Path, other: Path) -> bool:
    """Exchange the names of two directories in one step, which Linux can on most file systems.

    RETURNS (bool): Whether it has happened.
    """
    rename = getattr(ctypes.CDLL(None), "renameat2", None) if sys.platform == "linux" else None
    return rename is not None and rename(AT_FDCWD, bytes(one), AT_FDCWD, bytes(other), RENAME_EXCHANGE) == 0


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _sync(path: Path) -> None:
    """Wait until a file, or the list of files of a directory, is on the disk."""
    if os.name == "nt" and path.is_dir():
        return  # Windows opens no directories
    handle = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _sync_entry(path: Path) -> None:
    """Wait until a rename is on the disk. Errors are ignored: the rename itself has succeeded."""
    with suppress(OSError):
        _sync(path.parent)
