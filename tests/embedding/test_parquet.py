"""Shards as Parquet."""

import json
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from spacy_elmo.embedding import parquet
from spacy_elmo.embedding.parquet import is_whole

from .corpora import TEXTS, embed, read_bytes, read_table, read_vectors, write_lines


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
    metadata = pyarrow.parquet.read_metadata(tmp_path / "out" / "shard-000000.parquet")
    sizes = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
    # A vector has 48 bytes, and a row of the corpus up to 20 tokens.
    assert max(sizes) < 1000 / 48 + 20
    assert len(sizes) > 10
    monkeypatch.undo()
    embed(corpus, tmp_path / "one", weights=weights, unit="token")
    assert (read_vectors(tmp_path / "one") == read_vectors(tmp_path / "out")).all()


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
