"""The settings of runs that take a second."""

from pathlib import Path
from typing import Any

import pytest

from ..helpers import SIZES
from .runs import STEPS, make_text


@pytest.fixture
def overrides(tmp_path: Path) -> dict[str, Any]:
    """The settings of a run from scratch."""
    return {
        "paths.train": str(make_text(tmp_path / "train.txt", 120, seed=0)),
        "paths.dev": str(make_text(tmp_path / "dev.txt", 30, seed=1)),
        "corpus.lang": None,
        **{f"bilm.{name}": value for name, value in SIZES.items()},
        "bilm_training.max_steps": STEPS,
        "bilm_training.batch_size": 4,
        "bilm_training.unroll": 5,
        "bilm_training.log_frequency": 1,
        "bilm_training.eval_frequency": 3,
        "bilm_training.logger.progress_bar": False,
    }


@pytest.fixture
def finetuning(overrides: dict[str, Any]) -> dict[str, Any]:
    """The settings of a run that starts from weights."""
    return {
        **{name: value for name, value in overrides.items() if not name.startswith("bilm.")},
        "bilm_training.softmax_share": 0.5,
        "bilm_training.precision": "float32",
    }
