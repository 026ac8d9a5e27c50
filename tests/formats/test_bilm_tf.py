"""The format of published models, against the reference and against stored outputs of real models."""

import json
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from spacy_elmo.bilm.characters import Mark, Word
from spacy_elmo.bilm.embed import embed_sentences, run_batch
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.bilm.weights import load_weights, save_weights
from spacy_elmo.formats import bilm_tf
from spacy_elmo.formats.bilm_tf import published_views

from .. import reference
from ..helpers import (
    assert_same_arrays,
    published_arrays,
    published_options,
    random_bilm,
    read_hdf5,
    write_hdf5,
    write_published,
)

SENTENCE = ["A", "naïve", "duck", ".", "<S>"]


@pytest.mark.parametrize(
    ("name", "sentences_file"),
    [("bilm_tf", "lm_embeddings_sentences.json"), ("allennlp", "sentences.json")],
)
def test_stored_outputs_are_reproduced_with_carried_state(shared: Path, name: str, sentences_file: str) -> None:
    directory = shared / "fixtures" / name
    bilm = bilm_tf.read([directory / "options.json", directory / "lm_weights.hdf5"])
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
    bilm = bilm_tf.read([directory / "options.json", directory / "lm_weights.hdf5"])
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
    save_weights(bilm_tf.read([directory / "options.json", directory / "lm_weights.hdf5"]), tmp_path / "ours")
    bilm_tf.write(load_weights(tmp_path / "ours"), tmp_path / "theirs")
    assert_same_arrays(read_hdf5(tmp_path / "theirs" / "weights.hdf5"), read_hdf5(directory / "lm_weights.hdf5"))
    options = json.loads((directory / "options.json").read_text(encoding="utf8"))
    assert json.loads((tmp_path / "theirs" / "options.json").read_text()) == options


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
    bilm_tf.write(random_bilm(8, **changes), tmp_path / "theirs")
    save_weights(bilm_tf.read(write_published(tmp_path / "published", options, arrays)), tmp_path / "ours")
    bilm_tf.write(load_weights(tmp_path / "ours"), tmp_path / "theirs")
    assert_same_arrays(read_hdf5(tmp_path / "theirs" / "weights.hdf5"), arrays)
    assert json.loads((tmp_path / "theirs" / "options.json").read_text()) == options
    assert sorted(path.name for path in (tmp_path / "theirs").iterdir()) == ["options.json", "weights.hdf5"]


@pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS.keys())
def test_written_models_run_in_the_reference(changes: dict[str, Any], tmp_path: Path) -> None:
    bilm = random_bilm(3, **changes)
    bilm_tf.write(bilm, tmp_path / "theirs")
    options = json.loads((tmp_path / "theirs" / "options.json").read_text())
    expected, _ = reference.run_sentence(options, read_hdf5(tmp_path / "theirs" / "weights.hdf5"), SENTENCE)
    with torch.no_grad():
        layers = embed_sentences(bilm, [SENTENCE], max_batch_items=100)[0]
    assert_allclose(layers.numpy(), expected, atol=1e-5)


def test_every_parameter_has_a_published_array() -> None:
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
    bilm = bilm_tf.read(paths)
    assert {parameter.dtype for parameter in bilm.parameters()} == {torch.float32}
    assert_array_equal(bilm.char_cnn.embedding.weight.detach().numpy(), arrays["char_embed"].astype("float32"))


def test_initial_state_is_left_out(tmp_path: Path) -> None:
    bilm = random_bilm()
    bilm.initial_hidden, bilm.initial_cell = torch.ones(2, 2, 6), torch.ones(2, 2, 10)
    bilm_tf.write(bilm, tmp_path / "theirs")
    again = bilm_tf.read([tmp_path / "theirs" / "options.json", tmp_path / "theirs" / "weights.hdf5"])
    assert again.initial_hidden is None
    assert again.initial_cell is None
    assert again.state_dict().keys() == random_bilm().state_dict().keys()


def test_write_refuses_unrelated_files(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(ValueError, match="has other files in it"):
        bilm_tf.write(random_bilm(), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_reading_needs_no_seed(paths: tuple[Path, Path]) -> None:
    torch.manual_seed(0)
    one = bilm_tf.read(paths)
    torch.manual_seed(1)
    other = bilm_tf.read(paths)
    assert isinstance(one, BiLM)
    for name, tensor in one.state_dict().items():
        assert torch.equal(tensor, other.state_dict()[name]), name
