"""A corpus that is tokenized once and kept."""

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

from spacy_elmo.corpora import tokenizer
from spacy_elmo.corpora.read import read_corpus
from spacy_elmo.corpora.sentences import Sentence
from spacy_elmo.pretraining import prepare
from spacy_elmo.pretraining.prepare import METADATA, SENTENCES, TokenizedCorpus, prepare_corpus
from spacy_elmo.pretraining.vocabulary import count_words

from .runs import read_files

WORDS = [["Ada", "wrote", "it", "."], ["It", "is", "naïve", "日本", "."]]
TOKENIZED = "Ada wrote it .\nIt is naïve 日本 .\n"


def write_text(path: Path) -> None:
    path.write_text("\n" + TOKENIZED.replace(" ", "  ") + "\n \n", encoding="utf8")


def write_directory(path: Path) -> None:
    path.mkdir()
    for i, words in enumerate(WORDS):
        (path / f"{i}.txt").write_text(" ".join(words), encoding="utf8")


def make_source(directory: Path, text: str = TOKENIZED) -> Path:
    source = directory / "source.txt"
    source.write_text(text, encoding="utf8")
    return source


@pytest.fixture
def no_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail if a corpus is read, and not found."""

    def read_corpus(path: Path, **_: Any) -> Iterator[Sentence]:
        raise AssertionError(f"{path} was read again")

    monkeypatch.setattr(prepare, "read_corpus", read_corpus)


# What is made


@pytest.mark.parametrize(("name", "write"), [("a.txt", write_text), ("a", write_directory)])
def test_files_and_directories_give_the_same_file(tmp_path: Path, name: str, write: Callable[[Path], None]) -> None:
    write(tmp_path / name)
    corpus = prepare_corpus(tmp_path / name, tmp_path / "out" / "corpus", lang=None)
    path = tmp_path / "out" / "corpus" / SENTENCES
    assert path.read_bytes() == TOKENIZED.encode("utf8")
    sha256 = hashlib.sha256(TOKENIZED.encode("utf8")).hexdigest()
    assert corpus == TokenizedCorpus(path, n_sentences=2, n_tokens=9, sha256=sha256)
    assert list(corpus) == list(corpus) == WORDS
    assert sorted(read_files(tmp_path / "out")) == [f"corpus/{METADATA}", f"corpus/{SENTENCES}"]


def test_raw_text_is_tokenized(tmp_path: Path) -> None:
    source = make_source(tmp_path, "Ada wrote it. It's far.\n")
    corpus = prepare_corpus(source, tmp_path / "out", lang="en")
    assert list(corpus) == [["Ada", "wrote", "it", "."], ["It", "'s", "far", "."]]
    assert (corpus.n_sentences, corpus.n_tokens) == (2, 8)


def test_words_that_a_line_cannot_hold(tmp_path: Path) -> None:
    sentences = [
        ["New York", "\u2028", "is\tbig"],
        ["a\nb", "c\x85d", "e\xa0f\r"],
        ["a\u200bb", "🦆"],
    ]
    DocBin(docs=[Doc(Vocab(), words=words) for words in sentences]).to_disk(tmp_path / "docs.spacy")
    corpus = prepare_corpus(tmp_path / "docs.spacy", tmp_path / "out", lang=None)
    expected = [["New", "York", "is", "big"], ["a", "b", "c", "d", "e", "f"], ["a\u200bb", "🦆"]]
    assert list(corpus) == expected
    assert (corpus.n_sentences, corpus.n_tokens) == (3, 12)
    assert corpus.sha256 == hashlib.sha256(corpus.path.read_bytes()).hexdigest()
    # The words that are counted are those that are read.
    vocabulary = count_words(read_corpus(tmp_path / "docs.spacy", lang=None), max_size=100)
    assert sorted(vocabulary.words[3:]) == sorted({word for words in expected for word in words})


@pytest.mark.parametrize("lang", [None, "en"])
def test_lone_surrogates_are_dropped(tmp_path: Path, lang: str | None) -> None:
    lines = [json.dumps({"text": text}) for text in ("\ud800", "x\ud83dy \udc00 z")]
    (tmp_path / "text.jsonl").write_text("\n".join(lines) + "\n")
    assert list(prepare_corpus(tmp_path / "text.jsonl", tmp_path / "out", lang=lang)) == [["xy", "z"]]


def test_progress_is_shown_while_it_is_made(tmp_path: Path) -> None:
    shown: list[tuple[list[Sentence], str]] = []

    def show(sentences: Iterable[Sentence], title: str) -> Iterator[Sentence]:
        seen = list(sentences)
        shown.append((seen, title))
        yield from seen

    source = make_source(tmp_path)
    for _ in range(2):
        assert list(prepare_corpus(source, tmp_path / "out", lang=None, show_progress=show)) == WORDS
    assert shown == [(WORDS, "Tokenizing source.txt")]


# What is kept


@pytest.mark.usefixtures("no_reading")
def test_first_call_reads_the_corpus(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="was read again"):
        prepare_corpus(make_source(tmp_path), tmp_path / "out", lang=None)


@pytest.mark.parametrize("lang", [None, "en"])
def test_made_once_and_kept(tmp_path: Path, lang: str | None, request: pytest.FixtureRequest) -> None:
    source = make_source(tmp_path)
    corpus = prepare_corpus(source, tmp_path / "out", lang=lang)
    times = [path.stat().st_mtime_ns for path in sorted((tmp_path / "out").iterdir())]
    request.getfixturevalue("no_reading")
    assert prepare_corpus(source, tmp_path / "out", lang=lang) == corpus
    assert [path.stat().st_mtime_ns for path in sorted((tmp_path / "out").iterdir())] == times


def test_made_again_if_the_source_changes(tmp_path: Path) -> None:
    source = make_source(tmp_path, "a b\n")
    before = prepare_corpus(source, tmp_path / "out", lang=None)
    time = source.stat().st_mtime_ns
    source.write_text("a c\n", encoding="utf8")  # as long as before, and another time
    os.utime(source, ns=(time, time + 1))
    after = prepare_corpus(source, tmp_path / "out", lang=None)
    assert list(after) == [["a", "c"]]
    assert after.sha256 != before.sha256
    source.write_text("a c d\n", encoding="utf8")  # at the same time, and longer
    os.utime(source, ns=(time, time + 1))
    assert list(prepare_corpus(source, tmp_path / "out", lang=None)) == [["a", "c", "d"]]
    other = tmp_path / "other.txt"
    source.rename(other)
    other.write_text("b\n", encoding="utf8")
    assert list(prepare_corpus(other, tmp_path / "out", lang=None)) == [["b"]]


def test_made_again_if_a_directory_gets_another_file(tmp_path: Path) -> None:
    write_directory(tmp_path / "source")
    assert prepare_corpus(tmp_path / "source", tmp_path / "out", lang=None).n_sentences == 2
    (tmp_path / "source" / "2.txt").write_text("more", encoding="utf8")
    assert prepare_corpus(tmp_path / "source", tmp_path / "out", lang=None).n_sentences == 3


def test_made_again_if_the_language_changes(tmp_path: Path) -> None:
    source = make_source(tmp_path, "It's far. It is.\n")
    assert prepare_corpus(source, tmp_path / "out", lang=None).n_tokens == 4
    assert list(prepare_corpus(source, tmp_path / "out", lang="en"))[0] == ["It", "'s", "far", "."]
    assert list(prepare_corpus(source, tmp_path / "out", lang="de"))[0] == ["It's", "far", "."]
    assert prepare_corpus(source, tmp_path / "out", lang=None).n_tokens == 4


def test_made_again_if_the_tokenizer_changes(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    source = make_source(tmp_path)
    for lang in (None, "en"):
        prepare_corpus(source, tmp_path / str(lang), lang=lang)
    monkeypatch = request.getfixturevalue("monkeypatch")
    request.getfixturevalue("no_reading")
    monkeypatch.setattr(tokenizer, "version", lambda name: "99.9")
    assert list(prepare_corpus(source, tmp_path / "None", lang=None)) == WORDS  # nothing was tokenized
    with pytest.raises(AssertionError, match="was read again"):
        prepare_corpus(source, tmp_path / "en", lang="en")


@pytest.mark.parametrize(
    "broken",
    [b"", b"{", b"\xff", b"null", b"[]", b"3", b"{}", b'{"origin": null}'],
    ids=["empty", "half", "not UTF-8", "null", "a list", "a number", "no keys", "no origin"],
)
def test_made_again_if_the_metadata_are_broken(tmp_path: Path, broken: bytes) -> None:
    source = make_source(tmp_path)
    expected = prepare_corpus(source, tmp_path / "out", lang=None)
    (tmp_path / "out" / METADATA).write_bytes(broken)
    (tmp_path / "out" / SENTENCES).write_bytes(b"who knows what\n")
    assert prepare_corpus(source, tmp_path / "out", lang=None) == expected
    assert list(expected) == WORDS


@pytest.mark.parametrize("key", ["n_sentences", "n_tokens", "sha256"])
def test_made_again_if_the_metadata_lack_something(tmp_path: Path, key: str) -> None:
    source = make_source(tmp_path)
    expected = prepare_corpus(source, tmp_path / "out", lang=None)
    metadata = json.loads((tmp_path / "out" / METADATA).read_text(encoding="utf8"))
    del metadata[key]
    (tmp_path / "out" / METADATA).write_text(json.dumps(metadata), encoding="utf8")
    assert prepare_corpus(source, tmp_path / "out", lang=None) == expected


@pytest.mark.parametrize("size", [None, 0])
def test_made_again_if_the_sentences_are_gone(tmp_path: Path, size: int | None) -> None:
    source = make_source(tmp_path)
    expected = prepare_corpus(source, tmp_path / "out", lang=None)
    if size is None:
        (tmp_path / "out" / SENTENCES).unlink()
    else:
        os.truncate(tmp_path / "out" / SENTENCES, size)
    assert prepare_corpus(source, tmp_path / "out", lang=None) == expected
    assert list(expected) == WORDS


# What can go wrong


@pytest.mark.parametrize("text", ["", "\n \n\n"])
def test_empty_corpus(tmp_path: Path, text: str) -> None:
    with pytest.raises(ValueError, match=r"The corpus .*source\.txt is empty: it has no sentence\."):
        prepare_corpus(make_source(tmp_path, text), tmp_path / "out", lang=None)
    assert not (tmp_path / "out").exists()


def test_no_corpus(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no corpus at .*nowhere"):
        prepare_corpus(tmp_path / "nowhere", tmp_path / "out", lang=None)


def test_failure_keeps_the_existing_corpus(tmp_path: Path) -> None:
    (tmp_path / "corpora").mkdir()
    source = make_source(tmp_path)
    prepare_corpus(source, tmp_path / "corpora" / "out", lang=None)
    before = read_files(tmp_path / "corpora")
    good = source.read_bytes()
    source.write_bytes(good + b"\xff\n")
    with pytest.raises(ValueError, match=r"source\.txt, line 3: not UTF-8"):
        prepare_corpus(source, tmp_path / "corpora" / "out", lang=None)
    assert read_files(tmp_path / "corpora") == before
    source.write_bytes(b"\n")
    with pytest.raises(ValueError, match="is empty"):
        prepare_corpus(source, tmp_path / "corpora" / "out", lang=None)
    assert read_files(tmp_path / "corpora") == before
    assert [path.name for path in (tmp_path / "corpora").iterdir()] == ["out"]


def test_a_corpus_that_would_read_its_own_output(tmp_path: Path) -> None:
    write_directory(tmp_path / "source")
    before = read_files(tmp_path)
    with pytest.raises(
        ValueError, match=r"out/corpus is inside of the corpus .*source, which would read its own output\. C"
    ):
        prepare_corpus(tmp_path / "source", tmp_path / "source" / "out" / "corpus", lang=None)
    assert read_files(tmp_path) == before
    assert prepare_corpus(tmp_path / "source" / "0.txt", tmp_path / "source" / "out", lang=None).n_sentences == 1
    assert prepare_corpus(tmp_path / "source", tmp_path / "source-out", lang=None).n_sentences == 3


def test_unrelated_files_are_kept(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.txt").write_text("years of work", encoding="utf8")
    with pytest.raises(ValueError, match="home has other files in it"):
        prepare_corpus(make_source(tmp_path), tmp_path / "home", lang=None)
    assert read_files(tmp_path / "home") == {"thesis.txt": b"years of work"}
