"""Records as rows: an id, a text or a doc, and further fields; or why a record has none of them."""

import json
from typing import Any, NamedTuple

from spacy.tokens import Doc

from ..corpora.lines import MAX_BYTES
from ..corpora.surrogates import drop_surrogates
from .records import Record
from .settings import EmbeddingSettings


class Row(NamedTuple):
    """One document.

    id (str): Its own id, or its file and line.
    content (str | Doc): Its text, or the doc.
    fields (dict): Further fields, by their names.
    has_own_id (bool): Whether the id is its own.
    """

    id: str
    content: str | Doc
    fields: dict[str, Any]
    has_own_id: bool = False


class BadRowError(ValueError):
    """A record has no text. The message says why."""


def parse_row(record: Record, file: str, settings: EmbeddingSettings) -> Row | None:
    """Read a record as a row.

    record (Record): The record.
    file (str): The name of its file, for the id.
    settings (EmbeddingSettings): The names of fields.
    RETURNS (Row | None): The row, or None for an empty line, or for a part of a line that has been refused already.
    """
    content, start = record.content, record.start
    default_id = f"{file}:{start.number}" + (f"+{start.part}" if start.part else "")
    if isinstance(content, Doc):
        _check_text(content.text)
        return Row(default_id, content, {})
    if isinstance(content, bytes):
        # Windows puts a mark at the start of files.
        encoding = "utf-8-sig" if start.offset == 0 else "utf8"
        if not file.removesuffix(".gz").endswith(".jsonl"):
            text = _decode(content, encoding)
            return Row(default_id, text, {}) if text else None
        if record.is_cut:
            if start.part:
                return None
            raise BadRowError(f"longer than {MAX_BYTES // 1_000_000} MB: split it into several documents")
        line = _decode(content, encoding)
        if not line:
            return None
        content = _parse_json(line)
    return _check_fields(content, default_id, settings)


def _check_fields(row: dict[str, Any], default_id: str, settings: EmbeddingSettings) -> Row:
    text, own_id = row.get(settings.text_field), row.get(settings.id_field)
    if not isinstance(text, str):
        present = ", ".join(map(repr, row))[:80] or "no fields"
        found = f"got {text!r:.40}" if settings.text_field in row else f"it has {present}"
        raise BadRowError(f"expected a text as {settings.text_field!r}, {found}")
    if len(text) > MAX_BYTES:
        raise BadRowError(f"longer than {MAX_BYTES // 1_000_000} MB: split it into several documents")
    if own_id is not None and (isinstance(own_id, bool) or not isinstance(own_id, str | int)):
        raise BadRowError(f"expected a text or a whole number as {settings.id_field!r}, got {own_id!r:.40}")
    text = drop_surrogates(text)
    _check_text(text)
    wanted = row if settings.fields is None else settings.fields
    names = [name for name in wanted if name not in (settings.text_field, settings.id_field)]
    fields = {name: row.get(name) for name in names}
    if own_id is None:
        return Row(default_id, text, fields)
    return Row(drop_surrogates(str(own_id)), text, fields, has_own_id=True)


def _check_text(text: str) -> None:
    if not text or text.isspace():
        raise BadRowError("the text is empty")


def _parse_json(line: str) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadRowError(f"not JSON: {error}, got {line!r:.60}") from None
    if not isinstance(found, dict):
        raise BadRowError(f"expected a JSON object, got {line!r:.60}")
    return found


def _decode(line: bytes, encoding: str) -> str:
    try:
        return line.decode(encoding).strip()
    except UnicodeDecodeError as error:
        raise BadRowError(f"not UTF-8, at byte {error.start} ({line[error.start]:#04x})") from None
