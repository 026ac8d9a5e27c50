"""Shards as Parquet."""

import json
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from spacy_elmo.embedding import columns, parquet
from spacy_elmo.embedding.embed import prepare
from spacy_elmo.embedding.parquet import is_whole
from spacy_elmo.embedding.plan import PLAN_FILE
from spacy_elmo.embedding.settings import EmbeddingSettings
from spacy_elmo.embedding.shard import embed_shard

from .corpora import TEXTS, embed, read_bytes, read_table, read_vectors, write_lines


def group_sizes(output: Path) -> list[int]:
    metadata = pyarrow.parquet.read_metadata(output / "shard-000000.parquet")
    return [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]


def test_columns_and_metadata(weights: str, tmp_path: Path) -> None:
    rows = [{"text": "A b.", "n": 1, "x": 0.5, "ok": True, "tags": ["a"]}, {"text": "C.", "n": None, "label": "y"}]
    embedding = embed(write_lines(tmp_path / "a.jsonl", *rows), tmp_path / "out", weights=weights, dtype="float16")
    schema = read_table(tmp_path / "out").schema
    types = {"id": "string", "text": "string", "n": "int64", "x": "double", "ok": "bool", "tags": "string"}
    types |= {"label": "string", "vector": "fixed_size_list<element: halffloat>[12]"}
    assert {field.name: str(field.type) for field in schema} == types
    assert read_table(tmp_path / "out")["tags"].to_pylist() == ['["a"]', None]
    metadata = {name.decode(): value.decode() for name, value in schema.metadata.items()}
    assert metadata["spacy_elmo.fingerprint"] == embedding.plan.fingerprint
    assert json.loads(metadata["spacy_elmo.settings"])["dtype"] == "float16"
    assert json.loads(metadata["spacy_elmo.model"]) == embedding.plan.model
    assert len(embedding.plan.model["weights"]) == 64
    assert embedding.plan.model["spacy-elmo"][0].isdigit()


def test_row_groups_are_bounded(weights: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "GROUP_BYTES", 1000)
    corpus = write_lines(tmp_path / "a.txt", *TEXTS)
    embed(corpus, tmp_path / "out", weights=weights, unit="token")
    sizes = group_sizes(tmp_path / "out")
    # A vector has 48 bytes, and a row of the corpus up to 20 tokens.
    assert max(sizes) < 1000 / 48 + 20
    assert len(sizes) > 10
    monkeypatch.undo()
    embed(corpus, tmp_path / "one", weights=weights, unit="token")
    assert (read_vectors(tmp_path / "one") == read_vectors(tmp_path / "out")).all()


@pytest.mark.parametrize(
    ("field", "unit", "sizes"),
    [
        # A vector has 48 bytes. Each row has 400 of further fields, once for each of its units.
        ("x" * 400, "document", [3, 3, 1]),
        ("x" * 400, "sentence", [4, 4, 4, 2]),
        ("日" * 133, "sentence", [4, 4, 4, 2]),
        (["x" * 396], "sentence", [4, 4, 4, 2]),  # with brackets and quotation marks
        (1, "sentence", [14]),
        (None, "sentence", [14]),
    ],
    ids=lambda value: str(value)[:20],
)
def test_further_fields_count_once_for_each_unit(
    weights: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, field: Any, unit: str, sizes: list[int]
) -> None:
    monkeypatch.setattr(parquet, "GROUP_BYTES", 1000)
    corpus = write_lines(tmp_path / "a.jsonl", *[{"text": "It is. It was.", "more": field}] * 7)
    embed(corpus, tmp_path / "out", weights=weights, unit=unit)
    assert group_sizes(tmp_path / "out") == sizes


def test_ids_count_once_for_each_unit(weights: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "GROUP_BYTES", 1000)
    corpus = write_lines(tmp_path / "a.jsonl", *[{"text": "It is. It was.", "id": "é" * 200}] * 7)
    embed(corpus, tmp_path / "out", weights=weights, unit="sentence")
    assert group_sizes(tmp_path / "out") == [4, 4, 4, 2]
    monkeypatch.setattr(columns, "LARGEST_COLUMN", 700)
    embedding = prepare(corpus, tmp_path / "other", EmbeddingSettings(weights=weights, unit="sentence"))
    message = (
        f"The id '{'é' * 79} has 400 bytes, and is repeated for each of 2 units: more than the 700 bytes that a column can "
        "hold. Choose shorter ids, and start again with --overwrite"
    )
    with pytest.raises(ValueError, match=message):
        embed_shard(embedding.job, embedding.missing[0])


def test_field_that_is_too_large_for_every_unit_is_refused(
    weights: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(columns, "LARGEST_COLUMN", 1000)
    rows = [{"text": "It is. It was.", "html": "é" * 250}, {"text": "It is. It was. I am.", "html": "é" * 250}]
    settings = EmbeddingSettings(weights=weights, unit="sentence", shard_size=20)
    embedding = prepare(write_lines(tmp_path / "a.jsonl", *rows), tmp_path / "out", settings)
    first, second = embedding.missing
    embed_shard(embedding.job, first)
    message = (
        "The field 'html' of 'a.jsonl:2' has 500 bytes, and is repeated for each of 3 units: more than the 1,000 bytes "
        "that a column can hold. List the fields to keep with --fields, without this one, and start again with --overwrite"
    )
    with pytest.raises(ValueError, match=message):
        embed_shard(embedding.job, second)
    assert {path.name for path in (tmp_path / "out").iterdir()} == {PLAN_FILE, first.name}
    embed(tmp_path / "a.jsonl", tmp_path / "without", weights=weights, unit="sentence", fields=())
    assert group_sizes(tmp_path / "without") == [5]


def test_same_input_gives_the_same_bytes(weights: str, tmp_path: Path) -> None:
    corpus = write_lines(tmp_path / "a.txt", *TEXTS)
    for name in ("x", "y"):
        embed(corpus, tmp_path / name, weights=weights, shard_size=500)
    assert read_bytes(tmp_path / "x") == read_bytes(tmp_path / "y")
    assert len(read_bytes(tmp_path / "x")) > 3


def test_is_whole(weights: str, tmp_path: Path) -> None:
    embedding = embed(write_lines(tmp_path / "a.txt", *TEXTS), tmp_path / "out", weights=weights)
    path, fingerprint = tmp_path / "out" / "shard-000000.parquet", embedding.plan.fingerprint
    assert is_whole(path, fingerprint)
    assert not is_whole(path, "0" * 64)
    assert not is_whole(tmp_path / "missing.parquet", fingerprint)
    data = path.read_bytes()
    for n_bytes in (0, 4, 100, len(data) - 1):
        path.write_bytes(data[:n_bytes])
        assert not is_whole(path, fingerprint)
    pyarrow.parquet.write_table(pyarrow.table({"a": [1]}), path)
    assert not is_whole(path, fingerprint)
