"""The records of a file: its lines, docs or Parquet rows, from any position, with bounded memory."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from spacy.tokens import Doc
from spacy.vocab import Vocab

from ..corpora.docs import read_docs
from ..corpora.files import SUFFIXES, file_format, open_corpus_file
from ..corpora.lines import read_lines
from ..files.damage import refuse_damaged
from .extras import import_parquet

FORMATS = (*SUFFIXES, ".parquet")
ROWS_AT_ONCE = 256  # of Parquet, in memory


class Position(NamedTuple):
    """Where a record starts.

    offset (int): In lines, the byte of the decompressed file; otherwise the index of the doc or row.
    number (int): The number of the line, doc or row, from 1.
    part (int): 0, or the number of the part of a long line that was cut.
    """

    offset: int = 0
    number: int = 1
    part: int = 0


class Record(NamedTuple):
    """A line, a doc or a row as it stands in its file.

    start, end (Position): Where it starts, and where the next one does.
    content (bytes | Doc | dict): The line, the doc or the row.
    raw (bytes): The same as bytes, to detect a change.
    """

    start: Position
    end: Position
    content: bytes | Doc | dict[str, Any]
    raw: bytes

    @property
    def is_cut(self) -> bool:
        """RETURNS (bool): Whether this is only a part of a line."""
        return self.start.part > 0 or self.end.part > 0


def read_records(path: Path, start: Position, vocab: Vocab) -> Iterator[Record]:
    """Read the records of a file.

    path (Path): The file.
    start (Position): The first record to read.
    vocab (Vocab): The vocabulary of docs.
    YIELDS (Record): The records. A line of more than `MAX_BYTES` is cut into parts, at spaces where it has some.
    """
    if file_format(path) == ".spacy":
        return _read_docs(path, start, vocab)
    return _read_parquet(path, start) if file_format(path) == ".parquet" else _read_lines(path, start)


def _read_lines(path: Path, start: Position) -> Iterator[Record]:
    with open_corpus_file(path) as file:
        file.seek(start.offset)
        for line, is_cut in read_lines(file):
            offset = start.offset + len(line)
            end = Position(offset, start.number, start.part + 1) if is_cut else Position(offset, start.number + 1)
            yield Record(start, end, line, line)
            start = end


def _read_docs(path: Path, start: Position, vocab: Vocab) -> Iterator[Record]:
    for i, doc in enumerate(read_docs(path, vocab)):
        if i >= start.offset:
            raw = doc.to_array(["ORTH", "SPACY", "SENT_START"]).tobytes()
            yield Record(Position(i, i + 1), Position(i + 1, i + 2), doc, raw)


def _read_parquet(path: Path, start: Position) -> Iterator[Record]:
    with open_corpus_file(path) as source, refuse_damaged(path, "a Parquet file"):
        file = import_parquet().ParquetFile(source)
        offset = 0
        for group in range(file.num_row_groups):
            n_rows = file.metadata.row_group(group).num_rows
            if offset + n_rows <= start.offset:
                offset += n_rows
                continue
            for batch in file.iter_batches(ROWS_AT_ONCE, row_groups=[group]):
                for row in batch.to_pylist():
                    if offset >= start.offset:
                        raw = json.dumps(row, default=str).encode()
                        yield Record(Position(offset, offset + 1), Position(offset + 1, offset + 2), row, raw)
                    offset += 1
