"""Vectors of documents, sentences and tokens: those of `nlp.pipe`, whatever the format of the corpus."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy
import pyarrow
import pyarrow.parquet
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import DocBin

from spacy_elmo.corpora import long_texts

from ..helpers import make_elmo_nlp
from .corpora import TEXTS, assert_same_vectors, embed, read_table, read_vectors, write_lines

SPACED = ["One  sentence. \n Another one!", "Third"]


@pytest.fixture(scope="module")
def nlp(weights: str) -> Language:
    pipeline = make_elmo_nlp(weights)
    pipeline.add_pipe("sentencizer", first=True)
    return pipeline


def test_document_is_the_mean_of_its_words(nlp: Language, weights: str, tmp_path: Path) -> None:
    corpus = write_lines(tmp_path / "a.jsonl", *[{"text": text} for text in SPACED])
    embed(corpus, tmp_path / "out", weights=weights)
    docs = [nlp(text) for text in SPACED]
    expected = [numpy.mean([doc.tensor[token.i] for token in doc if not token.is_space], axis=0) for doc in docs]
    assert_same_vectors(read_vectors(tmp_path / "out"), numpy.stack(expected))
    assert read_table(tmp_path / "out").column_names == ["id", "text", "vector"]
    assert read_table(tmp_path / "out")["text"].to_pylist() == SPACED


def test_sentences(nlp: Language, weights: str, tmp_path: Path) -> None:
    corpus = write_lines(tmp_path / "a.jsonl", *[{"text": text, "label": "x"} for text in SPACED])
    embed(corpus, tmp_path / "out", weights=weights, unit="sentence")
    table = read_table(tmp_path / "out")
    assert table.drop_columns(["vector"]).to_pylist() == [
        {"id": "a.jsonl:1", "sentence": 0, "text": "One  sentence.", "label": "x"},
        {"id": "a.jsonl:1", "sentence": 1, "text": "Another one!", "label": "x"},
        {"id": "a.jsonl:2", "sentence": 0, "text": "Third", "label": "x"},
    ]
    doc = nlp(SPACED[0])
    expected = numpy.mean([doc.tensor[token.i] for token in doc[:5] if not token.is_space], axis=0)
    assert_same_vectors(read_vectors(tmp_path / "out")[0], expected)


def test_tokens(nlp: Language, weights: str, tmp_path: Path) -> None:
    corpus = write_lines(tmp_path / "a.jsonl", *[{"text": text} for text in SPACED])
    embed(corpus, tmp_path / "out", weights=weights, unit="token", text=False)
    docs = [nlp(text) for text in SPACED]
    words = [token for doc in docs for token in doc if not token.is_space]
    table = read_table(tmp_path / "out")
    assert table.column_names == ["id", "sentence", "token", "vector"]
    assert table["token"].to_pylist() == [token.i for token in words] == [0, 2, 3, 5, 6, 7, 0]
    assert table["sentence"].to_pylist() == [0, 0, 0, 1, 1, 1, 0]
    assert_same_vectors(read_vectors(tmp_path / "out"), numpy.stack([token.doc.tensor[token.i] for token in words]))


@pytest.mark.parametrize(
    ("layers", "choose"),
    [
        ("mix", lambda layers: layers.mean(axis=0)),
        ("mean", lambda layers: layers.mean(axis=0)),
        ("top", lambda layers: layers[2]),
        (0, lambda layers: layers[0]),
        (-2, lambda layers: layers[1]),
        ("all", lambda layers: layers.transpose(1, 0, 2).reshape(layers.shape[1], -1)),
    ],
)
def test_layers(nlp: Language, weights: str, tmp_path: Path, layers: Any, choose: Any) -> None:
    corpus = write_lines(tmp_path / "a.txt", TEXTS[0])
    embed(corpus, tmp_path / "out", weights=weights, unit="token", layers=layers)
    doc = nlp(TEXTS[0])
    words = [token.i for token in doc if not token.is_space]
    assert_same_vectors(read_vectors(tmp_path / "out"), choose(doc._.elmo_layers)[words])


def test_half_precision(weights: str, tmp_path: Path) -> None:
    corpus = write_lines(tmp_path / "a.txt", *TEXTS)
    embed(corpus, tmp_path / "half", weights=weights, dtype="float16")
    embed(corpus, tmp_path / "full", weights=weights)
    half = read_vectors(tmp_path / "half")
    assert half.dtype == numpy.float16
    numpy.testing.assert_array_equal(half, read_vectors(tmp_path / "full").astype("float16"))


def test_all_formats_give_the_same_vectors(weights: str, tmp_path: Path) -> None:
    rows = [{"text": text} for text in TEXTS]
    lines = "".join(f"{json.dumps(row)}\n" for row in rows)
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    write_lines(tmp_path / "a.txt", *TEXTS)
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "a.parquet")
    blank = spacy.blank("en")
    DocBin(docs=[blank(text) for text in TEXTS]).to_disk(tmp_path / "a.spacy")
    embed(tmp_path / "a.txt", tmp_path / "txt", weights=weights, shard_size=500)
    for name in ("a.jsonl.gz", "a.parquet", "a.spacy"):
        output = tmp_path / f"out-{name}"
        embed(tmp_path / name, output, weights=weights, shard_size=500)
        numpy.testing.assert_array_equal(read_vectors(output), read_vectors(tmp_path / "txt"))
        assert read_table(output)["id"][7].as_py() == f"{name}:8"


def test_tokenized_text(weights: str, tmp_path: Path) -> None:
    corpus = write_lines(tmp_path / "a.txt", "It 's Ada . She wrote .", "don't cut")
    embed(corpus, tmp_path / "out", weights=weights, unit="token", tokenized=True)
    table = read_table(tmp_path / "out")
    assert table["text"].to_pylist() == ["It", "'s", "Ada", ".", "She", "wrote", ".", "don't", "cut"]
    assert set(table["sentence"].to_pylist()) == {0}


def test_tokenized_text_is_not_cut(weights: str, tmp_path: Path) -> None:
    words = ["x" * 2_000, *["word"] * 21_000]  # more than 100,000 characters
    corpus = write_lines(tmp_path / "a.txt", " ".join(words))
    embed(corpus, tmp_path / "out", weights=weights, unit="token", tokenized=True)
    table = read_table(tmp_path / "out")
    assert table["text"].to_pylist() == words
    assert set(table["sentence"].to_pylist()) == {0}


def test_long_text_is_embedded_in_pieces(weights: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "Ada wrote a program. " * 40
    corpus = write_lines(tmp_path / "a.txt", text, "Another one.")
    for unit in ("document", "token"):
        embed(corpus, tmp_path / unit, weights=weights, unit=unit)
    monkeypatch.setattr(long_texts, "LONGEST_PIECE", 106)  # five sentences
    for unit in ("document", "token"):
        embed(corpus, tmp_path / f"{unit}-pieces", weights=weights, unit=unit)
        assert_same_vectors(read_vectors(tmp_path / f"{unit}-pieces"), read_vectors(tmp_path / unit))
    table, whole = (read_table(tmp_path / name) for name in ("token-pieces", "token"))
    assert table["sentence"].to_pylist() == whole["sentence"].to_pylist()
    assert table["text"].to_pylist() == whole["text"].to_pylist()
