"""Read and write weights directories: config.json and model.safetensors. Nothing is ever unpickled."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import srsly
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load as parse_tensors
from safetensors.torch import save as format_tensors
from torch import Tensor

from ..files.atomic import write_directory
from ..files.damage import refuse_damaged
from ..files.tensors import Shape, check_finite, check_fit
from ..files.versions import NewerFormatError, add_version, take_version
from .config import BiLMConfig, Precision
from .frozen import precision_of, thaw
from .int8 import to_int8
from .model import BiLM

CONFIG, TENSORS = "config.json", "model.safetensors"
OF_ANOTHER_FORMAT = "token_embedder.pkl"  # in models of ELMoForManyLangs, which have a config.json as well
INITIAL_STATE = {"initial_hidden", "initial_cell"}
PRECISION = "precision"  # the key of the config

# The version of the config, in a weights directory as in a serialized pipeline. Version 0 had the same fields as version 1,
# but no number. Version 2 has the precision of the weights, if that is not float32 or float16. Version 3 has fields with
# defaults, such as the language. The lowest version that fits is written, so that older releases can read what they know.
FORMAT_VERSION = 3


def save_weights(bilm: BiLM, directory: Path, *, dtype: torch.dtype = torch.float32) -> None:
    """Write a weights directory, all of it or nothing.

    bilm (BiLM): The model.
    directory (Path): The directory. An existing one is replaced only if it holds weights and nothing else.
    dtype (torch.dtype): The precision on disk, as for `write_weights`.
    """
    with write_directory(directory, files={CONFIG, TENSORS}) as draft:
        write_weights(bilm, draft, dtype=dtype)


def write_weights(bilm: BiLM, draft: Path, *, dtype: torch.dtype = torch.float32) -> None:
    """Write the files of a weights directory. A model in int8 stays in int8.

    bilm (BiLM): The model.
    draft (Path): The directory to write them to.
    dtype (torch.dtype): The precision of other weights on disk. Float16 halves the file, and changes values by one part in
        two thousand.
    """
    config = json.dumps(_config_to_dict(bilm), indent=2, ensure_ascii=False)
    (draft / CONFIG).write_text(config + "\n", encoding="utf8")
    tensors = _tensors(bilm)
    if precision_of(bilm) != "int8":
        tensors = {name: tensor.to(dtype) for name, tensor in tensors.items()}
    # Not save_file, which gives permissions to the owner alone.
    (draft / TENSORS).write_bytes(format_tensors(tensors))


def load_config(directory: Path) -> BiLMConfig:
    """Read only the sizes of a weights directory.

    directory (Path): The directory.
    RETURNS (BiLMConfig): The sizes.
    """
    config, _ = _load_config(directory)
    return config


def load_weights(directory: Path) -> BiLM:
    """Read a weights directory.

    directory (Path): The directory.
    RETURNS (BiLM): The model, in float32 whatever the precision on disk.
    """
    return thaw(load_stored(directory))


def load_stored(directory: Path, device: torch.device | str = "cpu") -> BiLM:
    """Read a weights directory, for prediction.

    directory (Path): The directory.
    device (torch.device | str): The device for the model.
    RETURNS (BiLM): The model, in int8 if it was stored in int8, otherwise in float32.
    """
    config, precision = _load_config(directory)
    path = directory / TENSORS
    if not path.is_file():
        raise ValueError(f"The weights directory {directory} has a {CONFIG} but no {TENSORS}: was it copied whole?")
    skeleton = _make_skeleton(config, precision)
    try:
        with safe_open(path, framework="pt") as file:
            # The shapes are checked from the header, before anything is allocated for them.
            _check_shapes({key: tuple(file.get_slice(key).get_shape()) for key in file.keys()}, skeleton, path)  # noqa: SIM118
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise ValueError(f"{path} is not a safetensors file, or an incomplete one: {error!s:.1000}") from None
    return _assemble(skeleton, tensors, path).to(device)


def to_bytes(bilm: BiLM) -> bytes:
    """RETURNS (bytes): The contents of a weights directory, in one string."""
    data: bytes = srsly.msgpack_dumps({"config": _config_to_dict(bilm), "tensors": format_tensors(_tensors(bilm))})
    return data


def from_bytes(data: bytes, device: torch.device | str = "cpu") -> BiLM:
    """Read what `to_bytes` wrote.

    data (bytes): The string.
    device (torch.device | str): The device for the model.
    RETURNS (BiLM): The model, in the precision that it had.
    """
    where = "the serialized biLM"
    with refuse_damaged("The data", where):
        message: dict[str, Any] = srsly.msgpack_loads(data)
        config, precision = _config_from_dict(message["config"], where)
        tensors = parse_tensors(message["tensors"])
    skeleton = _make_skeleton(config, precision)
    _check_shapes({key: tuple(tensor.shape) for key, tensor in tensors.items()}, skeleton, where)
    return _assemble(skeleton, tensors, where).to(device)


def _load_config(directory: Path) -> tuple[BiLMConfig, Precision]:
    path = directory / CONFIG
    if not path.is_file() or (directory / OF_ANOTHER_FORMAT).is_file():
        raise ValueError(_explain_missing(directory))
    try:
        return _config_from_dict(json.loads(path.read_text(encoding="utf8")), path)
    except NewerFormatError:
        raise
    except (ValueError, RecursionError) as error:  # neither UTF-8 nor JSON, or sizes that make no sense
        raise ValueError(f"{path} does not describe a biLM: {error}") from None


def _config_to_dict(bilm: BiLM) -> dict[str, Any]:
    config, precision = bilm.config.to_dict(), precision_of(bilm)
    stored = {} if precision == "float32" else {PRECISION: precision}
    is_required = BiLMConfig.required_fields()
    version = 2 if stored else 1
    if not all(is_required[name] for name in config):
        version = FORMAT_VERSION
    return add_version({**config, **stored}, current=version)


def _config_from_dict(data: Any, where: Path | str) -> tuple[BiLMConfig, Precision]:
    _, data = take_version(data, current=FORMAT_VERSION, where=where)
    precision = data.pop(PRECISION, "float32")
    if precision not in get_args(Precision):
        raise ValueError(f"{PRECISION} must be one of {get_args(Precision)}, got {precision!r:.80}.")
    return BiLMConfig.from_dict(data), precision


def _tensors(bilm: BiLM) -> dict[str, Tensor]:
    return {name: tensor.detach().cpu().contiguous() for name, tensor in bilm.state_dict().items()}


def _make_skeleton(config: BiLMConfig, precision: Precision) -> BiLM:
    """Make a model without values: nothing is allocated."""
    with torch.device("meta"):
        bilm = BiLM(config)
        return to_int8(bilm) if precision == "int8" else bilm


def _assemble(bilm: BiLM, tensors: Mapping[str, Tensor], where: Path | str) -> BiLM:
    """Put tensors whose shapes were checked into a skeleton."""
    int8 = {name for name, tensor in bilm.state_dict().items() if tensor.dtype == torch.int8}
    wrong = [
        name
        for name, tensor in tensors.items()
        if (tensor.dtype != torch.int8 if name in int8 else not tensor.is_floating_point())
    ]
    if wrong:
        raise ValueError(
            f"The weights in {where} are of another type than expected, in {wrong}: they were changed or damaged."
        )
    for name in INITIAL_STATE & tensors.keys():
        setattr(bilm, name, tensors[name])
    bilm.load_state_dict(
        {name: tensor.float() if tensor.is_floating_point() else tensor for name, tensor in tensors.items()},
        assign=True,
    )
    check_finite(bilm, where)
    return bilm


def _check_shapes(found: Mapping[str, Shape], skeleton: BiLM, where: Path | str) -> None:
    config = skeleton.config
    expected = {name: tuple(tensor.shape) for name, tensor in skeleton.state_dict().items()}
    if not INITIAL_STATE.isdisjoint(found):
        expected["initial_hidden"] = (config.depth, 2, config.projection)
        expected["initial_cell"] = (config.depth, 2, config.cells)
    check_fit(found, expected, where, f"their config ({config})")


def _explain_missing(directory: Path) -> str:
    if not directory.exists():
        return f"There is no weights directory at {directory}."
    if not directory.is_dir():
        return (
            f"{directory} is a file. Give the directory that holds {CONFIG} and {TENSORS}. For a published model in a ZIP file, "
            f"first run: python -m spacy elmo convert {directory} OUT"
        )
    if (directory / OF_ANOTHER_FORMAT).is_file():
        return f"{directory} is a model of ELMoForManyLangs. First run: python -m spacy elmo convert {directory} OUT"
    message = f"The directory {directory} has no {CONFIG}, so it is not a weights directory."
    published = sorted(path.name for path in directory.iterdir() if path.suffix in (".hdf5", ".h5"))
    if (directory / "model-best" / CONFIG).is_file():
        message += f" It is a pretraining run. Did you mean {directory / 'model-best'}?"
    elif (directory / "meta.json").is_file():
        message += " It is a spaCy pipeline: load it with spacy.load."
    elif published:
        message += f" For {published[0]}, first run: python -m spacy elmo convert OPTIONS.json {published[0]} OUT"
    return message
