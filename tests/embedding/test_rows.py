"""Rows: ids, texts and fields of records, and why a record has none."""

import json
from typing import Any

import pytest
import spacy
from spacy.tokens import Doc

from spacy_elmo.corpora.lines import MAX_BYTES
from spacy_elmo.embedding.records import Position, Record
from spacy_elmo.embedding.rows import BadRowError, Row, parse_row
from spacy_elmo.embedding.settings import EmbeddingSettings


def parse(content: Any, file: str = "a.jsonl", part: int = 0, **settings: Any) -> Row | None:
    if isinstance(content, str):
        content = content.encode()
    start = Position(70, 7, part)
    return parse_row(Record(start, Position(80, 8), content, b""), file, EmbeddingSettings(**settings))


def test_json_line() -> None:
    line = '{"id": 12, "text": "A text.", "label": "x", "nested": {"a": [1]}}\r\n'
    assert parse(line) == ("12", "A text.", {"label": "x", "nested": {"a": [1]}}, True)
    assert parse(line, fields=("label", "other")) == ("12", "A text.", {"label": "x", "other": None}, True)
    assert parse(line, text_field="label", id_field="text") == ("A text.", "x", {"id": 12, "nested": {"a": [1]}}, True)


def test_default_id_is_file_and_line() -> None:
    assert parse('{"text": "A text."}', "dir/a.jsonl.gz") == ("dir/a.jsonl.gz:7", "A text.", {}, False)
    assert parse("A text. \n", "a.txt") == ("a.txt:7", "A text.", {}, False)
    assert parse("a text. \n", "a.txt", part=2) == ("a.txt:7+2", "a text.", {}, False)
    doc = spacy.blank("en")("A text.")
    assert parse(doc, "a.spacy") == ("a.spacy:7", doc, {}, False)
    assert parse({"text": "A text.", "n": 1}, "a.parquet") == ("a.parquet:7", "A text.", {"n": 1}, False)


def test_empty_lines_are_no_rows() -> None:
    assert parse(" \n", "a.txt") is None
    assert parse(" \n") is None


def test_lone_surrogates_are_left_out() -> None:
    row = parse(r'{"text": "a \ud800 b", "id": "\ud800x"}')
    assert row is not None
    assert row[:2] == ("x", "a  b")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{not json", "not JSON: Expecting property name .* got '{not json'"),
        ("[" * 100_000, "not JSON"),
        ('["a text"]', "expected a JSON object, got '\\[\"a text\"\\]'"),
        ('{"txt": "A text."}', "expected a text as 'text', it has 'txt'"),
        ("{}", "expected a text as 'text', it has no fields"),
        ('{"text": 3}', "expected a text as 'text', got 3"),
        ('{"text": " \\n "}', "the text is empty"),
        (r'{"text": "\ud800 \udc00"}', "the text is empty"),
        ('{"text": "a", "id": [1]}', "expected a text or a whole number as 'id', got \\[1\\]"),
        ('{"text": "a", "id": true}', "expected a text or a whole number as 'id', got True"),
        (b'{"text": "\xff"}', "not UTF-8, at byte 10 \\(0xff\\)"),
        (json.dumps({"text": "a" * (MAX_BYTES + 1)}), "longer than 10 MB: split it"),
        ({"text": None}, "expected a text as 'text', got None"),
        (Doc(spacy.blank("en").vocab, words=["\n"]), "the text is empty"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_bad_rows(content: Any, message: str) -> None:
    with pytest.raises(BadRowError, match=message):
        parse(content)


def test_cut_line_of_json_is_refused_once() -> None:
    start, end = Position(0, 1), Position(9, 1, 1)
    with pytest.raises(BadRowError, match="longer than 10 MB"):
        parse_row(Record(start, end, b'{"text": ', b""), "a.jsonl", EmbeddingSettings())
    assert parse_row(Record(end, Position(12, 2), b'"x"}', b""), "a.jsonl", EmbeddingSettings()) is None


def test_mark_at_the_start_of_a_file_is_left_out() -> None:
    record = Record(Position(), Position(12, 2), b"\xef\xbb\xbfA text.\n", b"")
    assert parse_row(record, "a.txt", EmbeddingSettings()) == ("a.txt:1", "A text.", {}, False)
