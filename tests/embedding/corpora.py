"""Small corpora for the tests of embedding, and what is read back."""

import json
from pathlib import Path
from typing import Any

import numpy
import pyarrow.dataset
from numpy.typing import NDArray

from spacy_elmo.embedding.embed import Embedding, prepare, run
from spacy_elmo.embedding.settings import EmbeddingSettings
from spacy_elmo.embedding.workers import embed_here

TEXTS = [f"Ada wrote number {i} of them. It was the {'very ' * (i % 7)}best  of all." for i in range(30)]


def write_lines(path: Path, *lines: Any) -> Path:
    """Write a file of JSON lines, or of the texts that are given."""
    path.parent.mkdir(parents=True, exist_ok=True)
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("".join(f"{text}\n" for text in texts), encoding="utf8")
    return path


def embed(corpus: Path, output: Path, **settings: Any) -> Embedding:
    """Embed a corpus in this process, completely."""
    embedding = prepare(corpus, output, EmbeddingSettings(**settings))
    assert run(embedding, embed_here, lambda event: None) == []
    return embedding


def read_table(output: Path) -> pyarrow.Table:
    """Read all columns."""
    return pyarrow.dataset.dataset(output).to_table()


def read_vectors(output: Path) -> NDArray[Any]:
    """Read the vectors. NumPy does not copy them."""
    column = read_table(output)["vector"].combine_chunks()
    return column.flatten().to_numpy(zero_copy_only=True).reshape(len(column), -1)  # type: ignore[no-any-return]


def read_bytes(output: Path) -> dict[str, bytes]:
    """Read every file as it is, but for those that a killed process has left."""
    return {path.name: path.read_bytes() for path in output.iterdir() if not path.name.startswith(".")}


def assert_same_vectors(found: NDArray[Any], expected: NDArray[Any]) -> None:
    """Compare vectors, which may have been computed in other batches."""
    numpy.testing.assert_allclose(found, expected, atol=1e-6)
