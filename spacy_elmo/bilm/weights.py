"""A weights directory (config.json and model.safetensors) to a biLM, and back. Nothing is ever unpickled."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import srsly
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load as parse_tensors
from safetensors.torch import save as format_tensors
from torch import Tensor, nn

from ..files.atomic import write_directory
from .config import BiLMConfig
from .model import BiLM

CONFIG, TENSORS = "config.json", "model.safetensors"
INITIAL_STATE = {"initial_hidden", "initial_cell"}

Shape = tuple[int, ...]


def save_weights(bilm: BiLM, directory: Path) -> None:
    """Write a weights directory, all of it or nothing.

    bilm (BiLM): The model.
    directory (Path): The directory; one that is there is replaced only if it holds weights and nothing else.
    """
    with write_directory(directory, files={CONFIG, TENSORS}) as draft:
        write_weights(bilm, draft)


def write_weights(bilm: BiLM, draft: Path, *, dtype: torch.dtype = torch.float32) -> None:
    """Write the files of a weights directory.

    bilm (BiLM): The model.
    draft (Path): Where to write them.
    dtype (torch.dtype): The precision on disk; half of it halves the file, and values change by one part in two thousand.
    """
    (draft / CONFIG).write_text(json.dumps(bilm.config.to_dict(), indent=2) + "\n", encoding="utf8")
    # Not save_file, which makes files that only their owner can read.
    (draft / TENSORS).write_bytes(format_tensors({name: tensor.to(dtype) for name, tensor in _tensors(bilm).items()}))


def load_config(directory: Path) -> BiLMConfig:
    """Read only the sizes of a weights directory.

    directory (Path): The directory.
    RETURNS (BiLMConfig): The sizes.
    """
    path = directory / CONFIG
    if not path.is_file():
        raise ValueError(_explain_missing(directory))
    try:
        return BiLMConfig.from_dict(json.loads(path.read_text(encoding="utf8")))
    except (ValueError, RecursionError) as error:  # neither UTF-8 nor JSON, or sizes that make no sense
        raise ValueError(f"{path} does not describe a biLM: {error}") from None


def load_weights(directory: Path, device: torch.device | str = "cpu") -> BiLM:
    """Read a weights directory.

    directory (Path): The directory.
    device (torch.device | str): Where the model goes.
    RETURNS (BiLM): The model, in float32 whatever the precision on disk.
    """
    config = load_config(directory)
    path = directory / TENSORS
    if not path.is_file():
        raise ValueError(f"The weights directory {directory} has a {CONFIG} but no {TENSORS}: was it copied whole?")
    try:
        with safe_open(path, framework="pt") as file:
            # The shapes are checked from the header, before anything is allocated for them.
            _check_shapes({key: tuple(file.get_slice(key).get_shape()) for key in file.keys()}, config, path)  # noqa: SIM118
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise ValueError(f"{path} is not a safetensors file, or an incomplete one: {error}") from None
    return _assemble(config, tensors, path).to(device)


def to_bytes(bilm: BiLM) -> bytes:
    """RETURNS (bytes): What a weights directory holds, in one string."""
    data: bytes = srsly.msgpack_dumps({"config": bilm.config.to_dict(), "tensors": format_tensors(_tensors(bilm))})
    return data


def from_bytes(data: bytes, device: torch.device | str = "cpu") -> BiLM:
    """Read what `to_bytes` wrote.

    data (bytes): The string.
    device (torch.device | str): Where the model goes.
    RETURNS (BiLM): The model.
    """
    where = "the serialized biLM"
    try:
        message: dict[str, Any] = srsly.msgpack_loads(data)
        config, tensors = BiLMConfig.from_dict(message["config"]), parse_tensors(message["tensors"])
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"The data are not {where}, or incomplete: {error}") from None
    _check_shapes({key: tuple(tensor.shape) for key, tensor in tensors.items()}, config, where)
    return _assemble(config, tensors, where).to(device)


def check_finite(module: nn.Module, where: Path | str) -> None:
    """Refuse weights that are not numbers: they would turn every vector into NaN.

    module (nn.Module): The model, or a part of it.
    where (Path | str): Where it came from, for the error.
    """
    broken = [name for name, tensor in module.state_dict().items() if not torch.isfinite(tensor).all()]
    if broken:
        raise ValueError(
            f"The weights in {where} have values that are infinite or not a number, in {broken}. "
            f"Whatever made them went wrong: take an earlier state of them."
        )


def _tensors(bilm: BiLM) -> dict[str, Tensor]:
    return {name: tensor.detach().cpu().contiguous() for name, tensor in bilm.state_dict().items()}


def _assemble(config: BiLMConfig, tensors: Mapping[str, Tensor], where: Path | str) -> BiLM:
    """Make a model around tensors whose shapes were checked."""
    with torch.device("meta"):  # allocates nothing: the tensors take the parameters' places
        bilm = BiLM(config)
    for name in INITIAL_STATE & tensors.keys():
        setattr(bilm, name, tensors[name])
    bilm.load_state_dict({name: tensor.float() for name, tensor in tensors.items()}, assign=True)
    check_finite(bilm, where)
    return bilm


def check_fit(found: Mapping[str, Shape], expected: Mapping[str, Shape], where: Path | str, source: str) -> None:
    """Refuse tensors that are not just those of a model.

    found, expected (Mapping): Shapes by name.
    where (Path | str): Where the tensors were found, for the error.
    source (str): What the others were expected from, for the error.
    """
    problems = {
        "missing": sorted(expected.keys() - found.keys()),
        "unexpected": sorted(found.keys() - expected.keys()),
        "of another shape": [
            f"{name} is {found[name]}, expected {shape}"
            for name, shape in expected.items()
            if name in found and found[name] != shape
        ],
    }
    if any(problems.values()):
        listed = "; ".join(f"{kind} {names}" for kind, names in problems.items() if names)
        raise ValueError(f"The weights in {where} do not fit {source}: {listed}. Are they of the same model?")


def _check_shapes(found: Mapping[str, Shape], config: BiLMConfig, where: Path | str) -> None:
    expected = _expected_shapes(config)
    if INITIAL_STATE.isdisjoint(found):
        expected = {name: shape for name, shape in expected.items() if name not in INITIAL_STATE}
    check_fit(found, expected, where, f"their config ({config})")


def _expected_shapes(config: BiLMConfig) -> dict[str, Shape]:
    with torch.device("meta"):
        bilm = BiLM(config)
    shapes = {name: tuple(tensor.shape) for name, tensor in bilm.state_dict().items()}
    shapes["initial_hidden"] = (config.depth, 2, config.projection)
    shapes["initial_cell"] = (config.depth, 2, config.cells)
    return shapes


def _explain_missing(directory: Path) -> str:
    if not directory.exists():
        return (
            f"There is no weights directory at {directory} (seen from {Path.cwd()}). Give one that "
            f"`python -m spacy elmo convert` wrote."
        )
    if not directory.is_dir():
        return f"{directory} is a file. Give the directory that holds {CONFIG} and {TENSORS}."
    message = f"The directory {directory} has no {CONFIG}, so it is not a weights directory."
    published = sorted(path.name for path in directory.iterdir() if path.suffix in (".hdf5", ".h5"))
    if published:
        message += f" For {published[0]}, first run: python -m spacy elmo convert OPTIONS.json {published[0]} OUT"
    return message
