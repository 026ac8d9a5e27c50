"""Any corpus to one file of tokenized sentences, made once and kept."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from spacy.about import __version__ as spacy_version

from ..corpora.read import Sentence, find_shards, read_corpus
from ..files.atomic import write_directory

SENTENCES, DESCRIPTION = "sentences.txt", "corpus.json"

ShowProgress = Callable[[Iterable[Sentence], str], Iterable[Sentence]]


@dataclass(frozen=True)
class TokenizedCorpus:
    """Sentences on disk, one a line, their words separated by single spaces.

    path (Path): The file.
    n_sentences, n_tokens (int): How much there is.
    sha256 (str): Of the file: two corpora with the same are the same.
    """

    path: Path
    n_sentences: int
    n_tokens: int
    sha256: str

    def __iter__(self) -> Iterator[Sentence]:
        with self.path.open("rb") as file:
            for line in file:
                yield line.decode("utf8").rstrip("\n").split(" ")


def find_origin(source: Path, lang: str | None) -> dict[str, Any]:
    """RETURNS (dict): What a tokenized corpus is made from, and how; of another origin, it would be another one."""
    return {
        "files": [
            [str(shard.resolve()), shard.stat().st_size, shard.stat().st_mtime_ns] for shard in find_shards(source)
        ],
        "lang": lang,
        "tokenizer": None if lang is None else f"spacy {spacy_version}",
    }


def prepare_corpus(
    source: Path, directory: Path, *, lang: str | None, n_process: int = 1, show_progress: ShowProgress | None = None
) -> TokenizedCorpus:
    """Tokenize a corpus, or find that this has been done.

    source (Path): The corpus, in any form that `read_corpus` reads.
    directory (Path): Where the result is kept. It is made anew if the source's files or the language have changed.
    lang (str | None): The language of raw text; None for text that is tokenized already.
    n_process (int): How many processes tokenize.
    show_progress (ShowProgress | None): Shows how far it is: called with the sentences and a title.
    RETURNS (TokenizedCorpus): The tokenized corpus.
    """
    origin = find_origin(source, lang)
    kept = find_kept(directory)
    if kept is not None and kept[1] == origin:
        return kept[0]
    sentences: Iterable[Sentence] = read_corpus(source, lang=lang, n_process=n_process)
    if show_progress is not None:
        sentences = show_progress(sentences, f"Tokenizing {source.name}")
    with write_directory(directory, files={SENTENCES, DESCRIPTION}) as draft:
        corpus = _write_sentences(sentences, draft / SENTENCES)
        if not corpus.n_sentences:
            raise ValueError(f"The corpus {source} is empty: it has no sentence.")
        n_bytes = (draft / SENTENCES).stat().st_size
        description = {**asdict(corpus), "path": SENTENCES, "n_bytes": n_bytes, "origin": origin}
        (draft / DESCRIPTION).write_text(json.dumps(description, indent=2) + "\n", encoding="utf8")
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


def find_kept(directory: Path) -> tuple[TokenizedCorpus, Any] | None:
    """Find a corpus that was tokenized before.

    directory (Path): Where it was kept.
    RETURNS (tuple | None): The corpus and what it was made from, or None if it is not there, or not whole.
    """
    path = directory / SENTENCES
    try:
        description = json.loads((directory / DESCRIPTION).read_text(encoding="utf8"))
        if path.stat().st_size != description["n_bytes"]:
            return None
        numbers = (description[name] for name in ("n_sentences", "n_tokens", "sha256"))
        return TokenizedCorpus(path, *numbers), description["origin"]
    except (OSError, ValueError, TypeError, KeyError):
        return None
