"""Shards as Parquet files: written in row groups of bounded size, and checked by their metadata."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .columns import VECTOR, count_repeated_bytes, make_batch
from .extras import import_arrow, import_parquet
from .pooling import Units

GROUP_BYTES = 16_000_000  # of the vectors, ids, texts and further fields of a row group
FINGERPRINT = b"spacy_elmo.fingerprint"


@contextmanager
def open_writer(path: Path, schema: Any, fields: dict[str, str]) -> Iterator[Callable[[Units], None]]:
    """Open a Parquet file to write units to. The same units give the same bytes.

    path (Path): The file.
    schema (Schema): Its columns.
    fields (dict[str, str]): The types of further fields.
    YIELDS (Callable): Writes units, in row groups of about `GROUP_BYTES`.
    """
    waiting: list[Units] = []
    n_bytes = 0
    others = [field.name for field in schema if field.name != VECTOR]

    def flush() -> None:
        nonlocal n_bytes
        if waiting:
            writer.write_batch(make_batch(waiting, schema, fields))
        waiting.clear()
        n_bytes = 0

    def write(units: Units) -> None:
        nonlocal n_bytes
        waiting.append(units)
        n_bytes += units.vectors_NW.nbytes + sum(map(len, units.texts)) + count_repeated_bytes(units, fields)
        if n_bytes >= GROUP_BYTES:
            flush()

    # Vectors hardly compress, and a dictionary of them would be larger than they are.
    with import_parquet().ParquetWriter(
        path,
        schema,
        use_dictionary=others,
        write_statistics=others,
        compression={name: "zstd" for name in others} | {f"{VECTOR}.list.element": "none"},
    ) as writer:
        yield write
        flush()


def is_whole(path: Path, fingerprint: str) -> bool:
    """Say whether a shard has been written.

    path (Path): The file of the shard.
    fingerprint (str): That of the plan.
    RETURNS (bool): Whether the file can be read, and was written for this plan.
    """
    if not path.exists():
        return False
    try:
        metadata = import_parquet().read_metadata(path).metadata
    except (import_arrow().ArrowInvalid, OSError):
        return False
    return metadata is not None and metadata.get(FINGERPRINT) == fingerprint.encode()
