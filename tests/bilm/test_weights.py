"""Weights directories and bytes."""

import json
import os
import pickle
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from spacy_elmo.bilm.embed import embed_sentences
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.bilm.weights import from_bytes, load_config, load_weights, save_weights, to_bytes
from spacy_elmo.models import bundled_models, find_weights

from ..helpers import SIZES, random_bilm, small_config
from ..traps import Trap

SENTENCE = ["A", "naïve", "duck", "."]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A good weights directory, for a test to break."""
    save_weights(random_bilm(), tmp_path / "weights")
    return tmp_path / "weights"


def run(bilm: BiLM) -> Tensor:
    with torch.no_grad():
        return embed_sentences(bilm, [SENTENCE], max_batch_items=100)[0]


def with_initial_state(bilm: BiLM) -> BiLM:
    bilm.initial_hidden = torch.linspace(-1, 1, 24).reshape(2, 2, 6)
    bilm.initial_cell = torch.linspace(1, -1, 40).reshape(2, 2, 10)
    return bilm


def change_tensors(directory: Path, change: Callable[[dict[str, Tensor]], Any]) -> None:
    """Change the tensors on disk, in place."""
    tensors = load_file(directory / "model.safetensors")
    change(tensors)
    save_file(tensors, directory / "model.safetensors")


def through_disk(bilm: BiLM, tmp_path: Path) -> BiLM:
    # Over the weights of another model, so that a writer that does nothing fails.
    save_weights(random_bilm(1), tmp_path / "weights")
    save_weights(bilm, tmp_path / "weights")
    return load_weights(tmp_path / "weights")


def through_bytes(bilm: BiLM, tmp_path: Path) -> BiLM:
    return from_bytes(to_bytes(bilm))


# Round trips


@pytest.mark.parametrize("trip", [through_disk, through_bytes])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"depth": 1, "highways": 0, "skip_connections": False},
        {"depth": 3, "highways": 2, "activation": "tanh", "cell_clip": None, "projection_clip": None},
        {"cells": 18, "projection": 18},
    ],
)
def test_round_trip_keeps_everything(
    trip: Callable[[BiLM, Path], BiLM], changes: dict[str, Any], tmp_path: Path
) -> None:
    bilm = random_bilm(3, **changes)
    assert not torch.allclose(run(random_bilm(1, **changes)), run(bilm))
    loaded = trip(bilm, tmp_path)
    assert loaded.config == bilm.config
    assert loaded.state_dict().keys() == bilm.state_dict().keys()
    for name, tensor in bilm.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], tensor), name
    assert torch.equal(run(loaded), run(bilm))
    assert loaded.initial_hidden is None
    assert all(parameter.requires_grad for parameter in loaded.parameters())


@pytest.mark.parametrize("trip", [through_disk, through_bytes])
def test_round_trip_keeps_the_initial_state(trip: Callable[[BiLM, Path], BiLM], tmp_path: Path) -> None:
    bilm = with_initial_state(random_bilm(3))
    loaded = trip(bilm, tmp_path)
    assert loaded.initial_hidden is not None
    assert loaded.initial_cell is not None
    assert torch.equal(loaded.initial_hidden, torch.linspace(-1, 1, 24).reshape(2, 2, 6))
    assert torch.equal(loaded.initial_cell, torch.linspace(1, -1, 40).reshape(2, 2, 10))
    assert torch.equal(run(loaded), run(bilm))
    assert not torch.allclose(run(loaded), run(random_bilm(3)))


def test_files_are_what_the_readme_promises(directory: Path) -> None:
    assert sorted(path.name for path in directory.iterdir()) == ["config.json", "model.safetensors"]
    config = json.loads((directory / "config.json").read_text())
    assert config == {"format_version": 1, "spacy_elmo_version": version("spacy-elmo"), **SIZES}
    assert load_config(directory) == small_config()
    assert load_file(directory / "model.safetensors").keys() == dict(random_bilm().named_parameters()).keys()


def test_loaded_weights_do_not_depend_on_the_file(directory: Path) -> None:
    bilm = load_weights(directory)
    before = run(bilm)
    save_weights(random_bilm(1), directory)
    assert torch.equal(run(bilm), before)
    assert not torch.allclose(run(load_weights(directory)), before)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_precisions_on_disk_are_computed_in_single(directory: Path, dtype: torch.dtype) -> None:
    bilm = with_initial_state(random_bilm())
    save_weights(bilm, directory)
    change_tensors(directory, lambda tensors: tensors.update({name: x.to(dtype) for name, x in tensors.items()}))
    loaded = load_weights(directory)
    assert {tensor.dtype for tensor in loaded.state_dict().values()} == {torch.float32}
    for name, tensor in loaded.state_dict().items():
        assert torch.equal(tensor, bilm.state_dict()[name].to(dtype).float()), name
    rounded = run(bilm.to(dtype).float())
    assert torch.equal(run(loaded), rounded)
    assert rounded.dtype == torch.float32


@pytest.mark.skipif(os.name != "posix", reason="permissions are those of POSIX")
def test_saved_files_are_readable_by_other_users(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        save_weights(random_bilm(), tmp_path / "weights")
    finally:
        os.umask(before)
    for path in (tmp_path / "weights").iterdir():
        assert path.stat().st_mode & 0o777 == 0o644


def test_save_weights_refuses_unrelated_files(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(ValueError, match="has other files in it, such as 'thesis.txt'"):
        save_weights(random_bilm(), tmp_path)
    assert (tmp_path / "thesis.txt").read_text() == "years of work"


# Strict in both directions


def test_missing_tensor_is_an_error(directory: Path) -> None:
    change_tensors(directory, lambda tensors: tensors.pop("lstm.layers.1.bias"))
    with pytest.raises(ValueError, match=r": missing \['lstm.layers.1.bias'\]\. Are they"):
        load_weights(directory)


def test_unexpected_tensor_is_an_error(directory: Path) -> None:
    change_tensors(directory, lambda tensors: tensors.update(softmax=torch.zeros(2)))
    with pytest.raises(ValueError, match=r": unexpected \['softmax'\]\. Are they"):
        load_weights(directory)


def test_another_shape_is_an_error(directory: Path) -> None:
    change_tensors(directory, lambda tensors: tensors.update({"lstm.layers.0.bias": torch.zeros(40, 2)}))
    with pytest.raises(ValueError, match=r"\['lstm.layers.0.bias is \(40, 2\), expected \(2, 40\)'\]"):
        load_weights(directory)


def test_weights_of_another_model_are_an_error(directory: Path, tmp_path: Path) -> None:
    save_weights(random_bilm(depth=3), tmp_path / "other")
    (directory / "model.safetensors").write_bytes((tmp_path / "other" / "model.safetensors").read_bytes())
    with pytest.raises(ValueError, match=r"unexpected \['lstm.layers.2.bias', .*Are they of the same model"):
        load_weights(directory)


@pytest.mark.parametrize("name", ["initial_hidden", "initial_cell"])
def test_half_an_initial_state_is_an_error(directory: Path, name: str) -> None:
    save_weights(with_initial_state(random_bilm()), directory)
    change_tensors(directory, lambda tensors: tensors.pop(name))
    with pytest.raises(ValueError, match=rf"missing \['{name}'\]"):
        load_weights(directory)


def test_initial_state_of_another_shape_is_an_error(directory: Path) -> None:
    save_weights(with_initial_state(random_bilm()), directory)
    change_tensors(directory, lambda tensors: tensors.update(initial_hidden=torch.zeros(2, 2, 10)))
    with pytest.raises(ValueError, match=r"\['initial_hidden is \(2, 2, 10\), expected \(2, 2, 6\)'\]"):
        load_weights(directory)


def test_initial_state_of_another_type_is_an_error(directory: Path) -> None:
    save_weights(with_initial_state(random_bilm()), directory)
    change_tensors(directory, lambda tensors: tensors.update(initial_hidden=tensors["initial_hidden"].to(torch.int8)))
    with pytest.raises(ValueError, match=r"of another type than expected, in \['initial_hidden'\]"):
        load_weights(directory)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("name", ["char_cnn.embedding.weight", "lstm.layers.1.projection", "initial_cell"])
def test_weights_that_are_not_numbers_are_an_error(directory: Path, name: str, value: float) -> None:
    save_weights(with_initial_state(random_bilm()), directory)
    change_tensors(directory, lambda tensors: tensors[name].view(-1)[-1:].fill_(value))
    with pytest.raises(ValueError, match=rf"values that are infinite or not a number, in \['{name}'\]"):
        load_weights(directory)


def test_bytes_are_checked_like_files() -> None:
    bilm = random_bilm()
    other = BiLM(small_config(depth=1)).initialize(0)
    bilm.config = other.config
    with pytest.raises(
        ValueError, match=r"The weights in the serialized biLM do not fit .*unexpected \['lstm.layers.1"
    ):
        from_bytes(to_bytes(bilm))
    with torch.no_grad():
        dict(other.named_parameters())["lstm.layers.0.bias"][0, 0] = float("nan")
    with pytest.raises(
        ValueError, match=r"The weights in the serialized biLM have values .* in \['lstm.layers.0.bias'\]"
    ):
        from_bytes(to_bytes(other))


# Broken files


@pytest.mark.parametrize("keep", [0, 4, 100, -1])
def test_truncated_weights_are_an_error(directory: Path, keep: int) -> None:
    path = directory / "model.safetensors"
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(ValueError, match=r"model.safetensors is not a safetensors file, or an incomplete one"):
        load_weights(directory)


def test_garbage_is_an_error(directory: Path) -> None:
    (directory / "model.safetensors").write_bytes(bytes(range(256)) * 40)
    with pytest.raises(ValueError, match=r"model.safetensors is not a safetensors file, or an incomplete one"):
        load_weights(directory)


def test_pickles_are_not_opened(directory: Path, tmp_path: Path) -> None:
    trap = {"char_cnn.embedding.weight": Trap(tmp_path / "sprung")}
    torch.save(trap, directory / "model.safetensors")
    with pytest.raises(ValueError, match=r"model.safetensors is not a safetensors file"):
        load_weights(directory)
    with pytest.raises(ValueError, match="The data is not the serialized biLM"):
        from_bytes((directory / "model.safetensors").read_bytes())
    (directory / "model.safetensors").write_bytes(pickle.dumps(trap))
    with pytest.raises(ValueError, match=r"model.safetensors is not a safetensors file"):
        load_weights(directory)
    with pytest.raises(ValueError, match="The data is not the serialized biLM"):
        from_bytes(pickle.dumps(trap))
    assert not (tmp_path / "sprung").exists()
    pickle.loads(pickle.dumps(trap))
    assert (tmp_path / "sprung").exists()  # the trap works


@pytest.mark.parametrize("keep", [0, 1, 50, 1_000, -1])
def test_truncated_bytes_are_an_error(keep: int) -> None:
    with pytest.raises(ValueError, match="The data is not the serialized biLM, or a damaged one"):
        from_bytes(to_bytes(random_bilm())[:keep])


def test_missing_weights_file_is_an_error(directory: Path) -> None:
    (directory / "model.safetensors").unlink()
    with pytest.raises(ValueError, match=r"has a config.json but no model.safetensors: was it copied whole"):
        load_weights(directory)


def test_no_directory_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"There is no weights directory at .*nowhere\.$"):
        load_weights(tmp_path / "nowhere")


def test_a_file_is_an_error(directory: Path) -> None:
    with pytest.raises(ValueError, match=r"model.safetensors is a file. Give the directory that holds config.json"):
        load_weights(directory / "model.safetensors")


def test_a_directory_of_something_else_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").touch()
    with pytest.raises(ValueError, match=r"has no config.json, so it is not a weights directory\.$"):
        load_config(tmp_path)


@pytest.mark.parametrize("name", ["elmo_weights.hdf5", "weights.h5"])
def test_published_weights_are_explained_with_the_convert_command(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    (tmp_path / "options.json").touch()
    message = rf"For {name}, first run: python -m spacy elmo convert OPTIONS.json {name} OUT"
    with pytest.raises(ValueError, match=message):
        load_weights(tmp_path)


# The models that come with the package


def test_bundled_models_load() -> None:
    assert bundled_models() == ["en_elmo_sm"]
    for name in bundled_models():
        bilm = load_weights(find_weights(name))
        assert run(bilm).shape == (bilm.config.depth + 1, len(SENTENCE), bilm.config.width)


def test_find_weights_accepts_names_and_directories(tmp_path: Path) -> None:
    assert find_weights(None) == find_weights("en_elmo_sm")
    assert find_weights("en_elmo_sm").name == "en_elmo_sm"
    assert find_weights(str(tmp_path)) == tmp_path
    assert find_weights("nowhere") == Path("nowhere")


def test_a_directory_named_like_a_bundled_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    bundled = find_weights("en_elmo_sm")
    (tmp_path / "en_elmo_sm").mkdir()
    with pytest.raises(ValueError, match=r"'en_elmo_sm' is a bundled model, and a directory here as well\. Write "):
        find_weights("en_elmo_sm")
    assert find_weights(None) == bundled
    assert find_weights("./en_elmo_sm") == Path("en_elmo_sm")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("model-best/config.json", r"It is a pretraining run\. Did you mean .*model-best\?"),
        ("meta.json", "It is a spaCy pipeline: load it with spacy.load"),
    ],
)
def test_directories_that_are_often_mistaken_for_weights(tmp_path: Path, name: str, hint: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("{}")
    with pytest.raises(ValueError, match=f"has no config.json, so it is not a weights directory. {hint}"):
        load_weights(tmp_path)
