"""What the fuzzer has found, and what it cannot find by chance: each as a small file that must be refused."""

import gzip
import json
import pickle
import struct
import tracemalloc
import zlib
from pathlib import Path
from typing import Any

import h5py
import pytest
import srsly

from spacy_elmo.bilm.weights import load_stored
from spacy_elmo.corpora import lines
from spacy_elmo.corpora.long_texts import cut_text
from spacy_elmo.corpora.read import read_corpus
from spacy_elmo.formats import bilm_tf
from spacy_elmo.pretraining.vocabulary import Vocabulary

from .targets import LEGACY, MANY_LANGS, TARGETS

DEEP = b"[" * 1_000_000
HEADER = struct.pack("<Q", 1 << 30) + b"{"


def safetensors(header: dict[str, Any]) -> bytes:
    data = json.dumps(header).encode()
    return struct.pack("<Q", len(data)) + data


def metrics(**changes: Any) -> bytes:
    line = {"step": 1, "words": 5, "loss": 1.0, "perplexity": 2.0, "perplexity_forward": 2.0, **changes}
    return json.dumps(line).encode()


def changed(path: Path, **changes: Any) -> bytes:
    return json.dumps({**json.loads(path.read_text(encoding="utf8")), **changes}).encode()


CONFIG = LEGACY / "weights" / "config.json"
SIZES = MANY_LANGS / "cnn.json"
TENSOR = {"dtype": "F32", "shape": [2**62, 4], "data_offsets": [0, 16]}

# A pickle of torch, in its older format, with the name of a function that torch would search its error for.
ENDLESS_NAME = b"".join(pickle.dumps(part, 2) for part in (0x1950A86A20F9469CFC6C, 1001, {"little_endian": True}))
ENDLESS_NAME += b"\x80\x02ctorch\n" + b"a" * 100_000 + b"\n."

# The reader, the file, its contents, and what the error says.
FOUND: list[tuple[str, str, bytes, str]] = [
    ("weights", "config.json", DEEP, "config.json does not describe a biLM: maximum recursion"),
    ("weights", "config.json", changed(CONFIG, cell_clip=10**400), "cell_clip must be a number above 0"),
    ("weights", "config.json", changed(CONFIG, **{"a" * 100_000: 1}), "do not fit: missing .*unexpected .{,220}$"),
    ("weights", "model.safetensors", HEADER, "model.safetensors is not a safetensors file"),
    ("weights", "model.safetensors", safetensors({"a" * 50_000: TENSOR}), "model.safetensors"),
    ("weights", "model.safetensors", safetensors({"char_cnn.embedding.weight": TENSOR}), "model.safetensors"),
    ("serialized biLM", "bilm", srsly.msgpack_dumps({"config": DEEP.decode()}), "The data is not the serialized biLM"),
    ("published weights", "options.json", DEEP, "are not JSON: maximum recursion"),
    ("ELMoForManyLangs", "config.json", json.dumps({"config_path": "a" * 100_000}).encode(), "config.json names 'aaa"),
    (
        "ELMoForManyLangs",
        "cnn.json",
        changed(SIZES, encoder={"name": "a" * 100_000}),
        "encoder must be 'elmo', got 'aaa",
    ),
    ("ELMoForManyLangs", "token_embedder.pkl", ENDLESS_NAME, "token_embedder.pkl is damaged or incomplete"),
    ("vocabulary", "vocab.txt", b"<S>\t" + b"1" * 5000, "line 1: expected a word, a tab and its frequency"),
    ("checkpoint", "checkpoint.safetensors", safetensors({"__metadata__": {"run": "[" * 100_000}}), "or a damaged one"),
    ("vocabulary", "vocab.txt", b"a" * 100_000 + b"\t1", "vocab.txt cannot be used: A vocabulary starts with"),
    ("checkpoint", "checkpoint.safetensors", HEADER, "or a damaged one"),
    ("jsonl", "a.jsonl", b'{"text": ' + DEEP, 'line 1: expected an object with a "text"'),
    ("spacy", "a.spacy", zlib.compress(bytes(100_000_000)), "decompresses to more than .* bytes, as no docs do"),
    ("spacy.gz", "a.spacy.gz", gzip.compress(bytes(100_000_000)), "is not a file that spaCy's DocBin wrote"),
    ("rows to embed", "e.parquet", b"PAR1" + bytes(100) + b"PAR1", "e.parquet cannot be read: Couldn't deserialize"),
    ("plan of an embedding", "_plan.json", DEEP, "_plan.json is not a plan that .* wrote: maximum recursion"),
    ("plan of an embedding", "_plan.json", b"\xff", "_plan.json is not a plan that .* wrote: .*can't decode"),
    ("plan of an embedding", "_plan.json", b"1", "_plan.json is not a plan that .* wrote: expected an object"),
    ("component elmo", "cfg", b"3", "is not a saved component `elmo`, or a damaged one"),
    ("component elmo", "model", b"\xff\xfe", "is not a saved component `elmo`, or a damaged one"),
    ("component crf_ner", "cfg", b'{"labels":', "is not a saved component `crf_ner`, or a damaged one"),
    ("classifier", "classifier", b"\x81\xa5sizes\x90", "The data is not the serialized classifier, or a damaged one"),
    ("trials", "elmo/100/0/metrics.json", DEEP, "metrics.json cannot be read: maximum recursion"),
    ("trials", "elmo/100/0/metrics.json", b"\xff", "metrics.json cannot be read: .*can't decode"),
    ("metrics of a pretraining", "metrics.jsonl", b"1", "metrics.jsonl is not the metrics of a run"),
    ("metrics of a pretraining", "metrics.jsonl", metrics(), "metrics.jsonl is not the metrics of a pretraining"),
    ("metrics of a pretraining", "scores.json", DEEP, "scores.json has no perplexities: maximum recursion"),
    ("sentences with senses", "a.tsv", b"\xff", "a.tsv cannot be read as tab-separated UTF-8"),
    ("sentences with senses", "a.tsv", b"a" * 200_000, "a.tsv cannot be read as tab-separated UTF-8: field larger"),
]


@pytest.mark.parametrize(("target", "file", "data", "message"), FOUND, ids=[f"{row[0]}: {row[3]}" for row in FOUND])
def test_hostile_files_are_refused(target: str, file: str, data: bytes, message: str, tmp_path: Path) -> None:
    TARGETS[target].write(tmp_path)
    TARGETS[target].read(tmp_path)
    (tmp_path / file).write_bytes(data)
    with pytest.raises(ValueError, match=message) as found:
        TARGETS[target].read(tmp_path)
    assert len(str(found.value)) < 10_000


def test_trials_of_a_pipeline_without_names(tmp_path: Path) -> None:
    TARGETS["trials"].write(tmp_path)
    path = tmp_path / "elmo/100/0/metrics.json"
    metrics = json.loads(path.read_text(encoding="utf8"))
    metrics["config"]["pipeline"] = [["elmo"]]
    path.write_text(json.dumps(metrics), encoding="utf8")
    with pytest.raises(ValueError, match=r"metrics.json is not the metrics of a trial: it has no config.pipeline"):
        TARGETS["trials"].read(tmp_path)


@pytest.mark.parametrize("name", ["../outside.parquet", "shard-000000.parquet/../../x", "/tmp/shard-000000.parquet"])
def test_a_plan_cannot_name_files_elsewhere(name: str, tmp_path: Path) -> None:
    TARGETS["plan of an embedding"].write(tmp_path)
    path = tmp_path / "_plan.json"
    plan = json.loads(path.read_text(encoding="utf8"))
    for place, key in ((plan["shards"][0], "name"), (plan["shards"][0]["pieces"][0], "file")):
        before, place[key] = place[key], name
        path.write_text(json.dumps(plan), encoding="utf8")
        with pytest.raises(ValueError, match="is not a shard of its files"):
            TARGETS["plan of an embedding"].read(tmp_path)
        place[key] = before


def test_metadata_of_a_tokenized_corpus_that_is_too_deep_is_made_again(tmp_path: Path) -> None:
    target = TARGETS["tokenized corpus"]
    target.write(tmp_path)
    before = (tmp_path / "prepared" / "corpus.json").read_bytes()
    (tmp_path / "prepared" / "corpus.json").write_bytes(DEEP)
    target.read(tmp_path)
    assert (tmp_path / "prepared" / "corpus.json").read_bytes() == before


def test_a_gzip_bomb_is_read_in_pieces(tmp_path: Path) -> None:
    n_bytes = 60_000_000
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(b"a" * n_bytes, 1))
    tracemalloc.start()
    found = sum(len(word) for words in read_corpus(tmp_path, lang=None) for word in words)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found == n_bytes
    assert peak < 6 * lines.MAX_BYTES


def test_json_lines_that_are_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MAX_BYTES", 20)
    (tmp_path / "a.jsonl").write_text('{"text": "a b"}\n{"text": "a word and another"}\n', encoding="utf8")
    with pytest.raises(ValueError, match=r"a\.jsonl, line 2: longer than 10 MB"):
        list(read_corpus(tmp_path, lang=None))


def test_long_lines_of_text_are_cut_at_spaces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MAX_BYTES", 12)
    (tmp_path / "a.txt").write_text("naïve ducks sat\nhere\n\nüüüüüüüü\n", encoding="utf8")
    assert list(read_corpus(tmp_path, lang=None)) == [["naïve"], ["ducks", "sat"], ["here"], ["üüüüü"], ["üüü"]]


def test_long_runs_of_brackets_are_tokenized_in_pieces(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("ok " + "[" * 1200 + "\n", encoding="utf8")
    assert [len(words) for words in read_corpus(tmp_path, lang="en")] == [501, 500, 200]
    # Text without spaces stays whole.
    assert list(cut_text("日本" * 1000)) == ["日本" * 1000]


# Links


def test_a_link_to_a_device_is_not_read(tmp_path: Path) -> None:
    for name in ("config.json", "vocab.txt", "options.json"):
        (tmp_path / name).symlink_to("/dev/zero")
    with pytest.raises(ValueError, match=r"has no config\.json"):
        load_stored(tmp_path)
    with pytest.raises(ValueError, match="There is no vocabulary at"):
        Vocabulary.from_disk(tmp_path / "vocab.txt")
    with pytest.raises(ValueError, match="There is no options file at"):
        bilm_tf.read_options(tmp_path / "options.json")


def test_a_link_to_another_directory_is_read_like_the_file(tmp_path: Path) -> None:
    for path in (LEGACY / "weights").iterdir():
        (tmp_path / path.name).symlink_to(path)
    assert load_stored(tmp_path).config == load_stored(LEGACY / "weights").config


def test_names_in_hdf5_that_are_no_text(tmp_path: Path) -> None:
    TARGETS["published weights"].write(tmp_path)
    path = tmp_path / "weights.hdf5"
    path.write_bytes(path.read_bytes().replace(b"W_carry", b"W_\xffarry"))
    with pytest.raises(ValueError, match=r"weights.hdf5 cannot be read as HDF5, or is incomplete: .*can't decode"):
        TARGETS["published weights"].read(tmp_path)


def test_numbers_in_hdf5_of_an_unknown_precision(tmp_path: Path) -> None:
    TARGETS["published weights"].write(tmp_path)
    path = tmp_path / "weights.hdf5"
    data = path.read_bytes()
    # A type of 4 bytes: the position and the sizes of sign, exponent and mantissa, and the bias.
    layout = struct.pack("<HHBBBBI", 0, 32, 23, 8, 0, 23, 127)
    assert layout in data
    path.write_bytes(data.replace(layout, struct.pack("<HHBBBBI", 0, 32, 23, 8, 0, 23, 2**31)))
    with pytest.raises(
        ValueError, match=r"weights.hdf5 cannot be read as HDF5, or is incomplete: Insufficient precision"
    ):
        TARGETS["published weights"].read(tmp_path)


def test_hdf5_cannot_read_other_files(tmp_path: Path) -> None:
    TARGETS["published weights"].write(tmp_path)
    (tmp_path / "secret").write_bytes(b"a secret")
    with h5py.File(tmp_path / "weights.hdf5", "a") as file:
        shape = file["CNN/b_cnn_0"].shape
        del file["CNN/b_cnn_0"]
        file.create_dataset("CNN/b_cnn_0", shape, "float32", external=[(str(tmp_path / "secret"), 0, 8)])
    with pytest.raises(
        ValueError, match=r"weights\.hdf5 are partly in other files, which are not read: \['CNN/b_cnn_0'"
    ):
        TARGETS["published weights"].read(tmp_path)
