"""The package's own format: a weights directory. `bilm/weights.py` reads and writes it."""

from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path

import torch

from ..bilm.int8 import to_int8
from ..bilm.model import BiLM
from ..bilm.weights import CONFIG, load_weights, save_weights


def recognizes(paths: Sequence[Path]) -> bool:
    """RETURNS (bool): Whether the paths are one directory with a config.json."""
    return len(paths) == 1 and (paths[0] / CONFIG).is_file()


def read(paths: Sequence[Path]) -> BiLM:
    """Read a weights directory.

    paths (Sequence[Path]): The directory.
    RETURNS (BiLM): The model.
    """
    if len(paths) != 1:
        raise ValueError(f"Expected one weights directory, got {len(paths)} paths.")
    return load_weights(paths[0])


def write(bilm: BiLM, directory: Path, *, precision: str = "float32") -> None:
    """Write a weights directory.

    bilm (BiLM): The model.
    directory (Path): The directory.
    precision (str): The precision to store the weights in: "float32", "float16" or "int8".
    """
    if precision == "int8":
        save_weights(to_int8(deepcopy(bilm)), directory)
    else:
        save_weights(bilm, directory, dtype=getattr(torch, precision))
