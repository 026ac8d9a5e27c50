"""Whether two files, or two directories, are the same."""

import hashlib
from pathlib import Path

CHUNK = 1 << 20
NOT_DATA = ".md"  # a model whose card was rewritten is the same model


def checksum(path: Path) -> str:
    """Read a file or a directory, wherever it is.

    path (Path): The file or directory.
    RETURNS (str): The same for the same content; in a directory, under the same names. Descriptions in it (.md) do not count.
    """
    digest = hashlib.sha256()
    if path.is_dir():
        for file in sorted(file for file in path.rglob("*") if file.is_file() and file.suffix != NOT_DATA):
            digest.update(f"{file.relative_to(path).as_posix()}\0{checksum(file)}\n".encode())
        return digest.hexdigest()
    with path.open("rb") as source:
        while chunk := source.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
