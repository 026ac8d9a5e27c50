"""Read a corpus, in any supported format, as a stream of sentences.

Only the line, or the file of docs, that is being read is in memory. For raw text, spaCy keeps the different words as well.
"""

import json
import multiprocessing
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import cache
from itertools import chain, groupby
from pathlib import Path

from spacy.tokens import Doc
from spacy.vocab import Vocab

from .docs import read_docs
from .files import file_format, find_files
from .lines import MAX_BYTES, read_text_lines
from .long_texts import cut_text
from .sentences import Sentence, doc_sentences
from .surrogates import drop_surrogates
from .tokenizer import check_segmenter, make_tokenizer
from .worker_processes import start_worker

Splitter = Callable[[str], Iterator[Sentence]]

TEXTS_PER_TASK, CHARACTERS_PER_TASK = 500, 1_000_000  # for a process that tokenizes, whatever comes first


def read_corpus(
    path: Path, *, lang: str | None, segmenter: str | None = None, n_process: int = 1
) -> Iterator[Sentence]:
    """Read all sentences of a corpus, in the same order every time.

    path (Path): A text file (.txt), a file of JSON lines with a `text` each (.jsonl) or a DocBin (.spacy), gzipped (.gz)
        or not; or a directory of such files, read in the order of their names.
    lang (str | None): The language whose spaCy tokenizer splits raw text into sentences and words; None for tokenized text,
        one sentence per line, its tokens separated by spaces. Docs have tokens already, and keep them.
    segmenter (str | None): How Chinese text is cut into words, as for `make_tokenizer`.
    n_process (int): The number of processes that tokenize.
    YIELDS (list[str]): The words of a sentence, at least one.
    """
    make_splitter(lang, segmenter)  # an unknown language is better found before the first file is read
    for has_docs, files in groupby(find_files(path), key=lambda file: file_format(file) == ".spacy"):
        if has_docs:
            yield from chain.from_iterable(map(_read_docs, files))
            continue
        texts = chain.from_iterable(map(_read_texts, files))
        if n_process > 1 and lang is not None:
            yield from _split_in_parallel(texts, lang, segmenter, n_process)
        else:
            yield from _split_texts(texts, lang, segmenter)


@cache
def make_splitter(lang: str | None, segmenter: str | None = None) -> Splitter:
    """Make a function that splits a line of text into sentences.

    lang (str | None): A language that spaCy supports, or None for tokenized text.
    segmenter (str | None): How Chinese text is cut into words, as for `make_tokenizer`.
    RETURNS (Splitter): The function.
    """
    if lang is None:
        check_segmenter(lang, segmenter)
        return _split_tokenized
    nlp = make_tokenizer(lang, segmenter)

    def split(text: str) -> Iterator[Sentence]:
        for piece in cut_text(text):
            yield from _words(nlp(piece))

    return split


def _words(doc: Doc) -> Iterator[Sentence]:
    for sentence in doc_sentences(doc):
        # A file of words and spaces cannot hold a word with a space, which becomes two words, nor lone surrogates.
        yield from _split_tokenized(drop_surrogates(" ".join(token.text for token in sentence)))


def _split_tokenized(text: str) -> Iterator[Sentence]:
    words = text.split()
    if words:
        yield words


def _split_texts(texts: Iterable[str], lang: str | None, segmenter: str | None) -> Iterator[Sentence]:
    split = make_splitter(lang, segmenter)
    for text in texts:
        yield from split(text)


def _split_chunk(texts: list[str], lang: str, segmenter: str | None) -> list[Sentence]:
    return list(_split_texts(texts, lang, segmenter))


def _split_in_parallel(texts: Iterator[str], lang: str, segmenter: str | None, n_process: int) -> Iterator[Sentence]:
    """Tokenize in several processes, in order, with a bounded amount of text in memory."""
    # Forked processes would inherit torch's threads, with locks that are never released.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(n_process, mp_context=context, initializer=start_worker)
    try:
        waiting: deque[Future[list[Sentence]]] = deque()
        for chunk in _make_chunks(texts):
            waiting.append(pool.submit(_split_chunk, chunk, lang, segmenter))
            if len(waiting) > 2 * n_process:
                yield from waiting.popleft().result()
        while waiting:
            yield from waiting.popleft().result()
    except BrokenProcessPool as error:
        raise ValueError(
            "A process that tokenizes was killed, as the system does when memory is short. Use fewer (n_process)."
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


def _make_chunks(texts: Iterable[str]) -> Iterator[list[str]]:
    """YIELDS (list[str]): The texts of a task."""
    chunk: list[str] = []
    n_characters = 0
    for text in texts:
        chunk.append(text)
        n_characters += len(text)
        if len(chunk) == TEXTS_PER_TASK or n_characters >= CHARACTERS_PER_TASK:
            yield chunk
            chunk, n_characters = [], 0
    if chunk:
        yield chunk


def _read_texts(path: Path) -> Iterator[str]:
    """Read the lines of a text file, or the texts of a file of JSON lines."""
    for number, text, is_cut in read_text_lines(path):
        if file_format(path) == ".txt":
            yield text
        elif is_cut:
            raise ValueError(
                f"{path}, line {number}: longer than {MAX_BYTES // 1_000_000} MB. Split it into several documents."
            )
        elif text:
            yield from _parse_text(text, f"{path}, line {number}").splitlines()


def _parse_text(line: str, where: str) -> str:
    try:
        text = json.loads(line)["text"]
    except (ValueError, KeyError, TypeError, RecursionError):
        text = None
    if not isinstance(text, str):
        raise ValueError(f'{where}: expected an object with a "text", got {line!r:.80}.')
    return drop_surrogates(text)


def _read_docs(path: Path) -> Iterator[Sentence]:
    for doc in read_docs(path, Vocab()):
        yield from _words(doc)
