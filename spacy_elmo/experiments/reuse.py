"""Finished trials of other directories: a trial that equals one of them is copied, not trained again."""

import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from spacy.training.loop import DIR_MODEL_BEST

from ..files.atomic import explain_write_errors, write_file
from .trial_id import TRIAL_METRICS, TrialId


def find_equal(
    directories: Iterable[Path], trial_id: TrialId, identity: dict[str, str], *, own: Path, with_model: bool
) -> Path | None:
    """Find a finished trial with the same config, data, fraction and seed.

    directories (Iterable[Path]): Where to look: directories of trials, and of grids.
    trial_id (TrialId): The trial.
    identity (dict[str, str]): What makes trials the same.
    own (Path): The directory of the trial itself, which is never taken: its files may be replaced.
    with_model (bool): Whether the trial must have its model.
    RETURNS (Path | None): The directory of the trial, or None if there is none.
    """
    name = trial_id.directory(Path()) / TRIAL_METRICS
    for directory in directories:
        for path in (directory / name, *sorted(directory.glob(f"*/{name}"))):
            found = path.parent
            has_model = (found / DIR_MODEL_BEST).is_dir()
            is_equal = found.resolve() != own.resolve() and _read_metrics(path).get("identity") == identity
            if is_equal and (has_model or not with_model):
                return found
    return None


def copy_trial(source: Path, target: Path, config: dict[str, Any], *, with_model: bool) -> dict[str, Any]:
    """Copy a finished trial.

    source, target (Path): The directories of the trials.
    config (dict[str, Any]): What the metrics of the copy say about the config: its paths may be others.
    with_model (bool): Whether to copy the model.
    RETURNS (dict[str, Any]): The metrics of the copy.
    """
    metrics = _read_metrics(source / TRIAL_METRICS)
    metrics |= {"config": metrics["config"] | config, "copied_from": str(source)}
    with explain_write_errors(target):
        target.mkdir(parents=True, exist_ok=True)
        if with_model:
            shutil.copytree(source / DIR_MODEL_BEST, target / DIR_MODEL_BEST)
    write_file(target / TRIAL_METRICS, json.dumps(metrics, indent=2) + "\n")  # last: it marks the trial as finished
    return metrics


def _read_metrics(path: Path) -> dict[str, Any]:
    """Read the metrics of a trial. If they are missing or damaged, it equals no other trial."""
    try:
        metrics = json.loads(path.read_text(encoding="utf8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return metrics if isinstance(metrics, dict) else {}
