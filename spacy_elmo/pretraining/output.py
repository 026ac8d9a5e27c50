"""The output directory of a run: its files, and how a new run replaces an old one."""

import shutil
from pathlib import Path

from ..files.atomic import explain_write_errors, remove_leftovers

BEST, LAST, CORPORA = "model-best", "model-last", "corpora"
RUN_CONFIG, CHECKPOINT, METRICS, SCORES = "config.cfg", "checkpoint.safetensors", "metrics.jsonl", "scores.json"
CURVE = "learning-curve.svg"


def check_output(output: Path, *, resume: bool, overwrite: bool) -> None:
    """Refuse an output directory whose contents would be lost.

    output (Path): The directory.
    resume, overwrite (bool): Whether an existing run is resumed, or may be replaced.
    """
    if resume and overwrite:
        raise ValueError("A run is resumed (--resume) or replaced (--overwrite), not both.")
    if output.exists() and not output.is_dir():
        raise ValueError(f"{output} is a file; a directory is to be written there. Choose another path.")
    existing = [
        name for name in (CHECKPOINT, RUN_CONFIG, METRICS, SCORES, CURVE, BEST, LAST) if (output / name).exists()
    ]
    if existing and not (resume or overwrite):
        raise ValueError(
            f"There is already a run in {output}, or something else with a {existing[0]}. Resume it (--resume), replace it "
            f"(--overwrite), or choose another directory."
        )


def open_output(output: Path) -> None:
    """Make the output directory, and remove drafts that a killed run left there.

    output (Path): The directory.
    """
    with explain_write_errors(output):
        output.mkdir(parents=True, exist_ok=True)
    for name in (RUN_CONFIG, CHECKPOINT, METRICS, SCORES, CURVE, BEST, LAST):
        remove_leftovers(output / name)


def clear_output(output: Path) -> None:
    """Remove an old run, and nothing else.

    output (Path): The directory.
    """
    for name in (CHECKPOINT, SCORES, CURVE, METRICS):
        (output / name).unlink(missing_ok=True)
    for name in (BEST, LAST):
        shutil.rmtree(output / name, ignore_errors=True)
