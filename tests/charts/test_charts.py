"""Line charts and dot plots: well-formed SVG, with every point inside of its frame."""

import math
from itertools import pairwise
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_elmo.charts.plots import (
    BOTTOM,
    COLOURS,
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    Chart,
    DotPlot,
    Line,
    _label,
    _log_ticks,
    _score_ticks,
    _ticks,
    draw_charts,
    draw_dots,
)

SVG = "{http://www.w3.org/2000/svg}"

numbers = st.floats(-1e9, 1e9).filter(lambda x: x == 0 or abs(x) > 1e-9)
positive = st.floats(1e-9, 1e9)


def draw(*charts: Chart) -> list[Element]:
    """Draw charts, read what was drawn, and give one group for each chart."""
    document = ElementTree.fromstring(draw_charts(charts))
    assert document.tag == f"{SVG}svg"
    assert document.get("viewBox") == f"0 0 {WIDTH * len(charts)} {HEIGHT}"
    groups = document.findall(f"{SVG}g")
    assert [group.get("transform") for group in groups] == [f"translate({i * WIDTH} 0)" for i in range(len(charts))]
    return groups


def points_of(group: Element) -> list[list[tuple[float, float]]]:
    lines = []
    for line in group.findall(f"{SVG}polyline"):
        pairs = (pair.split(",") for pair in (line.get("points") or "").split())
        lines.append([(float(x), float(y)) for x, y in pairs])
    return lines


def texts_of(group: Element) -> list[str]:
    return ["".join(text.itertext()) for text in group.findall(f"{SVG}text")]


def assert_inside(points: list[tuple[float, float]]) -> None:
    for x, y in points:
        assert LEFT - 0.1 <= x <= WIDTH - RIGHT + 0.1
        assert TOP - 0.1 <= y <= HEIGHT - BOTTOM + 0.1


# Whole charts


def test_line_from_corner_to_corner() -> None:
    (group,) = draw(Chart("Loss", "steps", [Line("train", [(0, 0), (5, 2.5), (10, 10)])]))
    middle = (LEFT + WIDTH - RIGHT) / 2
    three_quarters = HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) / 4
    assert points_of(group) == [
        [
            (LEFT, HEIGHT - BOTTOM),
            (pytest.approx(middle, abs=0.1), pytest.approx(three_quarters, abs=0.1)),
            (WIDTH - RIGHT, TOP),
        ]
    ]
    assert texts_of(group) == ["Loss", *["0", "2", "4", "6", "8", "10"] * 2, "steps", "train"]


def test_equal_ratios_are_equally_far_apart() -> None:
    line = Line("perplexity", [(0, 1000), (1, 100), (2, 10)])
    (group,) = draw(Chart("", "", [line], log_scale=True))
    y = [y for _, y in points_of(group)[0]]
    assert y[1] - y[0] == pytest.approx(y[2] - y[1], abs=0.2)
    assert y[0] < y[1] < y[2]
    (group,) = draw(Chart("", "", [line]))
    y = [y for _, y in points_of(group)[0]]
    assert y[1] - y[0] > 5 * (y[2] - y[1])


def test_lines_have_their_own_colours_and_names() -> None:
    lines = [Line(f"line {i}", [(0, i), (1, i + 1)], dashed=i == 1) for i in range(7)]
    (group,) = draw(Chart("", "", lines))
    drawn = group.findall(f"{SVG}polyline")
    assert [line.get("stroke") for line in drawn] == [*COLOURS, *COLOURS[:2]]
    assert [line.get("stroke-dasharray") is not None for line in drawn] == [False, True] + [False] * 5
    assert texts_of(group)[-7:] == [line.name for line in lines]


def test_charts_side_by_side() -> None:
    one, other = Chart("one", "x", [Line("a", [(0, 1), (1, 2)])]), Chart("other", "y", [Line("b", [(0, 5), (1, 4)])])
    groups = draw(one, other)
    assert [texts_of(group)[0] for group in groups] == ["one", "other"]
    # The lines of each are placed by its own values.
    assert points_of(groups[0]) == [[(LEFT, HEIGHT - BOTTOM), (WIDTH - RIGHT, TOP)]]
    assert points_of(groups[1]) == [[(LEFT, TOP), (WIDTH - RIGHT, HEIGHT - BOTTOM)]]


def test_texts_are_escaped() -> None:
    title, label, name = "a < b & c", "</text> \"x\" 'y'", "<script>alert(1)</script>"
    (group,) = draw(Chart(title, label, [Line(name, [(0, 1), (1, 2)])]))
    texts = texts_of(group)
    assert texts[0] == title
    assert texts[-2:] == [label, name]
    (group,) = draw(Chart(title, label))
    assert texts_of(group)[0] == title


@pytest.mark.parametrize("lines", [[], [Line("train", [])]])
@pytest.mark.parametrize("log_scale", [True, False])
def test_no_points(lines: list[Line], log_scale: bool) -> None:
    (group,) = draw(Chart("Loss", "steps", lines, log_scale))
    assert texts_of(group) == ["Loss", "nothing to show yet"]


def test_one_line_may_be_empty() -> None:
    (group,) = draw(Chart("", "", [Line("dev", []), Line("train", [(0, 1), (1, 2)])]))
    assert [len(points) for points in points_of(group)] == [0, 2]


@pytest.mark.parametrize("value", [0.0, 3.0, -2.5, 0.0001, 123_456_789.0, 1 / 3])
@pytest.mark.parametrize("n_points", [1, 3])
def test_single_point_and_equal_values(value: float, n_points: int) -> None:
    for log_scale in (True, False) if value > 0 else (False,):
        (group,) = draw(Chart("", "", [Line("train", [(7, value)] * n_points)], log_scale))
        (points,) = points_of(group)
        assert len(points) == n_points
        assert_inside(points)


@given(points=st.lists(st.tuples(numbers, numbers), min_size=1, max_size=8))
def test_points_are_inside_of_the_frame(points: list[tuple[float, float]]) -> None:
    (group,) = draw(Chart("", "", [Line("train", points[:3]), Line("dev", points[3:])]))
    drawn = [point for line in points_of(group) for point in line]
    assert len(drawn) == len(points)
    assert_inside(drawn)


@given(points=st.lists(st.tuples(numbers, positive), min_size=1, max_size=8))
def test_points_are_inside_of_the_frame_on_a_log_scale(points: list[tuple[float, float]]) -> None:
    (group,) = draw(Chart("", "", [Line("train", points)], log_scale=True))
    assert_inside(points_of(group)[0])


# Means, and what they are of


def pairs_of(element: Element) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in (pair.split(",") for pair in (element.get("points") or "").split())]


def test_given_ticks_are_ends_and_ratios() -> None:
    line = Line("f", [(1, 10), (10, 20), (100, 30)], marked=True)
    (group,) = draw(Chart("", "", [line], x_ticks=[1, 10, 100]))
    middle = (LEFT + WIDTH - RIGHT) / 2
    assert [x for x, _ in points_of(group)[0]] == pytest.approx([LEFT, middle, WIDTH - RIGHT])
    dots = [(float(dot.get("cx") or 0), float(dot.get("cy") or 0)) for dot in group.findall(f"{SVG}circle")]
    assert dots == points_of(group)[0]
    (group,) = draw(Chart("", "", [Line("f", [(100, 10)])], x_ticks=[100]))
    assert_inside(points_of(group)[0])


def test_scores_end_at_a_hundred() -> None:
    line = Line("f", [(1, 100.0), (100, 100.0)])
    (group,) = draw(Chart("", "", [line], x_ticks=[1, 100], per_cent=True))
    assert "120" not in texts_of(group)
    assert "100" in texts_of(group)


def test_ticks_that_would_touch_are_left_out() -> None:
    (group,) = draw(Chart("", "share", [Line("f", [(1, 10), (100, 30)])], x_ticks=[1, 2, 50, 90, 95, 100]))
    texts = texts_of(group)
    assert texts[texts.index("share") - 4 : texts.index("share")] == ["1", "2", "50", "100"]


def test_bands_are_around_their_lines() -> None:
    line = Line("f", [(1, 20), (2, 30)], band=[(10, 25), (28, 40)])
    (group,) = draw(Chart("", "", [line, Line("g", [(1, 20), (2, 30)])]))
    (band,) = group.findall(f"{SVG}polygon")
    assert band.get("fill") == COLOURS[0]
    corners = pairs_of(band)
    assert corners == [
        (LEFT, HEIGHT - BOTTOM),
        (WIDTH - RIGHT, pytest.approx(HEIGHT - BOTTOM - 0.6 * (HEIGHT - BOTTOM - TOP), abs=0.1)),
        (WIDTH - RIGHT, TOP),
        (LEFT, pytest.approx((HEIGHT - BOTTOM + TOP) / 2, abs=0.1)),
    ]


def test_long_names_have_rows_of_their_own() -> None:
    names = ["short", "x" * 30, "y" * 200, "z"]
    (group,) = draw(Chart("", "", [Line(name, [(0, 0), (1, 1)]) for name in names]))
    legend = group.findall(f"{SVG}text")[-4:]
    assert [text.get("y") for text in legend] == ["36", "36", "52", "68"]
    assert "".join(legend[2].itertext()).endswith("…" + "y" * 200)  # cut off, and whole under the mouse
    assert len(legend[2].text or "") * 7 <= WIDTH - LEFT
    assert points_of(group)[0][-1] == (WIDTH - RIGHT, TOP + 32)


def dots_of(plot: DotPlot, alt: str = "") -> tuple[Element, dict[str, list[tuple[float, float]]]]:
    document = ElementTree.fromstring(draw_dots(plot, alt=alt))
    found: dict[str, list[tuple[float, float]]] = {}
    for dot in document.findall(f"{SVG}circle"):
        place = (float(dot.get("cx") or 0), float(dot.get("cy") or 0))
        found.setdefault(dot.get("fill") or "", []).append(place)
    return document, found


def test_each_value_is_a_dot_and_several_have_a_mean() -> None:
    rows = [("person", [[40.0, 42.0], [50.0]]), ("<b>&", [[], [44.0, 44.0]])]
    document, dots = dots_of(DotPlot("F", "score", ["baseline", "elmo"], rows), alt='a "b"')
    assert document.get("aria-label") == 'a "b"'
    blue, orange = dots[COLOURS[0]], dots[COLOURS[1]]
    assert (len(blue), len(orange)) == (2, 3)
    assert blue[0][1] == blue[1][1] < orange[0][1] < orange[1][1]
    assert blue[1][0] - blue[0][0] == pytest.approx((orange[0][0] - blue[0][0]) / 5, abs=0.1)
    means = [path for path in document.findall(f"{SVG}path") if path.get("stroke-width") == "2.5"]
    assert [path.get("stroke") for path in means] == [*COLOURS[:2]]
    middle = (blue[0][0] + blue[1][0]) / 2
    assert (means[0].get("d") or "").startswith(f"M{middle:.1f} ")
    texts = texts_of(document)
    assert texts[:3] == ["F", "baseline", "elmo"]
    assert texts[-2:] == ["person", "<b>&"]


@given(rows=st.lists(st.lists(st.lists(st.floats(0, 100), max_size=4), min_size=3, max_size=3), max_size=20))
def test_dots_are_inside_of_the_frame(rows: list[list[list[float]]]) -> None:
    plot = DotPlot("F", "score", ["a", "b" * 50, "c"], [("label" * 20, groups) for groups in rows])
    document, dots = dots_of(plot)
    _, _, width, height = map(float, (document.get("viewBox") or "").split())
    assert sum(map(len, dots.values())) == sum(len(group) for groups in rows for group in groups)
    for x, y in (place for places in dots.values() for place in places):
        assert 200 <= x <= width - RIGHT
        assert TOP <= y <= height - BOTTOM


@pytest.mark.parametrize("rows", [[], [("", [[], []])]])
def test_no_dots(rows: list[tuple[str, list[list[float]]]]) -> None:
    document, _ = dots_of(DotPlot("F", "score", ["a", "b"], rows))
    assert texts_of(document) == ["F", "a", "b", "nothing to show yet"]


@pytest.mark.parametrize(
    ("low", "high", "first", "last"),
    [(100, 100, 99.5, 100), (0, 0, 0, 0.5), (99.9, 100, 99.4, 100), (50, 50, 49.4, 50.6), (120, 120, 100, 150)],
)
def test_score_ticks_end_where_scores_do(low: float, high: float, first: float, last: float) -> None:
    ticks = _score_ticks(low, high)
    assert [ticks[0], ticks[-1]] == pytest.approx([first, last])


# Ticks


@given(low=numbers, high=numbers)
def test_ticks_are_few_and_around_all_values(low: float, high: float) -> None:
    low, high = min(low, high), max(low, high)
    ticks = _ticks(low, high)
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
    assert _ticks(low, high) == pytest.approx(expected)


@given(low=positive, high=positive)
def test_log_ticks_are_around_all_values(low: float, high: float) -> None:
    low, high = min(low, high), max(low, high)
    ticks = _log_ticks(low, high)
    assert ticks[0] <= low <= high < ticks[-1]
    assert len(ticks) == 2 or (ticks[1] > low and ticks[-2] <= high)  # none too many
    for before, after in pairwise(ticks):
        assert after / before == pytest.approx(2) or after / before == pytest.approx(2.5)


def test_log_ticks_are_1_2_and_5() -> None:
    assert _log_ticks(15, 700) == pytest.approx([10, 20, 50, 100, 200, 500, 1000])
    assert _log_ticks(0.02, 0.03) == pytest.approx([0.02, 0.05])
    assert _log_ticks(1, 1) == pytest.approx([1, 2])


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
    assert _label(value) == label


def test_hopeless_perplexities_can_be_drawn() -> None:
    (group,) = draw(Chart("", "", [Line("dev", [(0, math.exp(700)), (1, 30.0)])], log_scale=True))
    assert_inside(points_of(group)[0])
