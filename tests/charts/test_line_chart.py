"""Line charts: well-formed SVG, with every point inside the frame."""

import math
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_elmo.charts.axes import BOTTOM, COLOURS, HEIGHT, LEFT, RIGHT, TOP, WIDTH
from spacy_elmo.charts.line_chart import Line, LineChart, draw_line_charts

from .drawings import SVG, numbers, positive, texts_of


def draw(*charts: LineChart) -> list[Element]:
    """Draw charts, read what was drawn, and give one group for each chart."""
    document = ElementTree.fromstring(draw_line_charts(charts))
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


def pairs_of(element: Element) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in (pair.split(",") for pair in (element.get("points") or "").split())]


def assert_inside(points: list[tuple[float, float]]) -> None:
    for x, y in points:
        assert LEFT - 0.1 <= x <= WIDTH - RIGHT + 0.1
        assert TOP - 0.1 <= y <= HEIGHT - BOTTOM + 0.1


def test_line_from_corner_to_corner() -> None:
    (group,) = draw(LineChart("Loss", "steps", [Line("train", [(0, 0), (5, 2.5), (10, 10)])]))
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
    (group,) = draw(LineChart("", "", [line], log_scale=True))
    y = [y for _, y in points_of(group)[0]]
    assert y[1] - y[0] == pytest.approx(y[2] - y[1], abs=0.2)
    assert y[0] < y[1] < y[2]
    (group,) = draw(LineChart("", "", [line]))
    y = [y for _, y in points_of(group)[0]]
    assert y[1] - y[0] > 5 * (y[2] - y[1])


def test_lines_have_their_own_colours_and_names() -> None:
    lines = [Line(f"line {i}", [(0, i), (1, i + 1)], dashed=i == 1) for i in range(7)]
    (group,) = draw(LineChart("", "", lines))
    drawn = group.findall(f"{SVG}polyline")
    assert [line.get("stroke") for line in drawn] == [*COLOURS, *COLOURS[:2]]
    assert [line.get("stroke-dasharray") is not None for line in drawn] == [False, True] + [False] * 5
    assert texts_of(group)[-7:] == [line.name for line in lines]


def test_charts_side_by_side() -> None:
    one, other = (
        LineChart("one", "x", [Line("a", [(0, 1), (1, 2)])]),
        LineChart("other", "y", [Line("b", [(0, 5), (1, 4)])]),
    )
    groups = draw(one, other)
    assert [texts_of(group)[0] for group in groups] == ["one", "other"]
    # The lines of each are placed by its own values.
    assert points_of(groups[0]) == [[(LEFT, HEIGHT - BOTTOM), (WIDTH - RIGHT, TOP)]]
    assert points_of(groups[1]) == [[(LEFT, TOP), (WIDTH - RIGHT, HEIGHT - BOTTOM)]]


def test_texts_are_escaped() -> None:
    title, label, name = "a < b & c", "</text> \"x\" 'y'", "<script>alert(1)</script>"
    (group,) = draw(LineChart(title, label, [Line(name, [(0, 1), (1, 2)])]))
    texts = texts_of(group)
    assert texts[0] == title
    assert texts[-2:] == [label, name]
    (group,) = draw(LineChart(title, label))
    assert texts_of(group)[0] == title


@pytest.mark.parametrize("lines", [[], [Line("train", [])]])
@pytest.mark.parametrize("log_scale", [True, False])
def test_no_points(lines: list[Line], log_scale: bool) -> None:
    (group,) = draw(LineChart("Loss", "steps", lines, log_scale))
    assert texts_of(group) == ["Loss", "nothing to show yet"]


def test_one_line_may_be_empty() -> None:
    (group,) = draw(LineChart("", "", [Line("dev", []), Line("train", [(0, 1), (1, 2)])]))
    assert [len(points) for points in points_of(group)] == [0, 2]


@pytest.mark.parametrize("value", [0.0, 3.0, -2.5, 0.0001, 123_456_789.0, 1 / 3])
@pytest.mark.parametrize("n_points", [1, 3])
def test_single_point_and_equal_values(value: float, n_points: int) -> None:
    for log_scale in (True, False) if value > 0 else (False,):
        (group,) = draw(LineChart("", "", [Line("train", [(7, value)] * n_points)], log_scale))
        (points,) = points_of(group)
        assert len(points) == n_points
        assert_inside(points)


@given(points=st.lists(st.tuples(numbers, numbers), min_size=1, max_size=8))
def test_points_are_inside_of_the_frame(points: list[tuple[float, float]]) -> None:
    (group,) = draw(LineChart("", "", [Line("train", points[:3]), Line("dev", points[3:])]))
    drawn = [point for line in points_of(group) for point in line]
    assert len(drawn) == len(points)
    assert_inside(drawn)


@given(points=st.lists(st.tuples(numbers, positive), min_size=1, max_size=8))
def test_points_are_inside_of_the_frame_on_a_log_scale(points: list[tuple[float, float]]) -> None:
    (group,) = draw(LineChart("", "", [Line("train", points)], log_scale=True))
    assert_inside(points_of(group)[0])


def test_hopeless_perplexities_can_be_drawn() -> None:
    (group,) = draw(LineChart("", "", [Line("dev", [(0, math.exp(700)), (1, 30.0)])], log_scale=True))
    assert_inside(points_of(group)[0])


def test_given_ticks_are_ends_and_ratios() -> None:
    line = Line("f", [(1, 10), (10, 20), (100, 30)], marked=True)
    (group,) = draw(LineChart("", "", [line], x_ticks=[1, 10, 100]))
    middle = (LEFT + WIDTH - RIGHT) / 2
    assert [x for x, _ in points_of(group)[0]] == pytest.approx([LEFT, middle, WIDTH - RIGHT])
    dots = [(float(dot.get("cx") or 0), float(dot.get("cy") or 0)) for dot in group.findall(f"{SVG}circle")]
    assert dots == points_of(group)[0]
    (group,) = draw(LineChart("", "", [Line("f", [(100, 10)])], x_ticks=[100]))
    assert_inside(points_of(group)[0])


def test_scores_end_at_a_hundred() -> None:
    line = Line("f", [(1, 100.0), (100, 100.0)])
    (group,) = draw(LineChart("", "", [line], x_ticks=[1, 100], per_cent=True))
    assert "120" not in texts_of(group)
    assert "100" in texts_of(group)


def test_ticks_that_would_touch_are_left_out() -> None:
    (group,) = draw(LineChart("", "fraction", [Line("f", [(1, 10), (100, 30)])], x_ticks=[1, 2, 50, 90, 95, 100]))
    texts = texts_of(group)
    assert texts[texts.index("fraction") - 4 : texts.index("fraction")] == ["1", "2", "50", "100"]


def test_bands_are_around_their_lines() -> None:
    line = Line("f", [(1, 20), (2, 30)], band=[(10, 25), (28, 40)])
    (group,) = draw(LineChart("", "", [line, Line("g", [(1, 20), (2, 30)])]))
    (band,) = group.findall(f"{SVG}polygon")
    assert band.get("fill") == COLOURS[0]
    corners = pairs_of(band)
    assert corners == [
        (LEFT, HEIGHT - BOTTOM),
        (WIDTH - RIGHT, pytest.approx(HEIGHT - BOTTOM - 0.6 * (HEIGHT - BOTTOM - TOP), abs=0.1)),
        (WIDTH - RIGHT, TOP),
        (LEFT, pytest.approx((HEIGHT - BOTTOM + TOP) / 2, abs=0.1)),
    ]


def test_long_names_have_separate_rows() -> None:
    names = ["short", "x" * 30, "y" * 200, "z"]
    (group,) = draw(LineChart("", "", [Line(name, [(0, 0), (1, 1)]) for name in names]))
    legend = group.findall(f"{SVG}text")[-4:]
    assert [text.get("y") for text in legend] == ["36", "36", "52", "68"]
    assert "".join(legend[2].itertext()).endswith("…" + "y" * 200)  # cut off, and whole under the mouse
    assert len(legend[2].text or "") * 7 <= WIDTH - LEFT
    assert points_of(group)[0][-1] == (WIDTH - RIGHT, TOP + 32)
