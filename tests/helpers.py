"""Small random models for the tests."""

import json
from pathlib import Path
from typing import Any

import h5py
import numpy
import spacy
from numpy.testing import assert_array_equal
from numpy.typing import NDArray
from spacy.language import Language

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM

# Clips that are small enough to bite.
SIZES: dict[str, Any] = {
    "char_dim": 4,
    "filters": [[1, 4], [2, 6], [3, 8]],
    "highways": 1,
    "activation": "relu",
    "max_chars": 20,
    "projection": 6,
    "cells": 10,
    "depth": 2,
    "cell_clip": 0.5,
    "projection_clip": 0.3,
    "skip_connections": True,
}

Arrays = dict[str, NDArray[Any]]


def small_config(**changes: Any) -> BiLMConfig:
    """Make the sizes of a model that takes milliseconds to run."""
    return BiLMConfig(**{**SIZES, **changes})


def random_bilm(seed: int = 0, **changes: Any) -> BiLM:
    """Make a small model with random weights."""
    return BiLM(small_config(**changes)).initialize(seed)


def make_elmo_nlp(weights: str, **config: Any) -> Language:
    """Make a pipeline of `elmo` alone."""
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"weights": weights, **config})
    return nlp


def published_options(**changes: Any) -> dict[str, Any]:
    """Write the small sizes down as bilm-tf does."""
    sizes = {**SIZES, **changes}
    return {
        "lstm": {
            "cell_clip": sizes["cell_clip"],
            "use_skip_connections": sizes["skip_connections"],
            "n_layers": sizes["depth"],
            "proj_clip": sizes["projection_clip"],
            "projection_dim": sizes["projection"],
            "dim": sizes["cells"],
        },
        "char_cnn": {
            "embedding": {"dim": sizes["char_dim"]},
            "filters": sizes["filters"],
            "n_highway": sizes["highways"],
            "n_characters": 262,
            "max_characters_per_token": sizes["max_chars"],
            "activation": sizes["activation"],
        },
    }


def published_arrays(options: dict[str, Any], seed: int = 0) -> Arrays:
    """Make random weights under the names and in the shapes that bilm-tf publishes."""
    lstm, cnn = options["lstm"], options["char_cnn"]
    char_dim, projection, cells = cnn["embedding"]["dim"], lstm["projection_dim"], lstm["dim"]
    n_filters = sum(count for _, count in cnn["filters"])
    shapes: dict[str, tuple[int, ...]] = {"char_embed": (261, char_dim)}
    for i, (width, count) in enumerate(cnn["filters"]):
        shapes[f"CNN/W_cnn_{i}"] = (1, width, char_dim, count)
        shapes[f"CNN/b_cnn_{i}"] = (count,)
    for i in range(cnn.get("n_highway", 0)):
        for name in ("carry", "transform"):
            shapes[f"CNN_high_{i}/W_{name}"] = (n_filters, n_filters)
            shapes[f"CNN_high_{i}/b_{name}"] = (n_filters,)
    if n_filters != projection:
        shapes["CNN_proj/W_proj"] = (n_filters, projection)
        shapes["CNN_proj/b_proj"] = (projection,)
    for direction in (0, 1):
        for i in range(lstm["n_layers"]):
            cell = f"RNN_{direction}/RNN/MultiRNNCell/Cell{i}/LSTMCell"
            shapes[f"{cell}/W_0"] = (2 * projection, 4 * cells)
            shapes[f"{cell}/B"] = (4 * cells,)
            if cells != projection:
                shapes[f"{cell}/W_P_0"] = (cells, projection)
    random = numpy.random.RandomState(seed)
    return {key: (0.4 * random.standard_normal(shape)).astype("float32") for key, shape in shapes.items()}


def write_hdf5(path: Path, arrays: Arrays) -> None:
    """Write arrays into an HDF5 file, one dataset for each."""
    with h5py.File(path, "w") as file:
        for key, array in arrays.items():
            file.create_dataset(key, data=array)


def read_hdf5(path: Path) -> Arrays:
    """Read every dataset of an HDF5 file, in whatever groups they are."""
    arrays: Arrays = {}

    def visit(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset):
            arrays[name] = item[...]

    with h5py.File(path, "r") as file:
        file.visititems(visit)
    return arrays


def assert_same_arrays(found: Arrays, expected: Arrays) -> None:
    """Compare the datasets of two files to the last bit."""
    assert found.keys() == expected.keys()
    for key, array in expected.items():
        assert found[key].dtype == array.dtype == numpy.float32
        assert_array_equal(found[key], array, err_msg=key)


def write_published(directory: Path, options: dict[str, Any], arrays: Arrays) -> tuple[Path, Path]:
    """Write a published model and say where its options and its weights are."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "options.json").write_text(json.dumps(options), encoding="utf8")
    write_hdf5(directory / "weights.hdf5", arrays)
    return directory / "options.json", directory / "weights.hdf5"
