"""Tokenize a corpus once, and keep the result: a file of sentences, and metadata about what it was made from."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..corpora.files import check_outside, find_files
from ..corpora.read import read_corpus
from ..corpora.sentences import Sentence
from ..corpora.tokenizer import identify_tokenizer
from ..files.atomic import write_directory

SENTENCES, METADATA = "sentences.txt", "corpus.json"

ShowProgress = Callable[[Iterable[Sentence], str], Iterable[Sentence]]


@dataclass(frozen=True)
class TokenizedCorpus:
    """Sentences on disk, one per line, their words separated by single spaces.

    path (Path): The file.
    n_sentences, n_tokens (int): Its size.
    sha256 (str): Its checksum: corpora with the same one are the same.
    """

    path: Path
    n_sentences: int
    n_tokens: int
    sha256: str

    def __iter__(self) -> Iterator[Sentence]:
        with self.path.open("rb") as file:
            for line in file:
                yield line.decode("utf8").rstrip("\n").split(" ")


def find_origin(source: Path, lang: str | None, segmenter: str | None = None) -> dict[str, Any]:
    """RETURNS (dict): The files that a tokenized corpus is made from, and how. If any of it changes, so may the corpus."""
    return {
        "files": [[str(file.resolve()), file.stat().st_size, file.stat().st_mtime_ns] for file in find_files(source)],
        "lang": lang,
        "tokenizer": None if lang is None else identify_tokenizer(lang, segmenter),
    }


def prepare_corpus(
    source: Path,
    directory: Path,
    *,
    lang: str | None,
    segmenter: str | None = None,
    n_process: int = 1,
    show_progress: ShowProgress | None = None,
) -> TokenizedCorpus:
    """Tokenize a corpus, or find that this has been done.

    source (Path): The corpus, in any format that `read_corpus` reads.
    directory (Path): The directory for the result. It is made again if the source's files or the tokenizer have changed.
    lang (str | None): The language of raw text; None for tokenized text.
    segmenter (str | None): How Chinese text is cut into words, as for `make_tokenizer`.
    n_process (int): The number of processes that tokenize.
    show_progress (ShowProgress | None): Shows the progress: called with the sentences and a title.
    RETURNS (TokenizedCorpus): The tokenized corpus.
    """
    check_outside(directory, source)
    origin = find_origin(source, lang, segmenter)
    prepared = find_prepared(directory)
    if prepared is not None and prepared[1] == origin:
        return prepared[0]
    sentences: Iterable[Sentence] = read_corpus(source, lang=lang, segmenter=segmenter, n_process=n_process)
    if show_progress is not None:
        sentences = show_progress(sentences, f"Tokenizing {source.name}")
    with write_directory(directory, files={SENTENCES, METADATA}) as draft:
        corpus = _write_sentences(sentences, draft / SENTENCES)
        if not corpus.n_sentences:
            raise ValueError(f"The corpus {source} is empty: it has no sentence.")
        n_bytes = (draft / SENTENCES).stat().st_size
        metadata = {**asdict(corpus), "path": SENTENCES, "n_bytes": n_bytes, "origin": origin}
        (draft / METADATA).write_text(json.dumps(metadata, indent=2) + "\n", encoding="utf8")
    return TokenizedCorpus(directory / SENTENCES, corpus.n_sentences, corpus.n_tokens, corpus.sha256)


def _write_sentences(sentences: Iterable[Sentence], path: Path) -> TokenizedCorpus:
    n_sentences = n_tokens = 0
    digest = hashlib.sha256()
    with path.open("wb") as file:
        for words in sentences:
            line = (" ".join(words) + "\n").encode("utf8")
            file.write(line)
            digest.update(line)
            n_sentences += 1
            n_tokens += len(words)
    return TokenizedCorpus(path, n_sentences, n_tokens, digest.hexdigest())


def find_prepared(directory: Path) -> tuple[TokenizedCorpus, Any] | None:
    """Find a corpus that was tokenized before.

    directory (Path): The directory of the corpus.
    RETURNS (tuple | None): The corpus and its origin, or None if there is none, or not all of it.
    """
    path = directory / SENTENCES
    try:
        metadata = json.loads((directory / METADATA).read_text(encoding="utf8"))
        if path.stat().st_size != metadata["n_bytes"]:
            return None
        numbers = (metadata[name] for name in ("n_sentences", "n_tokens", "sha256"))
        return TokenizedCorpus(path, *numbers), metadata["origin"]
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None
