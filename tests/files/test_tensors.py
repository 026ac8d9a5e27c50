"""Checks of tensors that were read from files."""

from pathlib import Path

import pytest
import torch
from torch import nn

from spacy_elmo.files.tensors import check_finite, check_fit


def test_tensors_that_fit() -> None:
    check_fit({"a": (2, 3), "b": ()}, {"b": (), "a": (2, 3)}, "a file", "its config")


def test_all_mismatches_are_in_the_message() -> None:
    message = (
        r"^The weights in a/file do not fit its config: missing \['b'\]; unexpected \['x', 'y'\]; of another shape "
        r"\['a is \(3, 2\), expected \(2, 3\)'\]\. Are they of the same model\?$"
    )
    with pytest.raises(ValueError, match=message):
        check_fit({"a": (3, 2), "y": (1,), "x": (1,)}, {"a": (2, 3), "b": ()}, Path("a/file"), "its config")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_values_that_are_not_finite(value: float) -> None:
    module = nn.Linear(2, 2)
    check_finite(module, "a/file")
    with torch.no_grad():
        module.bias[1] = value
    with pytest.raises(ValueError, match=r"^The weights in a/file have values that are .* not a number, in \['bias'\]"):
        check_finite(module, "a/file")
