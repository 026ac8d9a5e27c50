"""Which trial it is, and where it is: OUTPUT/FRACTION/SEED."""

import re
from pathlib import Path
from typing import NamedTuple

TRIAL_METRICS = "metrics.json"  # written last: a trial that has it is finished
ALL = 100.0


class TrialId(NamedTuple):
    """What distinguishes the trials of a config.

    fraction (float): The fraction of the training data, in per cent.
    seed (int): The random seed.
    """

    fraction: float
    seed: int

    def __str__(self) -> str:
        return f"fraction {self.fraction:g}%, seed {self.seed}"

    def directory(self, output: Path) -> Path:
        """RETURNS (Path): The directory of the trial below that of all trials."""
        return output / f"{self.fraction:g}" / str(self.seed)


def find_trials(output: Path) -> list[TrialId]:
    """Find the trials in a directory, finished or not.

    output (Path): The directory of all trials. Other files in it are ignored.
    RETURNS (list[TrialId]): The trials.
    """
    found = [
        TrialId(float(path.parent.name), int(path.name))
        for path in output.glob("*/*")
        if re.fullmatch(r"\d+", path.name) and re.fullmatch(r"\d+(\.\d+)?", path.parent.name)
    ]
    return sorted(trial_id for trial_id in found if trial_id.directory(output).is_dir())


def parse_fractions(text: str) -> list[float]:
    """Parse the value of --fractions.

    text (str): Numbers, separated by commas.
    RETURNS (list[float]): The fractions of the training data in per cent, in ascending order.
    """
    try:
        fractions = {float(f"{float(part):g}") for part in text.split(",")}  # rounded as in the names of directories
    except ValueError:
        fractions = set()
    if not fractions or not all(0.0001 <= fraction <= ALL for fraction in fractions):
        raise ValueError(
            f"Fractions are per cent of the training data, above 0 and up to 100, separated by commas, such as 1,10,100; got "
            f"{text!r}."
        )
    return sorted(fractions)
