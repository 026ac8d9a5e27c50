"""The table of formats: every format can be detected, read and written."""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import pytest
import torch

from spacy_elmo import formats
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.formats import FORMATS, Format, detect_format, get_format

from ..helpers import random_bilm

# Those of the formats that can be written.
PATHS = {"spacy-elmo": ["."], "bilm-tf": ["options.json", "weights.hdf5"]}


@pytest.mark.parametrize("name", PATHS)
def test_written_weights_are_detected_and_read(name: str, tmp_path: Path) -> None:
    bilm = random_bilm(3)
    get_format(name, to_write=True).write(bilm, tmp_path / "weights")
    paths = [tmp_path / "weights" / path for path in PATHS[name]]
    found = detect_format(paths)
    assert found is FORMATS[name]
    tensors = found.read(paths).state_dict()
    assert tensors.keys() == bilm.state_dict().keys()
    for key, tensor in bilm.state_dict().items():
        assert torch.equal(tensors[key], tensor), key


@pytest.mark.parametrize("name", PATHS)
def test_initial_states_and_languages_are_stored_where_the_table_says(name: str, tmp_path: Path) -> None:
    bilm = random_bilm(3, lang="de")
    bilm.initial_hidden, bilm.initial_cell = torch.ones(2, 2, 6), torch.ones(2, 2, 10)
    FORMATS[name].write(bilm, tmp_path / "weights")
    again = FORMATS[name].read([tmp_path / "weights" / path for path in PATHS[name]])
    assert (again.initial_state is not None) == FORMATS[name].has_initial_state
    assert again.config.lang == ("de" if FORMATS[name].has_lang else None)


@pytest.mark.parametrize("found", FORMATS.values(), ids=FORMATS.keys())
def test_modules_have_the_functions_of_the_table(found: Format) -> None:
    module = import_module(f"spacy_elmo.formats.{found.module}")
    assert callable(module.recognizes)
    assert callable(module.read)
    assert hasattr(module, "write") == found.can_write


def test_names_that_are_not_supported(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        ValueError, match=r"Unsupported format to read: 'onnx'. Supported: elmoformanylangs, spacy-elmo, bilm-tf\."
    ):
        get_format("onnx")
    monkeypatch.setitem(formats.FORMATS, "read-only", Format("bilm_tf", "two files", can_write=False))
    assert get_format("read-only").files == "two files"
    with pytest.raises(ValueError, match=r"Unsupported format to write: 'read-only'. Supported: spacy-elmo, bilm-tf\."):
        get_format("read-only", to_write=True)


def test_paths_that_no_format_fits(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"There is no file or directory at .*nothing \(seen from "):
        detect_format([tmp_path, tmp_path / "nothing"])
    supported = r"spacy-elmo \(a directory with config.json\); bilm-tf \(options.json and weights.hdf5\); or a ZIP file"
    with pytest.raises(
        ValueError, match=rf"No supported format fits .*\. Supported: elmoformanylangs \(.*\); {supported}"
    ):
        detect_format([tmp_path])


@pytest.mark.parametrize(
    ("name", "n_paths", "message"), [("spacy-elmo", 2, "one weights"), ("bilm-tf", 1, "two files")]
)
def test_wrong_numbers_of_paths(name: str, n_paths: int, message: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match=rf"Expected {message}.*, got {n_paths} paths"):
        FORMATS[name].read([tmp_path / "file"] * n_paths)


def test_a_directory_without_published_files(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"Expected one file of options .*in .*, got neither\."):
        FORMATS["bilm-tf"].read([tmp_path])


def test_a_new_format_is_one_line_and_one_module(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Module:
        @staticmethod
        def recognizes(paths: Sequence[Path]) -> bool:
            return paths[0].suffix == ".zip"

        @staticmethod
        def read(paths: Sequence[Path]) -> BiLM:
            return random_bilm(5)

    monkeypatch.setitem(formats.FORMATS, "zipped", Format("zipped", "a ZIP file", can_write=False))
    monkeypatch.setitem(__import__("sys").modules, "spacy_elmo.formats.zipped", Module)
    (tmp_path / "model.zip").touch()
    found = detect_format([tmp_path / "model.zip"])
    assert found is FORMATS["zipped"]
    assert torch.equal(found.read([tmp_path / "model.zip"]).lstm.layers[0].bias, random_bilm(5).lstm.layers[0].bias)


def test_every_format_that_can_be_written_is_tested() -> None:
    assert PATHS.keys() == {name for name, found in FORMATS.items() if found.can_write}
