"""Texts of articles: one paragraph per line, and empty lines between articles."""

import gzip
import lzma
import zlib
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import TextIO, cast


def read_articles(path: Path) -> Iterator[list[str]]:
    """Read the lines of each article.

    path (Path): The text file, compressed (.gz, .xz) or not.
    YIELDS (list[str]): The lines, at least one.
    """
    try:
        with _open(path) as file:
            lines = (line.rstrip("\n") for line in file)
            for has_text, article in groupby(lines, key=lambda line: bool(line.strip())):
                if has_text:
                    yield list(article)
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8: {error}.") from None
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise ValueError(f"{path} cannot be read: {error}.") from error


def _open(path: Path) -> TextIO:
    if path.suffix == ".gz":
        return cast("TextIO", gzip.open(path, "rt", encoding="utf8"))
    if path.suffix == ".xz":
        return cast("TextIO", lzma.open(path, "rt", encoding="utf8"))
    return path.open(encoding="utf8")
