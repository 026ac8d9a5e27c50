"""Records: the lines, docs and rows of files, from any position."""

import gzip
import tracemalloc
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
import spacy
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

from spacy_elmo.corpora import lines
from spacy_elmo.embedding.records import Position, Record, read_records

LINES = "first line\n\nthird, with ä\nlast without an end"


def write_corpus(directory: Path, name: str) -> Path:
    path = directory / name
    if name.endswith(".gz"):
        path.write_bytes(gzip.compress(LINES.encode()))
    elif name.endswith(".spacy"):
        nlp = spacy.blank("en")
        DocBin(docs=[nlp(text) for text in LINES.splitlines()]).to_disk(path)
    elif name.endswith(".parquet"):
        table = pyarrow.table({"text": LINES.splitlines(), "n": [1, 2, 3, 4]})
        pyarrow.parquet.write_table(table, path, row_group_size=3)
    else:
        path.write_text(LINES, encoding="utf8")
    return path


def read_all(path: Path, start: Position = Position()) -> list[Record]:  # noqa: B008
    return list(read_records(path, start, Vocab()))


@pytest.mark.parametrize("name", ["a.txt", "a.jsonl", "a.txt.gz", "a.spacy", "a.parquet"])
def test_reading_can_begin_at_any_record(tmp_path: Path, name: str) -> None:
    path = write_corpus(tmp_path, name)
    found = read_all(path)
    assert [record.start.number for record in found] == [1, 2, 3, 4]
    for i, record in enumerate(found):
        rest = read_all(path, record.start)
        assert [other.raw for other in rest] == [other.raw for other in found[i:]]
        assert [other.start for other in rest] == [other.start for other in found[i:]]
    assert read_all(path, found[-1].end) == []


def test_contents(tmp_path: Path) -> None:
    assert read_all(write_corpus(tmp_path, "a.txt"))[2].content == "third, with ä\n".encode()
    assert read_all(write_corpus(tmp_path, "a.parquet"))[2].content == {"text": "third, with ä", "n": 3}
    doc = read_all(write_corpus(tmp_path, "a.spacy"))[2].content
    assert isinstance(doc, Doc)
    assert [token.text for token in doc] == ["third", ",", "with", "ä"]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("one two three\nfour\n", ["one two ", "three\n", "four\n"]),
        ("ääääääää\n", ["ääää", "ääää\n"]),
        ("123456789\n12345678\n", ["12345678", "9\n", "12345678\n"]),
    ],
)
def test_long_lines_are_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, parts: list[str]) -> None:
    monkeypatch.setattr(lines, "MAX_BYTES", 9)
    path = tmp_path / "a.txt"
    path.write_text(text, encoding="utf8")
    found = read_all(path)
    assert [record.raw.decode() for record in found] == parts
    for i, record in enumerate(found):
        assert [other[:2] for other in read_all(path, record.start)] == [other[:2] for other in found[i:]]


def test_long_line_takes_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "a.txt.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        for _ in range(8):
            file.write(b"some words " * 1_000_000)
    tracemalloc.start()
    n_bytes = sum(len(record.raw) for record in read_records(path, Position(), Vocab()))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert n_bytes == 88_000_000
    assert peak < 5 * lines.MAX_BYTES


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a.spacy", "a.spacy is not a file that spaCy's DocBin wrote"),
        ("a.parquet", "a.parquet is not a Parquet file"),
        ("a.txt.gz", "a.txt.gz cannot be read: Not a gzipped file"),
    ],
)
def test_file_of_another_format(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / name).write_text("just a text", encoding="utf8")
    with pytest.raises(ValueError, match=message):
        read_all(tmp_path / name)
