"""The published form, against the reference and against stored outputs of real models."""

import json
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from spacy_elmo.bilm.characters import Mark, Word
from spacy_elmo.bilm.embed import embed_sentences, run_batch
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.bilm.weights import load_weights, save_weights
from spacy_elmo.formats.bilm_tf import published_views, read_bilm_tf, read_options, write_bilm_tf

from .. import reference
from ..helpers import (
    assert_same_arrays,
    published_arrays,
    published_options,
    random_bilm,
    read_hdf5,
    small_config,
    write_hdf5,
    write_published,
)

pytestmark = pytest.mark.usefixtures("one_thread")

CELL = "RNN_1/RNN/MultiRNNCell/Cell1/LSTMCell"
SENTENCE = ["A", "naïve", "duck", ".", "<S>"]


@pytest.fixture
def paths(tmp_path: Path) -> tuple[Path, Path]:
    """The options and the weights of a good model, for a test to break."""
    options = published_options()
    return write_published(tmp_path, options, published_arrays(options))


# Fixtures of the original projects


@pytest.mark.parametrize(
    ("name", "sentences_file"),
    [("bilm_tf", "lm_embeddings_sentences.json"), ("allennlp", "sentences.json")],
)
def test_stored_outputs_are_reproduced_with_the_state_carried(shared: Path, name: str, sentences_file: str) -> None:
    directory = shared / "fixtures" / name
    bilm = read_bilm_tf(directory / "options.json", directory / "lm_weights.hdf5")
    streams = json.loads((directory / sentences_file).read_text(encoding="utf8"))
    stored = [read_hdf5(directory / f"lm_embeddings_{k}.hdf5") for k in range(3)]
    state = bilm.start(3, "zero")
    n_compared = 0
    for i in range(10):
        with torch.no_grad():
            layers, state = run_batch(bilm, [stream[i].split() for stream in streams], state)
        for k in range(3):
            forward, backward = stored[k][str(i)]
            expected = numpy.concatenate([forward, backward], axis=-1)
            assert layers[k][-1].shape == expected.shape
            assert_allclose(layers[k][-1].numpy(), expected, rtol=0, atol=5e-6)
            n_compared += 1
    assert n_compared == 30


def test_stored_token_vectors_are_reproduced(shared: Path) -> None:
    directory = shared / "fixtures" / "allennlp"
    bilm = read_bilm_tf(directory / "options.json", directory / "lm_weights.hdf5")
    expected = read_hdf5(directory / "elmo_token_embeddings.hdf5")["embedding"]
    # One row for each line; the sentence marks stand among the words.
    marks = {"<S>": Mark.BEGIN_SENTENCE, "</S>": Mark.END_SENTENCE}
    lines = (directory / "vocab_test.txt").read_text(encoding="utf8").split("\n")
    assert len(lines) == len(expected) == 458
    assert marks.keys() <= set(lines)
    vocabulary: list[Word] = [marks.get(line, line) for line in lines]
    with torch.no_grad():
        assert_allclose(bilm.encode_words(vocabulary).numpy(), expected, rtol=0, atol=5e-6)


@pytest.mark.parametrize("name", ["bilm_tf", "allennlp"])
def test_the_reference_reproduces_stored_outputs(shared: Path, name: str) -> None:
    directory = shared / "fixtures" / name
    options = json.loads((directory / "options.json").read_text(encoding="utf8"))
    arrays = read_hdf5(directory / "lm_weights.hdf5")
    streams = json.loads(next(directory.glob("*sentences.json")).read_text(encoding="utf8"))
    stored = read_hdf5(directory / "lm_embeddings_2.hdf5")
    memory = None
    for i in range(2):
        layers, memory = reference.run_sentence(options, arrays, streams[2][i].split(), memory)
        assert_allclose(layers[-1], numpy.concatenate(list(stored[str(i)]), axis=-1), rtol=0, atol=5e-6)


@pytest.mark.parametrize("name", ["bilm_tf", "allennlp"])
def test_published_files_survive_the_round_trip(shared: Path, name: str, tmp_path: Path) -> None:
    directory = shared / "fixtures" / name
    save_weights(read_bilm_tf(directory / "options.json", directory / "lm_weights.hdf5"), tmp_path / "ours")
    write_bilm_tf(load_weights(tmp_path / "ours"), tmp_path / "theirs")
    assert_same_arrays(read_hdf5(tmp_path / "theirs" / "weights.hdf5"), read_hdf5(directory / "lm_weights.hdf5"))
    options = json.loads((directory / "options.json").read_text(encoding="utf8"))
    assert json.loads((tmp_path / "theirs" / "options.json").read_text()) == options


# Random models


VARIANTS: dict[str, dict[str, Any]] = {
    "small": {},
    "deep": {"depth": 3, "highways": 2, "activation": "tanh"},
    "plain": {"depth": 1, "highways": 0, "skip_connections": False, "cell_clip": None, "projection_clip": None},
    "no projections": {"projection": 18, "cells": 18, "max_chars": 50},
}


@pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS.keys())
def test_round_trip_is_exact(changes: dict[str, Any], tmp_path: Path) -> None:
    options = published_options(**changes)
    arrays = published_arrays(options)
    # Over other weights, so that a writer that does nothing fails.
    save_weights(random_bilm(7, **changes), tmp_path / "ours")
    write_bilm_tf(random_bilm(8, **changes), tmp_path / "theirs")
    save_weights(read_bilm_tf(*write_published(tmp_path / "published", options, arrays)), tmp_path / "ours")
    write_bilm_tf(load_weights(tmp_path / "ours"), tmp_path / "theirs")
    assert_same_arrays(read_hdf5(tmp_path / "theirs" / "weights.hdf5"), arrays)
    assert json.loads((tmp_path / "theirs" / "options.json").read_text()) == options
    assert sorted(path.name for path in (tmp_path / "theirs").iterdir()) == ["options.json", "weights.hdf5"]


@pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS.keys())
def test_written_models_run_in_the_reference(changes: dict[str, Any], tmp_path: Path) -> None:
    bilm = random_bilm(3, **changes)
    write_bilm_tf(bilm, tmp_path / "theirs")
    options = json.loads((tmp_path / "theirs" / "options.json").read_text())
    expected, _ = reference.run_sentence(options, read_hdf5(tmp_path / "theirs" / "weights.hdf5"), SENTENCE)
    with torch.no_grad():
        layers = embed_sentences(bilm, [SENTENCE], max_batch_items=100)[0]
    assert_allclose(layers.numpy(), expected, atol=1e-5)


def test_every_parameter_has_its_place_in_the_published_form() -> None:
    bilm = random_bilm(highways=2, depth=3)
    with torch.no_grad():
        for parameter in bilm.parameters():
            parameter.zero_()
        views = published_views(bilm)
        for view in views.values():
            view.fill_(1.0)
    assert all(bool((parameter == 1).all()) for parameter in bilm.parameters())
    assert sum(view.numel() for view in views.values()) == sum(parameter.numel() for parameter in bilm.parameters())


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_other_precisions_are_computed_in_single(paths: tuple[Path, Path], dtype: str) -> None:
    arrays = {key: array.astype(dtype) for key, array in read_hdf5(paths[1]).items()}
    write_hdf5(paths[1], arrays)
    bilm = read_bilm_tf(*paths)
    assert {parameter.dtype for parameter in bilm.parameters()} == {torch.float32}
    assert_array_equal(bilm.char_cnn.embedding.weight.detach().numpy(), arrays["char_embed"].astype("float32"))


def test_initial_state_is_left_out(tmp_path: Path) -> None:
    bilm = random_bilm()
    bilm.initial_hidden, bilm.initial_cell = torch.ones(2, 2, 6), torch.ones(2, 2, 10)
    write_bilm_tf(bilm, tmp_path / "theirs")
    again = read_bilm_tf(tmp_path / "theirs" / "options.json", tmp_path / "theirs" / "weights.hdf5")
    assert again.initial_hidden is None
    assert again.initial_cell is None
    assert again.state_dict().keys() == random_bilm().state_dict().keys()


def test_write_keeps_the_files_of_others(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(ValueError, match="has other files in it"):
        write_bilm_tf(random_bilm(), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


# Options


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
        read_bilm_tf(*paths)


def test_swapped_arguments_are_an_error(paths: tuple[Path, Path]) -> None:
    with pytest.raises(ValueError, match=r"weights.hdf5 are not JSON: .*Were the arguments swapped"):
        read_bilm_tf(*reversed(paths))


def test_missing_files_are_an_error(paths: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"There is no options file to read at .*nowhere"):
        read_bilm_tf(tmp_path / "nowhere", paths[1])
    with pytest.raises(ValueError, match=r"There is no weights file at .*nowhere"):
        read_bilm_tf(paths[0], tmp_path / "nowhere")


# Weights


@pytest.mark.parametrize("key", ["char_embed", "CNN/b_cnn_2", "CNN_high_0/W_carry", "CNN_proj/b_proj", f"{CELL}/W_P_0"])
def test_missing_key_is_an_error(paths: tuple[Path, Path], key: str) -> None:
    with h5py.File(paths[1], "a") as file:
        del file[key]
    with pytest.raises(ValueError, match=rf"weights.hdf5 do not fit .*: missing \['{key}'\]\. Are they"):
        read_bilm_tf(*paths)


@pytest.mark.parametrize("key", ["softmax/W", "CNN_high_1/b_carry", "RNN_0/RNN/MultiRNNCell/Cell2/LSTMCell/B"])
def test_unexpected_key_is_an_error(paths: tuple[Path, Path], key: str) -> None:
    with h5py.File(paths[1], "a") as file:
        file[key] = numpy.zeros(3)
    with pytest.raises(ValueError, match=rf": unexpected \['{key}'\]\. Are they"):
        read_bilm_tf(*paths)


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
        read_bilm_tf(*paths)


def test_empty_file_is_an_error(paths: tuple[Path, Path]) -> None:
    write_hdf5(paths[1], {})
    with pytest.raises(ValueError, match=r"missing \['CNN/W_cnn_0', .*Are they of the same model"):
        read_bilm_tf(*paths)


@pytest.mark.parametrize("value", [float("nan"), float("-inf")])
def test_weights_that_are_not_numbers_are_an_error(paths: tuple[Path, Path], value: float) -> None:
    with h5py.File(paths[1], "a") as file:
        file[f"{CELL}/W_0"][3, 4] = value
    with pytest.raises(ValueError, match=r"infinite or not a number, in \['lstm.layers.1.weight'\]"):
        read_bilm_tf(*paths)


@pytest.mark.parametrize("keep", [0, 100, 4_000, -1])
def test_truncated_weights_are_an_error(paths: tuple[Path, Path], keep: int) -> None:
    paths[1].write_bytes(paths[1].read_bytes()[:keep])
    with pytest.raises(ValueError, match=r"weights.hdf5 cannot be read or written as HDF5, or is incomplete"):
        read_bilm_tf(*paths)


def test_garbage_is_an_error(paths: tuple[Path, Path]) -> None:
    paths[1].write_bytes(bytes(range(256)) * 40)
    with pytest.raises(ValueError, match=r"weights.hdf5 cannot be read or written as HDF5, or is incomplete"):
        read_bilm_tf(*paths)


def test_damage_anywhere_is_an_error_that_names_the_file_or_leaves_numbers(paths: tuple[Path, Path]) -> None:
    whole = paths[1].read_bytes()
    messages = []
    for at in range(0, len(whole), 512):
        paths[1].write_bytes(whole[:at] + b"\xff" * 64 + whole[at + 64 :])
        try:
            read_bilm_tf(*paths)
        except ValueError as error:
            messages.append(str(error))
    assert messages
    assert all("weights.hdf5" in message for message in messages)


def test_without_h5py_there_is_advice(
    paths: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(ImportError, match="needs h5py: pip install h5py"):
        read_bilm_tf(*paths)
    with pytest.raises(ImportError, match="needs h5py: pip install h5py"):
        write_bilm_tf(random_bilm(), tmp_path / "theirs")
    assert not (tmp_path / "theirs").exists()


def test_reading_needs_no_seed(paths: tuple[Path, Path]) -> None:
    torch.manual_seed(0)
    one = read_bilm_tf(*paths)
    torch.manual_seed(1)
    other = read_bilm_tf(*paths)
    assert isinstance(one, BiLM)
    for name, tensor in one.state_dict().items():
        assert torch.equal(tensor, other.state_dict()[name]), name


@pytest.mark.parametrize("changes", [{"projection": 10**6}, {"cells": 10**12}, {"char_dim": 10**30}])
def test_published_options_of_absurd_size(tmp_path: Path, changes: dict[str, int]) -> None:
    paths = write_published(tmp_path, published_options(**changes), published_arrays(published_options()))
    with pytest.raises(ValueError, match="do not fit the options|from 1 to 1048576"):
        read_bilm_tf(*paths)


@pytest.mark.parametrize("dtype", [">f4", "S3", "c8"])
def test_published_arrays_of_odd_types(tmp_path: Path, dtype: str) -> None:
    arrays = published_arrays(published_options())
    arrays["CNN/b_cnn_0"] = arrays["CNN/b_cnn_0"].astype(dtype)
    paths = write_published(tmp_path, published_options(), arrays)
    if dtype == ">f4":
        assert_array_equal(read_bilm_tf(*paths).state_dict()["char_cnn.filters.0.bias"], arrays["CNN/b_cnn_0"])
    else:
        with pytest.raises(ValueError, match="CNN/b_cnn_0"):
            read_bilm_tf(*paths)
