"""Options and weights of published models that cannot be used."""

import json
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy
import pytest
from numpy.testing import assert_array_equal

from spacy_elmo.formats import bilm_tf
from spacy_elmo.formats.bilm_tf import read_options

from ..helpers import (
    published_arrays,
    published_options,
    random_bilm,
    small_config,
    write_hdf5,
    write_published,
)

CELL = "RNN_1/RNN/MultiRNNCell/Cell1/LSTMCell"


def write_options(path: Path, part: str, name: str, value: Any) -> Path:
    options = published_options()
    options[part][name] = value
    path.write_text(json.dumps(options), encoding="utf8")
    return path


def test_options_become_sizes(paths: tuple[Path, Path]) -> None:
    assert read_options(paths[0]) == small_config()


@pytest.mark.parametrize("n_characters", [261, 262])
def test_options_count_characters_with_or_without_the_padding_word(tmp_path: Path, n_characters: int) -> None:
    path = write_options(tmp_path / "options.json", "char_cnn", "n_characters", n_characters)
    assert read_options(path) == small_config()


@pytest.mark.parametrize(
    ("part", "name", "changes"),
    [
        ("char_cnn", "n_characters", {}),
        ("char_cnn", "n_highway", {"highways": 0}),
        ("lstm", "cell_clip", {"cell_clip": None}),
        ("lstm", "proj_clip", {"projection_clip": None}),
        ("lstm", "use_skip_connections", {"skip_connections": False}),
    ],
)
def test_options_that_may_be_left_out(tmp_path: Path, part: str, name: str, changes: dict[str, Any]) -> None:
    options = published_options()
    del options[part][name]
    (tmp_path / "options.json").write_text(json.dumps(options))
    assert read_options(tmp_path / "options.json") == small_config(**changes)


def test_options_of_training_are_read_too(tmp_path: Path) -> None:
    options = {**published_options(), "n_train_tokens": 768648884, "dropout": 0.1, "bidirectional": True}
    options["lstm"]["unroll_steps"] = 20
    (tmp_path / "options.json").write_text(json.dumps(options))
    assert read_options(tmp_path / "options.json") == small_config()


@pytest.mark.parametrize(
    ("part", "name", "value", "message"),
    [
        ("char_cnn", "n_characters", 100, "n_characters must be 261 or 262, got 100"),
        ("char_cnn", "filters", [[1, 0]], r"the count of a filter must be a whole number from 1 to \d+, got 0"),
        ("char_cnn", "activation", "elu", "activation must be one of relu, tanh, got 'elu'"),
        ("char_cnn", "max_characters_per_token", 2, r"max_chars must be a whole number from 3 to \d+, got 2"),
        ("lstm", "n_layers", -1, r"depth must be a whole number from 1 to \d+, got -1"),
        ("lstm", "cell_clip", "three", "cell_clip must be a number above 0, or null for no clipping, got 'three'"),
    ],
)
def test_options_that_cannot_be_used_are_an_error(
    tmp_path: Path, part: str, name: str, value: Any, message: str
) -> None:
    path = write_options(tmp_path / "options.json", part, name, value)
    with pytest.raises(ValueError, match=rf"The options in .*options.json cannot be used: {message}"):
        read_options(path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lstm": {}}, "KeyError.*char_cnn"),
        ({"char_cnn": {}}, "KeyError.*lstm"),
        ({"lstm": {"dim": 4}, "char_cnn": {"embedding": {"dim": 4}}}, "KeyError.*filters"),
        ({"lstm": [], "char_cnn": []}, "AttributeError"),
        ([], "TypeError"),
        (None, "TypeError"),
    ],
)
def test_options_of_another_kind_are_an_error(tmp_path: Path, options: Any, message: str) -> None:
    (tmp_path / "options.json").write_text(json.dumps(options))
    with pytest.raises(ValueError, match=rf"options.json are not those of a character-based biLM: {message}"):
        read_options(tmp_path / "options.json")


def test_options_that_are_not_json_are_an_error(paths: tuple[Path, Path]) -> None:
    paths[0].write_text("lstm: 1")
    with pytest.raises(ValueError, match=r"The options in .*options.json are not JSON: Expecting value"):
        bilm_tf.read(paths)


def test_swapped_arguments_are_an_error(paths: tuple[Path, Path]) -> None:
    with pytest.raises(ValueError, match=r"weights.hdf5 are not JSON: .*Were the arguments swapped"):
        bilm_tf.read(paths[::-1])


def test_missing_files_are_an_error(paths: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"There is no options file at .*nowhere"):
        bilm_tf.read([tmp_path / "nowhere", paths[1]])
    with pytest.raises(ValueError, match=r"There is no weights file at .*nowhere"):
        bilm_tf.read([paths[0], tmp_path / "nowhere"])


@pytest.mark.parametrize("key", ["char_embed", "CNN/b_cnn_2", "CNN_high_0/W_carry", "CNN_proj/b_proj", f"{CELL}/W_P_0"])
def test_missing_key_is_an_error(paths: tuple[Path, Path], key: str) -> None:
    with h5py.File(paths[1], "a") as file:
        del file[key]
    with pytest.raises(ValueError, match=rf"weights.hdf5 do not fit .*: missing \['{key}'\]\. Are they"):
        bilm_tf.read(paths)


@pytest.mark.parametrize("key", ["softmax/W", "CNN_high_1/b_carry", "RNN_0/RNN/MultiRNNCell/Cell2/LSTMCell/B"])
def test_unexpected_key_is_an_error(paths: tuple[Path, Path], key: str) -> None:
    with h5py.File(paths[1], "a") as file:
        file[key] = numpy.zeros(3)
    with pytest.raises(ValueError, match=rf": unexpected \['{key}'\]\. Are they"):
        bilm_tf.read(paths)


@pytest.mark.parametrize(
    ("key", "shape"),
    [
        ("char_embed", (262, 4)),
        ("CNN/W_cnn_1", (2, 4, 6)),
        ("CNN_proj/W_proj", (6, 18)),
        (f"{CELL}/B", (1, 40)),
        (f"{CELL}/B", ()),
    ],
)
def test_another_shape_is_an_error(paths: tuple[Path, Path], key: str, shape: tuple[int, ...]) -> None:
    with h5py.File(paths[1], "a") as file:
        del file[key]
        file[key] = numpy.zeros(shape)
    message = rf"{key} is {shape}, expected".replace("(", r"\(").replace(")", r"\)")
    with pytest.raises(ValueError, match=rf": of another shape \['{message}"):
        bilm_tf.read(paths)


def test_empty_file_is_an_error(paths: tuple[Path, Path]) -> None:
    write_hdf5(paths[1], {})
    with pytest.raises(ValueError, match=r"missing \['CNN/W_cnn_0', .*Are they of the same model"):
        bilm_tf.read(paths)


@pytest.mark.parametrize("value", [float("nan"), float("-inf")])
def test_weights_that_are_not_numbers_are_an_error(paths: tuple[Path, Path], value: float) -> None:
    with h5py.File(paths[1], "a") as file:
        file[f"{CELL}/W_0"][3, 4] = value
    with pytest.raises(ValueError, match=r"infinite or not a number, in \['lstm.layers.1.weight'\]"):
        bilm_tf.read(paths)


@pytest.mark.parametrize("keep", [0, 100, 4_000, -1])
def test_truncated_weights_are_an_error(paths: tuple[Path, Path], keep: int) -> None:
    paths[1].write_bytes(paths[1].read_bytes()[:keep])
    with pytest.raises(ValueError, match=r"weights.hdf5 cannot be read as HDF5, or is incomplete"):
        bilm_tf.read(paths)


def test_garbage_is_an_error(paths: tuple[Path, Path]) -> None:
    paths[1].write_bytes(bytes(range(256)) * 40)
    with pytest.raises(ValueError, match=r"weights.hdf5 cannot be read as HDF5, or is incomplete"):
        bilm_tf.read(paths)


def test_damage_anywhere_is_an_error_that_names_the_file_or_leaves_numbers(paths: tuple[Path, Path]) -> None:
    whole = paths[1].read_bytes()
    messages = []
    for at in range(0, len(whole), 512):
        paths[1].write_bytes(whole[:at] + b"\xff" * 64 + whole[at + 64 :])
        try:
            bilm_tf.read(paths)
        except ValueError as error:
            messages.append(str(error))
    assert messages
    assert all("weights.hdf5" in message for message in messages)


def test_missing_h5py_is_explained(paths: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(ImportError, match="needs h5py: pip install h5py"):
        bilm_tf.read(paths)
    with pytest.raises(ImportError, match="needs h5py: pip install h5py"):
        bilm_tf.write(random_bilm(), tmp_path / "theirs")
    assert not (tmp_path / "theirs").exists()


@pytest.mark.parametrize("changes", [{"projection": 10**6}, {"cells": 10**12}, {"char_dim": 10**30}])
def test_published_options_of_absurd_size(tmp_path: Path, changes: dict[str, int]) -> None:
    paths = write_published(tmp_path, published_options(**changes), published_arrays(published_options()))
    with pytest.raises(ValueError, match="do not fit the options|from 1 to 1048576"):
        bilm_tf.read(paths)


@pytest.mark.parametrize("dtype", [">f4", "S3", "c8"])
def test_published_arrays_of_odd_types(tmp_path: Path, dtype: str) -> None:
    arrays = published_arrays(published_options())
    arrays["CNN/b_cnn_0"] = arrays["CNN/b_cnn_0"].astype(dtype)
    paths = write_published(tmp_path, published_options(), arrays)
    if dtype == ">f4":
        assert_array_equal(bilm_tf.read(paths).state_dict()["char_cnn.filters.0.bias"], arrays["CNN/b_cnn_0"])
    else:
        with pytest.raises(ValueError, match="CNN/b_cnn_0"):
            bilm_tf.read(paths)
