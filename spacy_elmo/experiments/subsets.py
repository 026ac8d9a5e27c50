"""Docs in spaCy's binary form, and a share of them."""

import math
import random
from collections.abc import Iterable
from pathlib import Path

from spacy.tokens import DocBin
from spacy.training.corpus import walk_corpus

from ..files.atomic import naming

SUFFIX = ".spacy"


def count_docs(path: Path) -> int:
    """Count docs, without those that have no tokens: spaCy does not train on them.

    path (Path): A .spacy file, or a directory of them.
    RETURNS (int): How many there are.
    """
    return sum(len(_read_file(file)) for file in _find_files(path))


def read_docs(path: Path) -> DocBin:
    """Read docs that can be in one file, without those that have no tokens.

    path (Path): A .spacy file, or a directory of them.
    RETURNS (DocBin): The docs.
    """
    first, *others = _find_files(path)
    docs = _read_file(first)
    for file in others:
        more = _read_file(file)
        if more.attrs != docs.attrs:
            raise ValueError(
                f"{file} stores other attributes of its tokens than {first}: a share of both cannot be in one file. "
                f"Write them with the same attrs, or into one DocBin."
            )
        docs.merge(more)
    return docs


def choose(n_docs: int, share: float) -> list[int]:
    """Choose a share of docs at random. The choice is the same every time, and a larger share has all of a smaller one.

    n_docs (int): How many docs there are.
    share (float): How many of them, in per cent.
    RETURNS (list[int]): Which ones, in their order: at least one.
    """
    order = list(range(n_docs))
    random.Random(0).shuffle(order)
    return sorted(order[: max(1, math.floor(n_docs * share / 100 + 0.5))])


def keep(docs: DocBin, chosen: Iterable[int]) -> None:
    """Drop docs, to the byte as they are: nothing is taken apart and put together again.

    docs (DocBin): The docs, which are changed.
    chosen (Iterable[int]): Which of them stay.
    """
    chosen = list(chosen)
    for name in ("tokens", "spaces", "cats", "span_groups", "user_data", "flags"):
        values = getattr(docs, name)
        setattr(docs, name, [values[i] for i in chosen])


def write_share(source: Path, share: float, target: Path) -> int:
    """Write a share of docs.

    source (Path): A .spacy file, or a directory of them.
    share (float): How many of them, in per cent.
    target (Path): The file to write.
    RETURNS (int): How many docs there are in it.
    """
    docs = read_docs(source)
    keep(docs, choose(len(docs), share))
    draft = target.with_name(f".{target.name}-draft")
    try:
        with naming(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            docs.to_disk(draft)
            draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)
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
    keep(docs, [i for i, tokens in enumerate(docs.tokens) if len(tokens)])
    return docs
