"""Damaged files: one error for all that libraries raise while they read them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .versions import NewerFormatError


@contextmanager
def refuse_damaged(where: Path | str, what: str) -> Iterator[None]:
    """Turn every error of reading into a ValueError that says what could not be read. For data that a library reads which
    raises errors of many kinds; errors of the file system and of newer formats stay as they are.

    where (Path | str): The file or directory, or what else the data are.
    what (str): What they should be.
    """
    try:
        yield
    except (OSError, NewerFormatError):
        raise
    except Exception as error:
        raise ValueError(f"{where} is not {what}, or a damaged one: {error!s:.1000}") from error
