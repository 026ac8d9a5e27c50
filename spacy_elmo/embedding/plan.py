"""The plan of an embedding: which rows go into which shard. It is written once, and every shard is a function of it."""

import hashlib
import json
import re
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ..files.atomic import write_file
from ..files.versions import NewerFormatError, add_version, take_version
from .records import Position

# Readers of Parquet directories leave out names with an underscore.
PLAN_FILE = "_plan.json"
SHARD_NAME = re.compile(r"shard-[0-9]{6,}\.parquet")
FORMAT_VERSION = 1


@dataclass(frozen=True, kw_only=True)
class InputFile:
    """A file of the corpus.

    name (str): Its path in the corpus.
    size, mtime_ns (int): Its bytes, and when it was changed. If both are the same, so is the content.
    """

    name: str
    size: int
    mtime_ns: int


@dataclass(frozen=True, kw_only=True)
class Piece:
    """Consecutive records of a file.

    file (str): The name of the file.
    start (Position): The first record.
    end (int): The offset after the last one.
    """

    file: str
    start: Position
    end: int


@dataclass(frozen=True, kw_only=True)
class Shard:
    """The rows that become one Parquet file.

    name (str): The name of that file.
    pieces (list[Piece]): Where the rows are.
    n_rows, n_chars (int): Rows that are not bad, and the characters of their text.
    digest (str): A checksum of the records.
    """

    name: str
    pieces: list[Piece]
    n_rows: int
    n_chars: int
    digest: str


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is embedded, and with what.

    settings (dict): Those that decide what is written, `EmbeddingSettings.comparable`.
    model (dict): `Embedder.identity`.
    files (list[InputFile]): The files of the corpus.
    fields (dict[str, str]): The further fields of rows, and the types of their columns.
    n_bad_rows (int): Rows that are left out.
    bad_rows (list[str]): The first of them, and why.
    shards (list[Shard]): The shards.
    """

    settings: dict[str, Any]
    model: dict[str, str]
    files: list[InputFile]
    fields: dict[str, str]
    n_bad_rows: int
    bad_rows: list[str]
    shards: list[Shard]

    @cached_property
    def fingerprint(self) -> str:
        """RETURNS (str): A checksum of everything that the vectors depend on."""
        # A file that was copied has another time, and the same content.
        data = {name: value for name, value in asdict(self).items() if name != "files"}
        return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()

    def to_disk(self, output: Path) -> None:
        """Write the plan. If two processes make it at the same time, they write the same.

        output (Path): The directory of the shards.
        """
        data = add_version({"fingerprint": self.fingerprint, **asdict(self)}, current=FORMAT_VERSION)
        write_file(output / PLAN_FILE, json.dumps(data, indent=1) + "\n")


def read_plan(output: Path) -> Plan | None:
    """Read the plan of an embedding.

    output (Path): The directory of the shards.
    RETURNS (Plan | None): The plan, or None if there is none.
    """
    path = output / PLAN_FILE
    if not path.is_file():
        return None
    try:
        _, data = take_version(json.loads(path.read_text(encoding="utf8")), current=FORMAT_VERSION, where=path)
        fingerprint = data.pop("fingerprint")
        data["files"] = [InputFile(**file) for file in data["files"]]
        data["shards"] = [_shard_from_dict(shard) for shard in data["shards"]]
        plan = Plan(**data)
        is_changed = plan.fingerprint != fingerprint
        _check_names(plan)
    except NewerFormatError:
        raise
    except (TypeError, KeyError, AttributeError, ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not a plan that `spacy elmo embed` wrote: {error!s:.200}.") from error
    if is_changed:
        raise ValueError(f"{path} was changed after it was written. Start again with --overwrite.")
    return plan


def _check_names(plan: Plan) -> None:
    """Refuse names that lead out of the directories of the shards and of the corpus."""
    files = {file.name for file in plan.files}
    for shard in plan.shards:
        if not SHARD_NAME.fullmatch(shard.name) or any(piece.file not in files for piece in shard.pieces):
            raise ValueError(f"{shard.name!r:.80} is not a shard of its files")


def _shard_from_dict(data: dict[str, Any]) -> Shard:
    pieces = [Piece(**{**piece, "start": Position(*piece["start"])}) for piece in data["pieces"]]
    return Shard(**{**data, "pieces": pieces})


def list_files(corpus: Path, paths: list[Path]) -> list[InputFile]:
    """Describe the files of a corpus.

    corpus (Path): The file or directory that was given.
    paths (list[Path]): Its files.
    RETURNS (list[InputFile]): Their names and sizes.
    """
    root = corpus if corpus.is_dir() else corpus.parent
    found = ((path.relative_to(root).as_posix(), path.stat()) for path in paths)
    return [InputFile(name=name, size=stat.st_size, mtime_ns=stat.st_mtime_ns) for name, stat in found]


def input_path(corpus: Path, name: str) -> Path:
    """RETURNS (Path): Where a file of a corpus is."""
    return corpus / name if corpus.is_dir() else corpus.parent / name
