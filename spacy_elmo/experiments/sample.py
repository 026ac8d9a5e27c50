"""One score of several seeds: mean, standard deviation, and a sentence that compares two of them."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Sample:
    """One score of several seeds.

    values (Sequence[float]): The score of each seed, in per cent.
    """

    values: Sequence[float]

    def __len__(self) -> int:
        return len(self.values)

    @property
    def mean(self) -> float:
        """RETURNS (float): The mean."""
        return statistics.fmean(self.values)

    @property
    def deviation(self) -> float | None:
        """RETURNS (float | None): The standard deviation, estimated from the sample. With one seed, it is None."""
        return statistics.stdev(self.values) if len(self) > 1 else None


def compare_samples(name: str, sample: Sample, baseline_name: str, baseline: Sample) -> str:
    """Say whether a model is better than the baseline, and how certain that is.

    name, baseline_name (str): The names of the models.
    sample, baseline (Sample): Their scores.
    RETURNS (str): A sentence or two.
    """
    difference = sample.mean - baseline.mean
    if abs(difference) < 0.005:
        seeds = ", with one seed each" if len(sample) == len(baseline) == 1 else " on average"
        return f"‘{name}’ scores as high as ‘{baseline_name}’: {sample.mean:.1f}{seeds}."
    higher, above = ("higher", "above") if difference > 0 else ("lower", "below")
    means = f"{sample.mean:.1f} against {baseline.mean:.1f}"
    points = f"{abs(difference):.1f}" if abs(difference) >= 1 else f"{abs(difference):.2f}"
    result = f"‘{name}’ scores {points} points {higher} than ‘{baseline_name}’"
    if len(sample) == len(baseline) == 1:
        return f"{result}: {means}, with one seed each. Another seed may give another result: run several."
    seeds = f"{len(sample)} and {len(baseline)} seeds"
    overlap = min(sample.values) <= max(baseline.values) and max(sample.values) >= min(baseline.values)
    if overlap:
        return f"The seeds overlap: no clear difference. On average, {result}: {means} ({seeds})."
    # Two of all orders separate the seeds: all above, or all below.
    n_orders = math.comb(len(sample) + len(baseline), len(baseline))
    return (
        f"{result} on average: {means}. Every seed of ‘{name}’ is {above} every seed of ‘{baseline_name}’ ({seeds}). If both were "
        f"equally good, the seeds would be separated, in one direction or the other, in 2 of {n_orders} cases."
    )
