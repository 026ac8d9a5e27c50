"""Checksums of files and directories, to find out whether two are the same."""

import hashlib
from pathlib import Path

CHUNK_SIZE = 1 << 20
NOT_DATA = ".md"  # a model with a new model card is the same model
COMPILED = "__pycache__"  # Python adds it to a package at any time


def checksum(path: Path) -> str:
    """Compute a checksum of the content of a file or a directory.

    path (Path): The file or directory.
    RETURNS (str): The checksum. For a directory, it includes the names of the files, and leaves out Markdown files and
        compiled Python.
    """
    digest = hashlib.sha256()
    if path.is_dir():
        for file in sorted(file for file in path.rglob("*") if file.is_file() and _is_data(file.relative_to(path))):
            digest.update(f"{file.relative_to(path).as_posix()}\0{checksum(file)}\n".encode())
        return digest.hexdigest()
    with path.open("rb") as source:
        while chunk := source.read(CHUNK_SIZE):
            digest.update(chunk)
    return digest.hexdigest()


def _is_data(file: Path) -> bool:
    return file.suffix != NOT_DATA and COMPILED not in file.parts
