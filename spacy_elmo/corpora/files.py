"""The files of a corpus: where they are, their formats, and how they are opened."""

import gzip
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

SUFFIXES = (".txt", ".jsonl", ".spacy")


def find_files(path: Path, suffixes: Sequence[str] = SUFFIXES) -> list[Path]:
    """List the files of a corpus.

    path (Path): A file, or a directory. Hidden files and directories in it, whose names start with a dot, are left out.
    suffixes (Sequence[str]): The supported formats. Any of them may be gzipped.
    RETURNS (list[Path]): The files, sorted by name.
    """
    if path.is_file():
        if file_format(path) not in suffixes:
            raise ValueError(f"{path} has an unsupported corpus format: its name should end in {_endings(suffixes)}.")
        return [path]
    if not path.is_dir():
        raise ValueError(f"There is no corpus at {path}: neither a file nor a directory.")
    files = sorted(
        file
        for file in path.rglob("*")
        if file.is_file()
        and file_format(file) in suffixes
        and not any(part.startswith(".") for part in file.relative_to(path).parts)
    )
    if not files:
        raise ValueError(f"The directory {path} has no file that ends in {_endings(suffixes)}.")
    return files


def check_outside(output: Path, corpus: Path) -> None:
    """Refuse to write into a corpus.

    output (Path): What is to be written.
    corpus (Path): The corpus: a file, or a directory.
    """
    if output.resolve().is_relative_to(corpus.resolve()):
        raise ValueError(
            f"{output} is inside of the corpus {corpus}, which would read its own output. Choose another directory."
        )


def file_format(path: Path) -> str:
    """RETURNS (str): The suffix of a file of a corpus that says its format, such as ".txt" for a.txt and a.txt.gz."""
    return path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix


@contextmanager
def open_corpus_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a file of a corpus, gzipped or not. Errors of reading it are ValueErrors with its path.

    path (Path): The file.
    YIELDS (IO[bytes]): The open file, decompressed.
    """
    try:
        with cast(IO[bytes], gzip.open(path)) if path.suffix == ".gz" else path.open("rb") as file:
            yield file
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{path} cannot be read: {error}.") from error


def _endings(suffixes: Sequence[str]) -> str:
    return ", ".join([*suffixes, *(f"{suffix}.gz" for suffix in suffixes)])
