"""The docs of a .spacy file."""

import zlib
from collections.abc import Iterator
from pathlib import Path

from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

from .files import open_corpus_file

# A small file can be made to fill the memory when it is decompressed. Docs compress to a tenth or a twentieth, and to less
# if they repeat each other.
MAX_RATIO, ALWAYS_ALLOWED = 100, 64_000_000


def read_docs(path: Path, vocab: Vocab) -> Iterator[Doc]:
    """Read the docs of a file that spaCy's DocBin wrote.

    path (Path): The file, gzipped or not.
    vocab (Vocab): The vocabulary for the docs.
    YIELDS (Doc): The docs.
    """
    with open_corpus_file(path) as file:
        most = MAX_RATIO * path.stat().st_size + ALWAYS_ALLOWED
        data = file.read(most)
    try:
        _check_size(data, most)
        yield from DocBin().from_bytes(data).get_docs(vocab)
    except Exception as error:  # msgpack and zlib raise many kinds
        raise ValueError(f"{path} is not a file that spaCy's DocBin wrote: {error!s:.1000}") from error


def _check_size(data: bytes, most: int) -> None:
    """Refuse data that would decompress to more than `most` bytes."""
    unpacker = zlib.decompressobj()
    n_bytes = 0
    while data and not unpacker.eof:
        n_bytes += len(unpacker.decompress(data, 1 << 20))
        data = unpacker.unconsumed_tail
        if n_bytes > most:
            raise ValueError(f"it decompresses to more than {most:,} bytes, as no docs do")
