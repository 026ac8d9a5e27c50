"""Checks of tensors that were read from files."""

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import nn

Shape = tuple[int, ...]


def check_fit(found: Mapping[str, Shape], expected: Mapping[str, Shape], where: Path | str, source: str) -> None:
    """Refuse tensors that are not exactly those of a model.

    found, expected (Mapping): Shapes by name.
    where (Path | str): The file of the tensors that were found, for the error.
    source (str): What determines the expected ones, for the error.
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
        listed = "; ".join(f"{kind} {names!s:.1000}" for kind, names in problems.items() if names)
        raise ValueError(f"The weights in {where} do not fit {source}: {listed}. Are they of the same model?")


def check_finite(module: nn.Module, where: Path | str) -> None:
    """Refuse weights that are infinite or not a number: they would turn every vector into NaN.

    module (nn.Module): The model, or a part of it.
    where (Path | str): The file of the weights, for the error.
    """
    broken = [name for name, tensor in module.state_dict().items() if not torch.isfinite(tensor).all()]
    if broken:
        raise ValueError(
            f"The weights in {where} have values that are infinite or not a number, in {broken}. "
            f"The training that made them failed: use an earlier checkpoint of it."
        )
