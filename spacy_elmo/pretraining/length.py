"""The length of a run in steps, and how a resumed run is made longer."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# The settings that may be raised when a run is resumed.
LENGTH_SETTINGS = ("epochs", "max_steps")


def count_steps(training: Mapping[str, Any], steps_per_epoch: float) -> int:
    """Count the steps of a run.

    training (Mapping[str, Any]): The section [bilm_training] of its config.
    steps_per_epoch (float): The number of steps that read the corpus once.
    RETURNS (int): The number of steps.
    """
    n_steps: int = max(1, math.ceil(training["epochs"] * steps_per_epoch))
    most: int = training["max_steps"]
    return min(n_steps, most) if most else n_steps


def count_steps_before(now: Mapping[str, Any], before: Mapping[str, Any], steps_per_epoch: float) -> int:
    """Count the steps that a resumed run had before. Refuse to make it shorter.

    now, before (Mapping[str, Any]): The section [bilm_training] of its config, now and before.
    steps_per_epoch (float): The number of steps that read the corpus once.
    RETURNS (int): The number of steps.
    """
    n_steps, n_before = (count_steps(training, steps_per_epoch) for training in (now, before))
    changed = [name for name in LENGTH_SETTINGS if now[name] != before[name]]
    if changed and n_steps <= n_before:
        listed = " and ".join(f"{name} was {before[name]!r} and is {now[name]!r}" for name in changed)
        raise ValueError(
            f"A run can be made longer, not shorter: {listed}, so that it would have {n_steps:,} steps instead of {n_before:,}. "
            f"Both epochs and max_steps limit the steps; max_steps = 0 is no limit."
        )
    return n_before


@dataclass(frozen=True)
class Extension:
    """What becomes of a run that is made longer.

    n_before, n_steps (int): Its steps, before and now.
    next_step (int): The step that it continues with.
    rate_before, rate (float): The learning rate of that step, before and now.
    """

    n_before: int
    n_steps: int
    next_step: int
    rate_before: float
    rate: float

    def describe(self) -> str:
        """RETURNS (str): A sentence about the length, and one about the learning rate."""
        if math.isclose(self.rate, self.rate_before):
            change = f"stays at {self.rate:.3g}"
        else:
            verb = "rises" if self.rate > self.rate_before else "falls"
            change = f"{verb} from {self.rate_before:.3g} to {self.rate:.3g}"
        return (
            f"The run is made longer: {self.n_steps:,} steps instead of {self.n_before:,}. The learning rate {change}, which is "
            f"that of step {self.next_step:,} in a run of {self.n_steps:,} steps"
        )
