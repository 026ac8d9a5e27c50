"""Where trials are: OUTPUT/SHARE/SEED."""

import re
from pathlib import Path
from typing import NamedTuple

METRICS = "metrics.json"  # a trial that has it is done
ALL = 100.0


class Place(NamedTuple):
    """Which trial.

    share (float): How much of the training data it has, in per cent.
    seed (int): Its seed.
    """

    share: float
    seed: int

    def __str__(self) -> str:
        return f"share {self.share:g}, seed {self.seed}"

    def below(self, output: Path) -> Path:
        """RETURNS (Path): Its directory."""
        return output / f"{self.share:g}" / str(self.seed)


def find_places(output: Path) -> list[Place]:
    """Find the trials in a directory.

    output (Path): The directory.
    RETURNS (list[Place]): The trials that were begun.
    """
    found = [
        Place(float(path.parent.name), int(path.name))
        for path in output.glob("*/*")
        if re.fullmatch(r"\d+", path.name) and re.fullmatch(r"\d+(\.\d+)?", path.parent.name)
    ]
    return sorted(place for place in found if place.below(output).is_dir())


def parse_shares(text: str) -> list[float]:
    """Read shares as they are typed.

    text (str): Numbers, separated by commas.
    RETURNS (list[float]): The shares, in per cent, from small to large.
    """
    try:
        shares = {float(f"{float(part):g}") for part in text.split(",")}  # as their directories are named
    except ValueError:
        shares = set()
    if not shares or not all(0.0001 <= share <= ALL for share in shares):
        raise ValueError(
            f"Shares are per cent of the training data, above 0 and up to 100, separated by commas, such as 1,10,100; got "
            f"{text!r}."
        )
    return sorted(shares)
