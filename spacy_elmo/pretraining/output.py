"""The directory of a run: what is in it, and how an old run makes room for a new one."""

import shutil
from pathlib import Path

from ..files.atomic import naming, remove_leftovers

BEST, LAST, CORPORA = "model-best", "model-last", "corpora"
CONFIG, CHECKPOINT, METRICS, SCORES = "config.cfg", "checkpoint.safetensors", "metrics.jsonl", "scores.json"
CURVE = "learning-curve.svg"


def check_output(output: Path, *, resume: bool, overwrite: bool) -> None:
    """Refuse a place for a run's directory where something would be lost.

    output (Path): The directory.
    resume, overwrite (bool): Whether a run that is there goes on, or may be replaced.
    """
    if resume and overwrite:
        raise ValueError("A run goes on (--resume) or is replaced (--overwrite), not both.")
    if output.exists() and not output.is_dir():
        raise ValueError(f"{output} is a file; a directory is to be written there. Choose another place.")
    there = [name for name in (CHECKPOINT, CONFIG, METRICS, SCORES, CURVE, BEST, LAST) if (output / name).exists()]
    if there and not (resume or overwrite):
        raise ValueError(
            f"There is a run in {output} already, or something else with a {there[0]}. Go on with it (--resume), replace it "
            f"(--overwrite), or choose another place."
        )


def open_output(output: Path) -> None:
    """Make a run's directory, and remove what a killed run left half written there.

    output (Path): The directory.
    """
    with naming(output):
        output.mkdir(parents=True, exist_ok=True)
    for name in (BEST, LAST):
        remove_leftovers(output / name)


def clear_output(output: Path) -> None:
    """Remove an old run, and nothing else that is there.

    output (Path): The directory.
    """
    for name in (CHECKPOINT, SCORES, CURVE, METRICS):
        (output / name).unlink(missing_ok=True)
    for name in (BEST, LAST):
        shutil.rmtree(output / name, ignore_errors=True)
