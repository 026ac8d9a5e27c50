"""Corpora in all supported formats, and what can be wrong with them."""

import gzip
import json
import multiprocessing
import os
import random
import signal
import tracemalloc
import zlib
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import spacy
import srsly
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

from spacy_elmo.corpora.files import find_files
from spacy_elmo.corpora.long_texts import LONGEST_PIECE
from spacy_elmo.corpora.read import read_corpus

TOKENIZED = "\nAda wrote it .\n\n  It   is naïve 日本 .\n \n"
SENTENCES = [["Ada", "wrote", "it", "."], ["It", "is", "naïve", "日本", "."]]
RAW = "Ada wrote it. It's far.\n\nIs it?\n"
RAW_SENTENCES = [["Ada", "wrote", "it", "."], ["It", "'s", "far", "."], ["Is", "it", "?"]]


def write_text(path: Path, text: str = TOKENIZED) -> None:
    path.write_text(text, encoding="utf8")


def write_gzip(path: Path) -> None:
    with gzip.open(path, "wt", encoding="utf8") as file:
        file.write(TOKENIZED)


def write_jsonl(path: Path) -> None:
    lines = [json.dumps({"text": "Ada wrote it ."}), "", json.dumps({"text": "It is naïve 日本 .", "meta": 1})]
    path.write_text("\n".join(lines), encoding="utf8")


def write_docs(path: Path) -> None:
    vocab = spacy.blank("en").vocab
    words = ["Ada", "wrote", "it", ".", "\n", "It", "is", "naïve", "日本", "."]
    starts = [i in (0, 5) for i in range(len(words))]
    DocBin(docs=[Doc(vocab, words=words, sent_starts=starts), Doc(vocab)]).to_disk(path)


def write_docs_without_sentences(path: Path) -> None:
    vocab = spacy.blank("en").vocab
    DocBin(docs=[Doc(vocab, words=words) for words in SENTENCES]).to_disk(path)


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("a.txt", write_text),
        ("a.txt.gz", write_gzip),
        ("a.jsonl", write_jsonl),
        ("a.spacy", write_docs),
        ("b.spacy", write_docs_without_sentences),
    ],
)
def test_every_format(tmp_path: Path, name: str, write: Callable[[Path], None]) -> None:
    write(tmp_path / name)
    assert list(read_corpus(tmp_path / name, lang=None)) == SENTENCES


def test_directory_is_read_in_the_order_of_names(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    write_text(tmp_path / "deep" / "c.txt", "third")
    write_text(tmp_path / "b.txt", "second")
    write_text(tmp_path / "a.jsonl", '{"text": "first"}')
    write_text(tmp_path / "README.md", "not a corpus")
    assert [path.name for path in find_files(tmp_path)] == ["a.jsonl", "b.txt", "c.txt"]
    assert list(read_corpus(tmp_path, lang=None)) == [["first"], ["second"], ["third"]]


def test_hidden_files_are_not_read(tmp_path: Path) -> None:
    for name in ("a.txt", "._a.txt", ".ipynb_checkpoints/a-checkpoint.txt", "deep/.b/c.txt", "deep/d.txt"):
        (tmp_path / ".corpus" / name).parent.mkdir(parents=True, exist_ok=True)
        write_text(tmp_path / ".corpus" / name, name)
    assert list(read_corpus(tmp_path / ".corpus", lang=None)) == [["a.txt"], ["deep/d.txt"]]
    assert list(read_corpus(tmp_path / ".corpus" / "._a.txt", lang=None)) == [["._a.txt"]]


def test_raw_text_is_split_by_spacy(tmp_path: Path) -> None:
    write_text(tmp_path / "a.txt", RAW)
    assert list(read_corpus(tmp_path / "a.txt", lang="en")) == RAW_SENTENCES
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": RAW}), encoding="utf8")
    assert list(read_corpus(tmp_path / "a.jsonl", lang="en")) == RAW_SENTENCES


@pytest.mark.slow
def test_several_processes_give_the_same_in_the_same_order(tmp_path: Path) -> None:
    write_text(tmp_path / "a.txt", "".join(f"Sentence {i}. And more!\n" for i in range(3_000)))
    expected = list(read_corpus(tmp_path / "a.txt", lang="en"))
    assert len(expected) == 6_000
    assert list(read_corpus(tmp_path / "a.txt", lang="en", n_process=2)) == expected


@pytest.mark.slow
def test_many_files_have_one_pool_of_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pools = []

    def make_pool(*arguments: Any, **settings: Any) -> ProcessPoolExecutor:
        pools.append(ProcessPoolExecutor(*arguments, **settings))
        return pools[-1]

    monkeypatch.setattr("spacy_elmo.corpora.read.ProcessPoolExecutor", make_pool)
    for i in range(5):
        write_text(tmp_path / f"{i}.txt", f"Sentence {i}. And more!\n")
    expected = list(read_corpus(tmp_path, lang="en"))
    assert list(read_corpus(tmp_path, lang="en", n_process=2)) == expected
    assert len(pools) == 1


class Pool:
    """In place of a pool of processes: computes a task when its result is asked for."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.chunks: list[list[str]] = []
        self.n_done = 0
        self.n_allowed = 1_000_000
        self.is_shut_down = False

    def submit(self, function: Callable[..., Any], chunk: list[str], *arguments: Any) -> Future[Any]:
        self.chunks.append(chunk)
        future: Future[Any] = Future()

        def result() -> Any:
            if self.n_done == self.n_allowed:
                raise BrokenProcessPool("A process in the process pool was terminated abruptly")
            self.n_done += 1
            return function(chunk, *arguments)

        future.result = result  # type: ignore[assignment, method-assign]
        return future

    def shutdown(self, *, cancel_futures: bool) -> None:
        self.is_shut_down = cancel_futures


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> Pool:
    pool = Pool()
    monkeypatch.setattr("spacy_elmo.corpora.read.ProcessPoolExecutor", lambda *_, **__: pool)
    return pool


def test_tasks_have_a_bounded_number_of_texts_and_of_characters(tmp_path: Path, pool: Pool) -> None:
    lengths = [3] * 1_100 + [600_000, 500_000, 3, 2_000_000, 3]
    write_text(tmp_path / "a.txt", "".join("x." * (length // 2) + "y\n" for length in lengths))
    with patch("spacy_elmo.corpora.read._split_chunk", lambda texts, *_: [[text] for text in texts]):
        sentences = list(read_corpus(tmp_path / "a.txt", lang="en", n_process=2))
    assert [len(chunk) for chunk in pool.chunks] == [500, 500, 102, 2, 1]
    assert [len(word) // 2 for (word,) in sentences] == [length // 2 for length in lengths]


def test_a_reader_that_stops_cancels_what_waits(tmp_path: Path, pool: Pool) -> None:
    write_text(tmp_path / "a.txt", "one .\n" * 5_000)
    sentences = read_corpus(tmp_path / "a.txt", lang="en", n_process=2)
    assert next(sentences) == ["one", "."]
    assert not pool.is_shut_down
    sentences.close()
    assert pool.is_shut_down
    assert (len(pool.chunks), pool.n_done) == (5, 1)


def test_a_killed_process_is_explained(tmp_path: Path, pool: Pool) -> None:
    write_text(tmp_path / "a.txt", "one .\n" * 5_000)
    pool.n_allowed = 2
    message = r"^A process that tokenizes was killed, as .* memory is short\. Use fewer \(n_process\)\.$"
    with pytest.raises(ValueError, match=message):
        list(read_corpus(tmp_path / "a.txt", lang="en", n_process=2))
    assert pool.is_shut_down


@pytest.mark.slow
def test_a_process_that_is_really_killed(tmp_path: Path) -> None:
    write_text(tmp_path / "a.txt", "one .\n" * 5_000)
    sentences = read_corpus(tmp_path / "a.txt", lang="en", n_process=2)
    next(sentences)
    os.kill(multiprocessing.active_children()[0].pid or 0, signal.SIGKILL)
    with pytest.raises(ValueError, match="A process that tokenizes was killed"):
        list(sentences)
    assert multiprocessing.active_children() == []


def test_byte_order_marks_are_not_words(tmp_path: Path) -> None:
    for name, text in {"a.txt": "The end", "b.jsonl": '{"text": "The end"}'}.items():
        (tmp_path / name).write_bytes(text.encode("utf-8-sig"))
        assert list(read_corpus(tmp_path / name, lang=None)) == [["The", "end"]]


def test_line_of_a_million_characters(tmp_path: Path) -> None:
    write_text(tmp_path / "a.txt", "word . " * 150_000 + "x" * (LONGEST_PIECE + 5))
    sentences = list(read_corpus(tmp_path / "a.txt", lang="en"))
    assert sum(map(len, sentences)) == 300_201  # the long word is cut after every 500 letters
    assert sentences[0] == ["word", "."]


def test_memory_does_not_grow_with_the_corpus(tmp_path: Path) -> None:
    def peak(n_lines: int) -> int:
        path = tmp_path / f"{n_lines}.txt"
        path.write_text("a few words on every line of it\n" * n_lines, encoding="utf8")
        tracemalloc.start()
        assert sum(1 for _ in read_corpus(path, lang=None)) == n_lines
        size = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return size

    assert peak(50_000) < 1.1 * peak(500) + 10_000


def test_errors_in_corpora_are_explained(tmp_path: Path) -> None:
    def fails(name: str, content: bytes, message: str, lang: str | None = None) -> None:
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ValueError, match=message):
            list(read_corpus(tmp_path / name, lang=lang))

    fails("latin1.txt", "a\nna\xefve".encode("latin1"), r"latin1.txt, line 2: not UTF-8, at byte 2 \(0xef\)")
    fails("a.jsonl", b'{"text": "a"}\n{"txt": "b"}', r'a.jsonl, line 2: expected an object with a "text"')
    fails("b.jsonl", b"{", r"b.jsonl, line 1: expected an object")
    fails("c.jsonl", b'{"text": 3}', r"c.jsonl, line 1: expected an object")
    fails("a.spacy", b"these are no docs", "a.spacy is not a file that spaCy's DocBin wrote")
    fails("a.txt.gz", b"this is no gzip", "a.txt.gz cannot be read")
    fails("b.txt.gz", gzip.compress(b"words " * 1000, mtime=0)[:-20], "b.txt.gz cannot be read")
    zipped = gzip.compress(" ".join(map(str, random.Random(0).sample(range(10**6), 3000))).encode())
    fails("c.txt.gz", zipped[:1000] + b"\xff" * 200 + zipped[1200:], "c.txt.gz cannot be read")
    parts = srsly.msgpack_loads(zlib.decompress(DocBin(docs=[Doc(Vocab(), words=["It", "is"])]).to_bytes()))
    fails(
        "b.spacy",
        zlib.compress(srsly.msgpack_dumps({**parts, "cats": []})),
        "b.spacy is not a file that spaCy's DocBin wrote",
    )
    fails("a.csv", b"a,b", r"its name should end in \.txt, \.jsonl, \.spacy, \.txt\.gz")
    fails("a.txt", b"a", "spaCy cannot tokenize the language 'klingon'", lang="klingon")
    with pytest.raises(ValueError, match="no corpus at .*nowhere"):
        list(read_corpus(tmp_path / "nowhere", lang=None))
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="has no file that ends in"):
        list(read_corpus(tmp_path / "empty", lang=None))
