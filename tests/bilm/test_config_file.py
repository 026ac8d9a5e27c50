"""The sizes of a biLM in config.json: their format versions, and what can be wrong with them."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import srsly
import torch

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.frozen import freeze
from spacy_elmo.bilm.weights import from_bytes, load_config, load_weights, save_weights, to_bytes

from ..helpers import SIZES, random_bilm, small_config


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A good weights directory, for a test to break."""
    save_weights(random_bilm(), tmp_path / "weights")
    return tmp_path / "weights"


@dataclass(frozen=True, kw_only=True)
class LaterConfig(BiLMConfig):
    """A config with a field that files do not have yet."""

    peepholes: bool = False


def test_sizes_through_json() -> None:
    assert small_config().to_dict() == SIZES
    assert BiLMConfig.from_dict(json.loads(json.dumps(SIZES))) == small_config()


def test_a_later_field_has_a_default() -> None:
    assert LaterConfig.from_dict(SIZES) == LaterConfig(**SIZES, peepholes=False)
    assert LaterConfig.from_dict({**SIZES, "peepholes": True}).peepholes is True
    with pytest.raises(ValueError, match=r"missing \['cells'\], unexpected \['colour'\]"):
        LaterConfig.from_dict({**{name: size for name, size in SIZES.items() if name != "cells"}, "colour": "red"})


def test_files_without_a_version_load(directory: Path) -> None:
    (directory / "config.json").write_text(json.dumps(SIZES))
    assert load_config(directory) == small_config()
    weight = random_bilm().char_cnn.embedding.weight
    assert torch.equal(load_weights(directory).char_cnn.embedding.weight, weight)
    message = srsly.msgpack_loads(to_bytes(random_bilm()))
    assert message["config"].pop("format_version") == 1
    del message["config"]["spacy_elmo_version"]
    assert torch.equal(from_bytes(srsly.msgpack_dumps(message)).char_cnn.embedding.weight, weight)


@pytest.mark.parametrize(
    ("writer", "advice"), [({"spacy_elmo_version": "7.8.9"}, r"spacy-elmo 7\.8\.9 or later"), ({}, "a later release")]
)
def test_files_of_a_newer_format(directory: Path, writer: dict[str, str], advice: str) -> None:
    config = {"format_version": 4, **writer, "sizes": "elsewhere"}
    (directory / "config.json").write_text(json.dumps(config))
    message = (
        rf"was written by a newer version of spacy-elmo: its format version is 4, .* up to 3\. Install {advice}\.$"
    )
    for load in (load_config, load_weights):
        with pytest.raises(ValueError, match=rf"config\.json {message}"):
            load(directory)
    serialized = {**srsly.msgpack_loads(to_bytes(random_bilm())), "config": config}
    with pytest.raises(ValueError, match=rf"^the serialized biLM {message}"):
        from_bytes(srsly.msgpack_dumps(serialized))


@pytest.mark.parametrize(
    ("changes", "precision", "version"),
    [
        ({}, "float32", 1),
        ({}, "int8", 2),
        ({"lang": "de"}, "float32", 3),
        ({"normalize": "NFC"}, "int8", 3),
        ({"segmenter": "jieba"}, "float32", 3),
    ],
)
def test_the_lowest_version_that_fits_is_written(
    tmp_path: Path, changes: dict[str, Any], precision: Any, version: int
) -> None:
    save_weights(freeze(random_bilm(**changes), precision), tmp_path / "weights")
    assert json.loads((tmp_path / "weights" / "config.json").read_text())["format_version"] == version
    assert load_config(tmp_path / "weights") == small_config(**changes)


def test_tables_are_written_as_text(tmp_path: Path) -> None:
    save_weights(random_bilm(characters="日本\n", words=["naïve"], word_dim=2), tmp_path / "weights")
    text = (tmp_path / "weights" / "config.json").read_text(encoding="utf8")
    assert '"characters": "日本\\n"' in text
    assert '"naïve"' in text
    assert load_config(tmp_path / "weights").characters == "日本\n"


@pytest.mark.parametrize("version", [-1, 1.0, "1", None, True])
def test_versions_that_make_no_sense(directory: Path, version: Any) -> None:
    (directory / "config.json").write_text(json.dumps({"format_version": version, **SIZES}))
    with pytest.raises(ValueError, match="does not describe a biLM: format_version must be a whole number"):
        load_config(directory)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"{", "Expecting property name"),
        (b"", "Expecting value"),
        (b"\xff\xfe", "can't decode byte 0xff"),
        (b"[1, 2]", r"expected an object, got \[1, 2\]"),
        (b"{}", r"missing \['activation', 'cell_clip', .*unexpected \[\]"),
    ],
)
def test_config_that_is_not_one_is_an_error(directory: Path, text: bytes, message: str) -> None:
    (directory / "config.json").write_bytes(text)
    with pytest.raises(ValueError, match=rf"config.json does not describe a biLM: .*{message}"):
        load_weights(directory)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cells": 0}, r"cells must be a whole number from 1 to \d+, got 0"),
        ({"depth": -2}, r"depth must be a whole number from 1 to \d+, got -2"),
        ({"filters": [[1, -4]]}, r"the count of a filter must be a whole number from 1 to \d+, got -4"),
        ({"projection": None}, r"projection must be a whole number from 1 to \d+, got None"),
        ({"colour": "red"}, r"missing \[\], unexpected \['colour'\]"),
    ],
)
def test_config_that_makes_no_sense_is_an_error(directory: Path, changes: dict[str, Any], message: str) -> None:
    (directory / "config.json").write_text(json.dumps({**SIZES, **changes}))
    with pytest.raises(ValueError, match=rf"config.json does not describe a biLM: .*{message}"):
        load_weights(directory)


@pytest.mark.parametrize(
    "changes",
    [{"projection": 10**6}, {"cells": 10**6}, {"char_dim": 10**6}, {"filters": [[1, 10**6]]}, {"depth": 64}],
)
def test_huge_sizes_are_refused_before_anything_is_allocated(directory: Path, changes: dict[str, Any]) -> None:
    (directory / "config.json").write_text(json.dumps({**SIZES, **changes}))
    with pytest.raises(ValueError, match=r"model.safetensors do not fit their config"):
        load_weights(directory)


# Places that hold no weights


@pytest.mark.parametrize(
    "changes",
    [
        {"char_dim": 10**18},
        {"projection": 10**30},
        {"depth": 10**9},
        {"highways": 10**9},
        {"filters": [[1, 1]] * 10**5},
    ],
)
def test_absurd_sizes(tmp_path: Path, changes: dict[str, int]) -> None:
    save_weights(random_bilm(), tmp_path / "w")
    (tmp_path / "w" / "config.json").write_text(json.dumps({**SIZES, **changes}))
    with pytest.raises(ValueError, match="config"):
        load_weights(tmp_path / "w")


def test_deep_json(tmp_path: Path) -> None:
    save_weights(random_bilm(), tmp_path / "w")
    (tmp_path / "w" / "config.json").write_text("[" * 100_000)
    with pytest.raises(ValueError, match="does not describe a biLM"):
        load_weights(tmp_path / "w")
