"""Checkpoints: what goes in comes out, and older and newer formats."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import nn

from spacy_elmo.pretraining import checkpoint as checkpoint_module
from spacy_elmo.pretraining.checkpoint import Checkpoint

from .checkpoints import make_checkpoint, make_tensors
from .runs import assert_same_tensors, read_files


def change_header(path: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Change the metadata of a checkpoint on disk."""
    tensors = Checkpoint.from_disk(path).tensors
    with safe_open(path, framework="pt") as file:
        metadata = json.loads(file.metadata()["run"])
    change(metadata)
    save_file(tensors, path, metadata={"run": json.dumps(metadata)})


def test_checkpoint_roundtrip(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    make_checkpoint(make_tensors(1), n_steps_done=1).to_disk(path)
    make_checkpoint().to_disk(path)
    read = Checkpoint.from_disk(path)
    assert_same_tensors(read.tensors, make_tensors())
    assert read == make_checkpoint(read.tensors)
    assert read.progress.best_perplexity == float("inf")
    assert list(read_files(tmp_path)) == ["checkpoint.safetensors"]


def test_checkpoint_of_tensors_that_are_views_or_learn(tmp_path: Path) -> None:
    parameter = nn.Parameter(torch.arange(6.0).view(2, 3))
    tensors = {"weight": parameter, "turned": parameter.T, "row": torch.tensor([[7.0]]).expand(2, 3)}
    make_checkpoint(tensors).to_disk(tmp_path / "a")
    read = Checkpoint.from_disk(tmp_path / "a").tensors
    assert_same_tensors(read, {name: tensor.detach() for name, tensor in tensors.items()})
    assert not any(tensor.requires_grad for tensor in read.values())


def test_checkpoint_has_the_usual_permissions(tmp_path: Path) -> None:
    make_checkpoint().to_disk(tmp_path / "checkpoint")
    (tmp_path / "usual").touch()
    assert (tmp_path / "checkpoint").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_checkpoint_of_a_newer_format(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    make_checkpoint().to_disk(path)
    change_header(path, lambda metadata: metadata.update(format_version=3, spacy_elmo_version="7.8.9", more="fields"))
    message = (
        r"checkpoint\.safetensors was written by a newer version of spacy-elmo: its format version is 3, .* reads versions up to "
        r"2\. Install spacy-elmo 7\.8\.9 or later\.$"
    )
    with pytest.raises(ValueError, match=message):
        Checkpoint.from_disk(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda metadata: metadata.pop("n_steps_done"), "n_steps_done"),
        (lambda metadata: metadata.update(speed=3), "speed"),
        (lambda metadata: metadata["progress"].update(speed=3), "speed"),
        (lambda metadata: metadata["identity"].pop("dev_sha256"), "dev_sha256"),
        (lambda metadata: metadata["bilm"].pop("cells"), r"missing \['cells'\]"),
        (lambda metadata: metadata.update(format_version="1"), "format_version must be a whole number, got '1'"),
    ],
)
def test_checkpoint_with_other_fields(tmp_path: Path, change: Callable[[dict[str, Any]], Any], message: str) -> None:
    path = tmp_path / "checkpoint.safetensors"
    make_checkpoint().to_disk(path)
    change_header(path, change)
    with pytest.raises(ValueError, match=rf"is not a checkpoint of a run, or a damaged one: .*{message}"):
        Checkpoint.from_disk(path)


def test_fields_with_a_default_may_be_missing(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    make_checkpoint().to_disk(path)
    change_header(path, lambda metadata: metadata["progress"].pop("initial_perplexity"))
    assert Checkpoint.from_disk(path).progress.initial_perplexity is None


def test_missing_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError,
        match=r"There is no checkpoint .*nowhere to resume from\. Start without --resume\. Add --overwrite",
    ):
        Checkpoint.from_disk(tmp_path / "nowhere")


@pytest.mark.parametrize("kept", [0, 4, 30, 0.5, -1])
def test_truncated_checkpoint(tmp_path: Path, kept: float) -> None:
    path = tmp_path / "checkpoint.safetensors"
    make_checkpoint().to_disk(path)
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * kept) if isinstance(kept, float) else kept])
    with pytest.raises(ValueError, match=r"checkpoint\.safetensors is not a checkpoint of a run, or a damaged one"):
        Checkpoint.from_disk(path)


def test_foreign_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    for metadata in (None, {"format": "pt"}, {"run": "{"}, {"run": "[]"}, {"facts": "{"}, {"facts": "{}"}):
        save_file(make_tensors(), path, metadata=metadata)
        with pytest.raises(ValueError, match="is not a checkpoint of a run"):
            Checkpoint.from_disk(path)
    path.write_bytes(b"this is a text, and a long one, but no checkpoint")
    with pytest.raises(ValueError, match="is not a checkpoint of a run"):
        Checkpoint.from_disk(path)
    (tmp_path / "directory").mkdir()
    with pytest.raises(ValueError, match="is not a checkpoint of a run"):
        Checkpoint.from_disk(tmp_path / "directory")


@pytest.mark.parametrize("is_first", [True, False])
def test_checkpoint_that_cannot_be_written(tmp_path: Path, is_first: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "checkpoint.safetensors"
    if not is_first:
        make_checkpoint().to_disk(path)
    before = read_files(tmp_path)

    def fill_the_disk(tensors: Any, draft: Path, **_: Any) -> None:
        draft.write_bytes(b"half")
        raise OSError("no space left on device")

    monkeypatch.setattr(checkpoint_module, "save_file", fill_the_disk)
    advice = r"There is no earlier checkpoint\." if is_first else r"The checkpoint before it is unchanged\."
    message = (
        rf"checkpoint\.safetensors could not be written: no space left on device\. Is the disk full, .*\? {advice}$"
    )
    with pytest.raises(OSError, match=message):
        make_checkpoint(make_tensors(1)).to_disk(path)
    assert read_files(tmp_path) == before


def test_checkpoint_that_cannot_be_renamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "checkpoint.safetensors"
    make_checkpoint().to_disk(path)
    before = read_files(tmp_path)

    def fail(draft: Path, target: Path) -> None:
        raise OSError("cannot rename")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", fail)
        with pytest.raises(
            OSError, match=r"could not be written: cannot rename\. .* The checkpoint before it is unchanged\."
        ):
            make_checkpoint(make_tensors(1)).to_disk(path)
    assert read_files(tmp_path) == before
    assert_same_tensors(Checkpoint.from_disk(path).tensors, make_tensors())
