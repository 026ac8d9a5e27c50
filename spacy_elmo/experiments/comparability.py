"""What runs have in common, so that they can be compared, and what makes that hard."""

from collections.abc import Sequence
from typing import Any

from .runs import Run
from .scores import SCORES
from .wording import count, list_shares


def shared_shares(runs: Sequence[Run]) -> list[float]:
    """RETURNS (list[float]): The shares of the training data that all runs were trained on, in order."""
    shares = set.intersection(*(set(run.shares) for run in runs))
    if not shares:
        found = "; ".join(f"{run.directory} has {list_shares(run.shares)}" for run in runs)
        raise ValueError(f"The runs have no share of the training data in common: {found}. Run the missing trials.")
    return sorted(shares)


def shared_scores(runs: Sequence[Run], share: float, score: str | None) -> list[str]:
    """Find the scores to compare runs by.

    runs (Sequence[Run]): The runs.
    share (float): The share of the training data.
    score (str | None): The score that matters; by default, those by which the runs chose their best models.
    RETURNS (list[str]): Scores that all runs have.
    """

    def is_shared(key: str) -> bool:
        return all(len(run.sample(key, share)) for run in runs)

    if score is not None:
        if not is_shared(score):
            known = sorted(key for key in runs[0].at(share)[0]["scores"] if is_shared(key) and key != "speed")
            raise ValueError(
                f"Not all runs have the score {score!r}. They have: {', '.join(known) or 'none in common'}."
            )
        return [score]
    candidates = [key for run in runs for key in run.main_scores(share)]
    keys = [key for key in dict.fromkeys(candidates) if is_shared(key)]
    keys = keys or [key for key in SCORES if is_shared(key)][:1]
    if not keys:
        found = "; ".join(f"{run.directory} has {', '.join(run.main_scores(share)) or 'none'}" for run in runs)
        raise ValueError(f"The runs have no score in common, as if they were of different tasks: {found}.")
    return keys


def find_caveats(runs: Sequence[Run]) -> list[str]:
    """Find what makes runs hard to compare.

    runs (Sequence[Run]): The runs.
    RETURNS (list[str]): A sentence for each.
    """
    caveats = []
    first, shares = runs[0], shared_shares(runs)
    for run in runs:
        if left_out := [share for share in run.shares if share not in shares]:
            caveats.append(
                f"‘{run.name}’ was trained on {list_shares(left_out)} of the training data as well, which not all others "
                f"were: left out here."
            )
        if run.n_unfinished:
            caveats.append(f"{count(run.n_unfinished, 'trial')} of ‘{run.name}’ did not come to an end: left out here.")
        for name, reason in (("train", "trained on other data than"), ("dev", "chosen on other dev data than")):
            checksums = [trial["identity"].get(f"paths.{name}") for trial in (run.trials[0], first.trials[0])]
            if checksums[0] != checksums[1]:
                caveats.append(
                    f"‘{run.name}’ was {reason} ‘{first.name}’, so that a difference may come from the data."
                )
        if settings := _different_settings(run, first):
            caveats.append(
                f"‘{run.name}’ was trained with other settings than ‘{first.name}’, so that a difference may come from those: "
                f"{', '.join(settings)}."
            )
    counts = {run.name: len(run.at(shares[-1])) for run in runs}
    if 1 in counts.values():
        names = " and ".join(f"‘{name}’" for name, count in counts.items() if count == 1)
        caveats.append(f"There is one seed of {names}: how much it varies is not known, and no deviation is given.")
    return caveats


def _different_settings(*runs: Run) -> list[str]:
    """List the settings of training, and others that were replaced on the command line, in which two runs differ."""
    configs = [run.config for run in runs]
    is_known = all("training" in config for config in configs)  # earlier versions did not write it down
    ours, theirs = (
        {
            **(_flatten(config["training"], "training.") if is_known else {}),
            **{name: value for name, value in config["overrides"].items() if not name.startswith("paths.")},
        }
        for config in configs
    )
    names = (ours.keys() | theirs.keys()) - {"training.seed"}
    return sorted(name for name in names if ours.get(name) != theirs.get(name))


def _flatten(section: dict[str, Any], prefix: str) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in section.items():
        flat |= _flatten(value, f"{prefix}{name}.") if isinstance(value, dict) else {f"{prefix}{name}": value}
    return flat
