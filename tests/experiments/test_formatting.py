"""Numbers as they are written on pages."""

import pytest

from spacy_elmo.experiments.formatting import (
    format_count,
    format_difference,
    format_duration,
    format_fractions,
    format_number,
    format_sample,
    format_seeds,
)
from spacy_elmo.experiments.sample import Sample


def test_numbers() -> None:
    assert [format_number(0.125, digits) for digits in (1, 3)] == ["0.1", "0.125"]
    assert format_number(None, 2) == "–"


def test_samples() -> None:
    assert format_sample(Sample([40.0, 42.0])) == "41.00 ± 1.41"
    assert format_sample(Sample([40.0])) == "40.00"
    assert format_sample(Sample([])) == "–"
    assert format_seeds(Sample([40.0, 41.25])) == "40.0, 41.2"


def test_differences_have_a_sign() -> None:
    low, high = Sample([40.0]), Sample([41.5, 42.5])
    assert format_difference(high, low) == "+2.00"
    assert format_difference(low, high) == "−2.00"
    assert format_difference(low, Sample([])) == format_difference(Sample([]), low) == "–"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.04, "0.0 s"), (119, "119.0 s"), (120, "2.0 min"), (7199, "120.0 min"), (7200, "2.0 h"), (90_000, "25.0 h")],
)
def test_durations_have_a_unit(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


def test_counts_and_fractions() -> None:
    assert [format_count(number, "seed") for number in (0, 1, 2000)] == ["0 seeds", "1 seed", "2,000 seeds"]
    assert format_fractions([0.5, 10.0, 100.0]) == "0.5%, 10%, 100%"
