"""Statistics, and sentences that claim no more than the seeds show."""

from collections.abc import Sequence

import pytest

from spacy_elmo.experiments.sample import Sample, compare_samples


def test_statistics_by_hand() -> None:
    sample = Sample([40.0, 42.0, 47.0])
    assert sample.mean == pytest.approx(43.0)
    assert sample.deviation == pytest.approx(13**0.5)  # (9 + 1 + 16) / 2
    assert Sample([40.0]).mean == 40
    assert Sample([40.0]).deviation is None


@pytest.mark.parametrize(
    ("values", "first", "expected"),
    [
        (
            [46, 47, 48],
            [40, 41, 42],
            "‘B’ scores 6.0 points higher than ‘A’ on average: 47.0 against 41.0. Every seed of ‘B’ is above every seed of ‘A’ "
            "(3 and 3 seeds). If both were equally good, the seeds would be separated, in one direction or the other, in 2 of 20 cases.",
        ),
        (
            [39, 39.5],
            [40, 41, 42],
            "‘B’ scores 1.8 points lower than ‘A’ on average: 39.2 against 41.0. Every seed of ‘B’ is below every seed of ‘A’ "
            "(2 and 3 seeds). If both were equally good, the seeds would be separated, in one direction or the other, in 2 of 10 cases.",
        ),
        (
            [40, 43],
            [41, 41.5],
            "The seeds overlap: no clear difference. On average, ‘B’ scores 0.25 points higher than ‘A’: 41.5 against 41.2 "
            "(2 and 2 seeds).",
        ),
        (
            [41, 45],
            [40, 43],
            "The seeds overlap: no clear difference. On average, ‘B’ scores 1.5 points higher than ‘A’: 43.0 against 41.5 "
            "(2 and 2 seeds).",
        ),
        (
            [41, 42],
            [41],
            "The seeds overlap: no clear difference. On average, ‘B’ scores 0.50 points higher than ‘A’: 41.5 against 41.0 "
            "(2 and 1 seeds).",
        ),
        (
            [41],
            [40],
            "‘B’ scores 1.0 points higher than ‘A’: 41.0 against 40.0, with one seed each. Another seed may give another "
            "result: run several.",
        ),
        ([42], [42], "‘B’ scores as high as ‘A’: 42.0, with one seed each."),
        ([41, 43], [42], "‘B’ scores as high as ‘A’: 42.0 on average."),
        ([41, 43.001], [42], "‘B’ scores as high as ‘A’: 42.0 on average."),
    ],
)
def test_sentences_claim_no_more_than_the_seeds_show(
    values: Sequence[float], first: Sequence[float], expected: str
) -> None:
    assert compare_samples("B", Sample(values), "A", Sample(first)) == expected
