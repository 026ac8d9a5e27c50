"""Docs in spaCy's binary format, and fractions of them."""

import math
import random
from collections.abc import Iterable
from pathlib import Path

from spacy.tokens import DocBin
from spacy.training.corpus import walk_corpus

from ..files.atomic import draft_file

SUFFIX = ".spacy"


def count_docs(path: Path) -> int:
    """Count docs that have tokens. spaCy does not train on empty ones.

    path (Path): A .spacy file, or a directory of them.
    RETURNS (int): The number of docs.
    """
    return sum(len(_read_file(file)) for file in _find_files(path))


def read_docs(path: Path) -> DocBin:
    """Read the docs that have tokens into one DocBin.

    path (Path): A .spacy file, or a directory of them.
    RETURNS (DocBin): The docs.
    """
    first, *others = _find_files(path)
    docs = _read_file(first)
    for file in others:
        more = _read_file(file)
        if more.attrs != docs.attrs:
            raise ValueError(
                f"{file} stores other token attributes than {first}: a fraction of both cannot be in one file. Write them with "
                f"the same attrs, or into one DocBin."
            )
        docs.merge(more)
    return docs


def choose_docs(n_docs: int, fraction: float) -> list[int]:
    """Choose docs at random. The choice is always the same, and a larger fraction contains every smaller one.

    n_docs (int): The number of docs to choose from.
    fraction (float): How many to choose, in per cent.
    RETURNS (list[int]): The indices of the chosen docs in ascending order, at least one.
    """
    order = list(range(n_docs))
    random.Random(0).shuffle(order)
    return sorted(order[: max(1, math.floor(n_docs * fraction / 100 + 0.5))])


def keep_docs(docs: DocBin, chosen: Iterable[int]) -> None:
    """Drop all other docs from a DocBin. The chosen ones keep every byte, since they are not deserialized.

    docs (DocBin): The docs, which are changed.
    chosen (Iterable[int]): The indices of the docs to keep.
    """
    chosen = list(chosen)
    for name in ("tokens", "spaces", "cats", "span_groups", "user_data", "flags"):
        values = getattr(docs, name)
        setattr(docs, name, [values[i] for i in chosen])


def write_subset(source: Path, fraction: float, target: Path) -> int:
    """Write a fraction of docs to a file.

    source (Path): A .spacy file, or a directory of them.
    fraction (float): How many docs to write, in per cent.
    target (Path): The file to write.
    RETURNS (int): The number of docs in it.
    """
    docs = read_docs(source)
    keep_docs(docs, choose_docs(len(docs), fraction))
    with draft_file(target) as draft:
        docs.to_disk(draft)
    return len(docs)


def _find_files(path: Path) -> list[Path]:
    if not path.exists():
        raise ValueError(f"There are no docs at {path}: no such file or directory.")
    if not (any(path.rglob(f"*{SUFFIX}")) if path.is_dir() else path.name.endswith(SUFFIX)):
        raise ValueError(f"There are no docs at {path}: expected a {SUFFIX} file, or a directory of them.")
    return list(walk_corpus(path, SUFFIX))


def _read_file(path: Path) -> DocBin:
    try:
        docs = DocBin(store_user_data=True).from_disk(path)
    except (ValueError, KeyError, TypeError, EOFError) as error:
        raise ValueError(
            f"{path} is not a file of docs: {error}. Write one with DocBin, or convert one with `spacy convert`."
        ) from error
    keep_docs(docs, [i for i, tokens in enumerate(docs.tokens) if len(tokens)])
    return docs
