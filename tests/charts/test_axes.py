"""Ticks are few and round, their labels short, and all values lie between them."""

from itertools import pairwise

import pytest
from hypothesis import given

from spacy_elmo.charts.axes import linear_ticks, log_ticks, score_ticks, tick_label

from .drawings import numbers, positive


@given(low=numbers, high=numbers)
def test_ticks_are_few_and_around_all_values(low: float, high: float) -> None:
    low, high = min(low, high), max(low, high)
    ticks = linear_ticks(low, high)
    step = ticks[1] - ticks[0]
    assert ticks[0] - 1e-6 * step <= low
    assert high <= ticks[-1] + 1e-6 * step
    is_one_value = high - low <= 1e-6 * max(abs(low), abs(high))
    assert (2 if is_one_value else 3) <= len(ticks) <= 7
    assert all(after - before == pytest.approx(step, rel=1e-3) for before, after in pairwise(ticks))


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0, 10, [0, 2, 4, 6, 8, 10]),
        (0, 1, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (0.1, 0.9, [0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        (3, 47, [0, 10, 20, 30, 40, 50]),
        (-2, 2, [-2, -1, 0, 1, 2]),
        (0, 1000, [0, 200, 400, 600, 800, 1000]),
        (990, 1010, [990, 995, 1000, 1005, 1010]),
    ],
)
def test_ticks_are_round(low: float, high: float, expected: list[float]) -> None:
    assert linear_ticks(low, high) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("low", "high", "first", "last"),
    [(100, 100, 99.5, 100), (0, 0, 0, 0.5), (99.9, 100, 99.4, 100), (50, 50, 49.4, 50.6), (120, 120, 100, 150)],
)
def test_score_ticks_end_where_scores_do(low: float, high: float, first: float, last: float) -> None:
    ticks = score_ticks(low, high)
    assert [ticks[0], ticks[-1]] == pytest.approx([first, last])


@given(low=positive, high=positive)
def test_log_ticks_are_around_all_values(low: float, high: float) -> None:
    low, high = min(low, high), max(low, high)
    ticks = log_ticks(low, high)
    assert ticks[0] <= low <= high < ticks[-1]
    assert len(ticks) == 2 or (ticks[1] > low and ticks[-2] <= high)  # none too many
    for before, after in pairwise(ticks):
        assert after / before == pytest.approx(2) or after / before == pytest.approx(2.5)


def test_log_ticks_are_1_2_and_5() -> None:
    assert log_ticks(15, 700) == pytest.approx([10, 20, 50, 100, 200, 500, 1000])
    assert log_ticks(0.02, 0.03) == pytest.approx([0.02, 0.05])
    assert log_ticks(1, 1) == pytest.approx([1, 2])


@pytest.mark.parametrize(
    ("value", "label"),
    [
        (0, "0"),
        (0.25, "0.25"),
        (999, "999"),
        (1000, "1k"),
        (2500, "2.5k"),
        (-2500, "-2.5k"),
        (1_000_000, "1M"),
        (3_200_000_000, "3.2G"),
        (0.1 + 0.2, "0.3"),
    ],
)
def test_labels_are_short(value: float, label: str) -> None:
    assert tick_label(value) == label
