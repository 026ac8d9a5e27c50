"""The finished trials of a grid, for its sections of a page."""

from pathlib import Path
from typing import Any

from .trial_id import TRIAL_METRICS
from .trial_set import TrialSet, check_test_data, read_trial_set


def read_variants(result: dict[str, Any], directory: Path) -> list[TrialSet]:
    """Read the finished trials of a grid.

    result (dict[str, Any]): The content of its grid.json.
    directory (Path): The directory of that file.
    RETURNS (list[TrialSet]): The trials of each variant that has some.
    """
    found = []
    for variant in result["variants"]:
        path = directory / variant["name"]
        if any(path.glob(f"*/*/{TRIAL_METRICS}")):
            found.append(read_trial_set(path, variant["title"]))
    if not found:
        raise ValueError(f"There is no finished trial of the grid in {directory}. Run it first:\n{result['command']}")
    check_test_data(found)
    return found
