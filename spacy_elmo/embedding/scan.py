"""Read a corpus once before it is embedded: cut it into shards, check every row, and find the types of further fields."""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from spacy.tokens import Doc
from spacy.vocab import Vocab

from ..corpora.files import find_files
from .columns import check_fields
from .fields import FieldTypes
from .plan import Piece, Plan, Shard, input_path, list_files
from .records import FORMATS, Position, Record, read_records
from .rows import BadRowError, Row, parse_row
from .settings import EmbeddingSettings

SHOWN = 5  # bad rows in an error
Report = Callable[[int], None]  # gets bytes that were read


def make_plan(corpus: Path, settings: EmbeddingSettings, model: dict[str, str], report: Report) -> Plan:
    """Plan the embedding of a corpus.

    corpus (Path): A file, or a directory of files.
    settings (EmbeddingSettings): What to embed.
    model (dict): `Embedder.identity`.
    report (Report): Called with the bytes of every record.
    RETURNS (Plan): The plan, a function of the corpus, the settings and the model alone.
    """
    paths = find_files(corpus, FORMATS)
    files = list_files(corpus, paths)
    cutter = ShardCutter(settings.shard_size)
    fields, bad, has_ids = FieldTypes(), BadRows(), False
    for file in files:
        for record in read_records(input_path(corpus, file.name), Position(), Vocab()):
            report(len(record.raw))
            try:
                row = parse_row(record, file.name, settings)
            except BadRowError as error:
                bad.add(f"{file.name}, {record_name(record)} {record.start.number}: {error}")
                row = None
            if row is not None:
                fields.add(row.fields)
                has_ids |= row.has_own_id
            cutter.add(file.name, record, row)
    if bad.count and not settings.skip_bad_rows:
        raise ValueError(
            f"Bad rows in {corpus}: {bad.count:,}\n{bad.describe()}\nCorrect them, or leave them out with --skip-bad-rows."
        )
    shards = cutter.finish()
    if not shards:
        raise ValueError(f"{corpus} has no text to embed." + (f" Bad rows:\n{bad.describe()}" if bad.count else ""))
    if list_files(corpus, find_files(corpus, FORMATS)) != files:
        raise ValueError(f"A file in {corpus} changed while it was read. Start again when nothing writes there.")
    check_fields(fields, settings, has_ids=has_ids)
    return Plan(
        settings=settings.comparable(),
        model=model,
        files=files,
        fields=fields.column_types(),
        n_bad_rows=bad.count,
        bad_rows=bad.first,
        shards=shards,
    )


def record_name(record: Record) -> str:
    """RETURNS (str): What a record is called in messages."""
    return "line" if isinstance(record.content, bytes) else "doc" if isinstance(record.content, Doc) else "row"


@dataclass
class BadRows:
    """Counts bad rows, and keeps the first ones."""

    count: int = 0
    first: list[str] = field(default_factory=list)

    def add(self, message: str) -> None:
        """Add one, with its file and line."""
        self.count += 1
        if len(self.first) < SHOWN:
            self.first.append(message)

    def describe(self) -> str:
        """RETURNS (str): The first ones, a line each."""
        return "\n".join([*self.first, *(["..."] if self.count > SHOWN else [])])


class ShardCutter:
    """Collects records into shards of about the same size. Small files share a shard.

    max_chars (int): The size at which the next record starts a new shard.
    """

    def __init__(self, max_chars: int) -> None:
        self._max_chars = max_chars
        self._shards: list[Shard] = []
        self._start()

    def _start(self) -> None:
        self._pieces: list[Piece] = []
        self._n_rows = self._n_chars = 0
        self._digest = hashlib.blake2b(digest_size=16)

    def add(self, file: str, record: Record, row: Row | None) -> None:
        """Add a record.

        file (str): The name of its file.
        record (Record): The record.
        row (Row | None): Its row, or None if it is bad or empty: it then counts for the digest only.
        """
        n_chars = 0 if row is None else len(row.content if isinstance(row.content, str) else row.content.text)
        if self._n_rows and self._n_chars + n_chars > self._max_chars:
            self._end()
        start = record.start
        if self._pieces and self._pieces[-1].file == file:
            start = self._pieces.pop().start
        self._pieces.append(Piece(file=file, start=start, end=record.end.offset))
        self._n_rows += row is not None
        self._n_chars += n_chars
        self._digest.update(record.raw)

    def _end(self) -> None:
        self._shards.append(
            Shard(
                name=f"shard-{len(self._shards):06}.parquet",
                pieces=self._pieces,
                n_rows=self._n_rows,
                n_chars=self._n_chars,
                digest=self._digest.hexdigest(),
            )
        )
        self._start()

    def finish(self) -> list[Shard]:
        """RETURNS (list[Shard]): The shards. Each has at least one row."""
        if self._n_rows:
            self._end()
        return self._shards


def read_shard(corpus: Path, shard: Shard, settings: EmbeddingSettings, vocab: Vocab) -> Iterator[Row]:
    """Read the rows of a shard, as they were planned.

    corpus (Path): The file or directory that was given.
    shard (Shard): The shard.
    settings (EmbeddingSettings): The settings of the plan.
    vocab (Vocab): The vocabulary of docs.
    YIELDS (Row): The rows, without bad ones. If the files have changed, an error follows the last row.
    """
    digest = hashlib.blake2b(digest_size=16)
    for piece in shard.pieces:
        for record in read_records(input_path(corpus, piece.file), piece.start, vocab):
            if record.start.offset >= piece.end:
                break
            digest.update(record.raw)
            try:
                row = parse_row(record, piece.file, settings)
            except BadRowError:
                continue  # counted when the plan was made
            if row is not None:
                yield row
    if digest.hexdigest() != shard.digest:
        names = ", ".join(dict.fromkeys(piece.file for piece in shard.pieces))
        raise ValueError(f"The text of {shard.name} is not the one that was planned: {names} changed in {corpus}.")
