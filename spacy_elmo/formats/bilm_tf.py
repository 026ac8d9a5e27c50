"""The format of published models: options.json and weights.hdf5, as bilm-tf writes and AllenNLP reads them."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ..bilm.characters import N_CHARACTERS
from ..bilm.config import BiLMConfig
from ..bilm.model import BiLM
from ..files.atomic import write_directory
from ..files.tensors import check_finite, check_fit

if TYPE_CHECKING:
    import h5py

OPTIONS, WEIGHTS = "options.json", "weights.hdf5"
SUFFIXES = (".hdf5", ".h5")


def recognizes(paths: Sequence[Path]) -> bool:
    """RETURNS (bool): Whether the paths are two files, or a directory with HDF5. Which is which shows when they are read."""
    if len(paths) == 1 and paths[0].is_dir():
        return any(path.suffix in SUFFIXES for path in paths[0].iterdir())
    return len(paths) == 2 and all(path.is_file() for path in paths)


def read(paths: Sequence[Path]) -> BiLM:
    """Read a published model.

    paths (Sequence[Path]): The options (JSON), then the weights (HDF5), or the directory that has them.
    RETURNS (BiLM): The model.
    """
    if len(paths) == 1 and paths[0].is_dir():
        paths = _find_files(paths[0])
    if len(paths) != 2:
        raise ValueError(f"Expected two files, the options and then the weights, got {len(paths)} paths.")
    options_path, weights_path = paths
    with torch.device("meta"):  # allocates nothing until the shapes in the file are checked
        bilm = BiLM(read_options(options_path))
    with _open_hdf5(weights_path) as file, torch.no_grad():
        found: dict[str, Any] = {}
        file.visititems(lambda name, item: found.update({name: item}) if hasattr(item, "shape") else None)
        shapes = {key: tuple(array.shape) for key, array in found.items()}
        expected = {key: tuple(view.shape) for key, view in published_views(bilm).items()}
        check_fit(shapes, expected, weights_path, f"the options in {options_path}")
        elsewhere = [key for key, array in found.items() if array.external or array.is_virtual]
        if elsewhere:
            raise ValueError(
                f"The weights in {weights_path} are partly in other files, which are not read: {elsewhere}."
            )
        odd = {key: str(array.dtype) for key, array in found.items() if array.dtype.kind != "f"}
        if odd:
            raise ValueError(f"The weights in {weights_path} must be floating-point numbers, but found {odd}.")
        bilm.to_empty(device="cpu")
        for key, view in published_views(bilm).items():
            view.copy_(torch.as_tensor(found[key][...].astype("float32")))
    check_finite(bilm, weights_path)
    return bilm


def _find_files(directory: Path) -> list[Path]:
    """Find the two files of a model: the publishers' names of them differ in what they start with."""
    files = sorted(path for path in directory.iterdir() if path.is_file())
    options = [path for path in files if path.name.endswith(OPTIONS)]
    weights = [path for path in files if path.suffix in SUFFIXES]
    if len(options) != 1 or len(weights) != 1:
        raise ValueError(
            f"Expected one file of options (*{OPTIONS}) and one of weights ({', '.join(SUFFIXES)}) in {directory}, got "
            f"{', '.join(path.name for path in options + weights) or 'neither'}."
        )
    return options + weights


def write(bilm: BiLM, directory: Path) -> None:
    """Write a model as published models are. The format cannot store an initial state, so it is left out.

    bilm (BiLM): The model. It must read bytes and nothing else.
    directory (Path): The directory for options.json and weights.hdf5.
    """
    if problem := _find_problem(bilm.config):
        raise ValueError(f"The format of bilm-tf cannot store this model: {problem}.")
    with write_directory(directory, files={OPTIONS, WEIGHTS}) as draft:
        (draft / OPTIONS).write_text(json.dumps(_to_options(bilm.config), indent=2) + "\n", encoding="utf8")
        # In memory first: on a full disk HDF5 ends the process.
        data = BytesIO()
        with _import_h5py().File(data, "w") as file:
            for key, view in published_views(bilm).items():
                file.create_dataset(key, data=view.detach().cpu().numpy())
        (draft / WEIGHTS).write_bytes(data.getbuffer())


def published_views(bilm: BiLM) -> dict[str, Tensor]:
    """View a model's parameters under the names and in the shapes of the published files.

    bilm (BiLM): The model.
    RETURNS (dict[str, Tensor]): Views of the parameters: copying into a view changes the model.
    """
    config, ours = bilm.config, dict(bilm.named_parameters())
    views: dict[str, Tensor] = {"char_embed": ours["char_cnn.embedding.weight"]}
    for i, (width, count) in enumerate(config.filters):
        # Ours: one row for each filter, its characters concatenated. Theirs: (1, characters, embedding, filters).
        weight = ours[f"char_cnn.filters.{i}.weight"].view(count, width, config.char_dim)
        views[f"CNN/W_cnn_{i}"] = weight.permute(1, 2, 0).unsqueeze(0)
        views[f"CNN/b_cnn_{i}"] = ours[f"char_cnn.filters.{i}.bias"]
    for i in range(config.highways):
        for name in ("carry", "transform"):
            views[f"CNN_high_{i}/W_{name}"] = ours[f"char_cnn.highways.{i}.{name}.weight"].T
            views[f"CNN_high_{i}/b_{name}"] = ours[f"char_cnn.highways.{i}.{name}.bias"]
    if config.projects_tokens:
        views["CNN_proj/W_proj"] = ours["char_cnn.projection.weight"].T
        views["CNN_proj/b_proj"] = ours["char_cnn.projection.bias"]
    for direction in range(2):
        for i in range(config.depth):
            cell = f"RNN_{direction}/RNN/MultiRNNCell/Cell{i}/LSTMCell"
            views[f"{cell}/W_0"] = ours[f"lstm.layers.{i}.weight"][direction]
            views[f"{cell}/B"] = ours[f"lstm.layers.{i}.bias"][direction]
            if config.projects_cells:
                views[f"{cell}/W_P_0"] = ours[f"lstm.layers.{i}.projection"][direction]
    return views


def read_options(path: Path) -> BiLMConfig:
    """Read the options of a published model.

    path (Path): options.json.
    RETURNS (BiLMConfig): The sizes.
    """
    if not path.is_file():  # a device could be read for ever
        raise ValueError(f"There is no options file at {path}.")
    try:
        options = json.loads(path.read_text(encoding="utf8"))
    except OSError as error:
        raise ValueError(f"Cannot read the options file {path}: {error.strerror}.") from None
    except (ValueError, RecursionError) as error:  # neither UTF-8 nor JSON
        raise ValueError(
            f"The options in {path} are not JSON: {error}. Were the arguments swapped? The options come first."
        ) from None
    try:
        return _from_options(options)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"The options in {path} are not those of a character-based biLM: {error!r:.200}. "
            f"Expected the objects 'lstm' and 'char_cnn' as bilm-tf writes them."
        ) from None
    except ValueError as error:
        raise ValueError(f"The options in {path} cannot be used: {error}") from None


def _from_options(options: dict[str, Any]) -> BiLMConfig:
    lstm, cnn = options["lstm"], options["char_cnn"]
    n_characters = cnn.get("n_characters", N_CHARACTERS)
    # 261 in files from training. The instructions for inference say 262, which includes the id of padding words.
    if n_characters not in (N_CHARACTERS, N_CHARACTERS + 1):
        raise ValueError(f"n_characters must be {N_CHARACTERS} or {N_CHARACTERS + 1}, got {n_characters!r:.80}.")
    return BiLMConfig(
        char_dim=cnn["embedding"]["dim"],
        filters=cnn["filters"],
        highways=cnn.get("n_highway") or 0,
        activation=cnn["activation"],
        max_chars=cnn["max_characters_per_token"],
        projection=lstm["projection_dim"],
        cells=lstm["dim"],
        depth=lstm["n_layers"],
        cell_clip=lstm.get("cell_clip"),
        projection_clip=lstm.get("proj_clip"),
        skip_connections=lstm.get("use_skip_connections", False),
    )


def _find_problem(config: BiLMConfig) -> str | None:
    """Find out why a model cannot be stored in this format, if it cannot."""
    if config.words is not None:
        return "it has a table of words"
    if config.characters is not None:
        return "it reads characters of its own, and not bytes"
    if config.normalize is not None:
        return f"it converts words to {config.normalize} before it reads them"
    if config.always_project and config.projection in (config.cells, config.n_filters):
        return "it has a projection where that does not change the width"
    return None


def _to_options(config: BiLMConfig) -> dict[str, Any]:
    return {
        "lstm": {
            "dim": config.cells,
            "projection_dim": config.projection,
            "n_layers": config.depth,
            "cell_clip": config.cell_clip,
            "proj_clip": config.projection_clip,
            "use_skip_connections": config.skip_connections,
        },
        "char_cnn": {
            "activation": config.activation,
            "embedding": {"dim": config.char_dim},
            "filters": [list(pair) for pair in config.filters],
            "max_characters_per_token": config.max_chars,
            "n_characters": N_CHARACTERS + 1,
            "n_highway": config.highways,
        },
    }


@contextmanager
def _open_hdf5(path: Path) -> "Iterator[h5py.File]":
    if not path.is_file():
        raise ValueError(f"There is no weights file at {path}.")
    try:
        with _import_h5py().File(path, "r") as file:
            yield file
    except ImportError:
        raise
    except Exception as error:  # of many kinds, if the file is damaged
        if isinstance(error, ValueError) and str(path) in str(error):  # one of ours, about what is in the file
            raise
        raise ValueError(f"{path} cannot be read as HDF5, or is incomplete: {error!s:.1000}") from error


def _import_h5py() -> Any:
    try:
        import h5py
    except ImportError:
        raise ImportError(
            "Weights in the format of bilm-tf are HDF5 files, and reading or writing them needs h5py: pip install h5py"
        ) from None
    return h5py
