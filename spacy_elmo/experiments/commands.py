"""The commands that pages show, so that a reader can repeat what they report."""

import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def trials_command(
    config: Mapping[str, Any], output: Path, *, n_seeds: int, fractions: Sequence[float], grid: Path | None = None
) -> str:
    """Write the command that runs trials.

    config (Mapping[str, Any]): The path of the config, test, code, gold_preproc and overrides, as the metrics of a trial have
        them.
    output (Path): The directory of the trials.
    n_seeds (int): The number of seeds.
    fractions (Sequence[float]): The fractions of the training data.
    grid (Path | None): The config of the grid, if there is one.
    RETURNS (str): The command.
    """
    words = ["python", "-m", "spacy", "elmo", "trials", config["path"], str(output)]
    words += ["--grid", str(grid)] if grid else []
    words += ["--test", config["test"], "--seeds", str(n_seeds)]
    words += ["--fractions", ",".join(f"{fraction:g}" for fraction in fractions)]
    words += ["--code", config["code"]] if config["code"] else []
    words += ["--gold-preproc"] if config["gold_preproc"] else []
    for name, value in config["overrides"].items():
        words += [f"--{name}", value if isinstance(value, str) else json.dumps(value)]
    return shlex.join(words)
