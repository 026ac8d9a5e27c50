"""One process at a time in a directory."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..files.atomic import naming


@contextmanager
def lock(directory: Path) -> Iterator[None]:
    """Keep a directory from other processes that ask for it. The system lets go of it when this one ends, however that happens.

    directory (Path): The directory, which is made if it is not there.
    """
    with naming(directory):
        directory.mkdir(parents=True, exist_ok=True)
    if sys.platform == "win32":  # which has no such locks
        yield
        return
    import fcntl

    handle = os.open(directory, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(
                f"Another process is at work in {directory}. Wait until it is done, or choose another place."
            ) from None
        except OSError:
            pass  # not every file system of a network can do this
        yield
    finally:
        os.close(handle)
