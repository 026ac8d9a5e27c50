"""How numbers are written on pages."""

from collections.abc import Sequence

from .scores import Sample, describe

NOTHING = "–"


def cell(sample: Sample) -> str:
    """RETURNS (str): A sample in a table: its mean, and its deviation if there is one."""
    if not len(sample):
        return NOTHING
    return f"{sample.mean:.2f}" + ("" if sample.deviation is None else f" ± {sample.deviation:.2f}")


def signed(difference: float) -> str:
    """RETURNS (str): A difference in a table."""
    return f"{difference:+.2f}".replace("-", "−")


def title_of(key: str) -> str:
    """RETURNS (str): What a score is called: its task and its name."""
    score = describe(key)
    return score.name if score.name == score.task else f"{score.task}, {score.name}"


def list_scores(sample: Sample) -> str:
    """RETURNS (str): The scores of all seeds."""
    return ", ".join(f"{value:.1f}" for value in sample.values)


def list_shares(shares: Sequence[float]) -> str:
    """RETURNS (str): Shares of the training data."""
    return ", ".join(f"{share:g}%" for share in shares)


def count(number: int, noun: str) -> str:
    """RETURNS (str): A number of things."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def duration(seconds: float) -> str:
    """RETURNS (str): A time, in its unit."""
    for size, name in ((3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {name}"
    return f"{seconds:.1f} s"
