"""The settings of runs that take a second."""

from pathlib import Path
from typing import Any

import pytest

from .runs import make_overrides


@pytest.fixture
def overrides(tmp_path: Path) -> dict[str, Any]:
    """The settings of a run from scratch."""
    return make_overrides(tmp_path)


@pytest.fixture
def finetuning(overrides: dict[str, Any]) -> dict[str, Any]:
    """The settings of a run that starts from weights."""
    return {
        **{name: value for name, value in overrides.items() if not name.startswith("bilm.")},
        "bilm_training.softmax_share": 0.5,
        "bilm_training.precision": "float32",
    }
