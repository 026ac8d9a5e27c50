"""How numbers are written on pages."""

from collections.abc import Sequence

from .sample import Sample

NOTHING = "–"


def format_number(value: float | None, digits: int) -> str:
    """RETURNS (str): A number with some digits after the point, if there is one."""
    return NOTHING if value is None else f"{value:.{digits}f}"


def format_sample(sample: Sample) -> str:
    """RETURNS (str): The mean, and the standard deviation if there is one."""
    if not len(sample):
        return NOTHING
    return format_number(sample.mean, 2) + ("" if sample.deviation is None else f" ± {sample.deviation:.2f}")


def format_difference(sample: Sample, baseline: Sample) -> str:
    """RETURNS (str): The difference of two means, with its sign."""
    if not len(sample) or not len(baseline):
        return NOTHING
    return f"{sample.mean - baseline.mean:+.2f}".replace("-", "−")


def format_seeds(sample: Sample) -> str:
    """RETURNS (str): The scores of all seeds."""
    return ", ".join(f"{value:.1f}" for value in sample.values)


def format_fractions(fractions: Sequence[float]) -> str:
    """RETURNS (str): Fractions of the training data."""
    return ", ".join(f"{fraction:g}%" for fraction in fractions)


def format_count(number: int, noun: str) -> str:
    """RETURNS (str): A number of things, such as "1 seed" or "2,000 documents"."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def format_list(parts: Sequence[str]) -> str:
    """RETURNS (str): Parts of a sentence, such as "one, two and three"."""
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last


def format_layer(name: str) -> str:
    """RETURNS (str): The name of a layer in a sentence: "the token layer", "LSTM layer 1"."""
    return name if name.startswith("LSTM") else f"the {name}"


def format_duration(seconds: float) -> str:
    """RETURNS (str): A time in seconds, minutes or hours."""
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} s"
