"""Scatter plots: well-formed SVG, dots where their values are, and names that can be read."""

from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import pytest

from spacy_elmo.charts.axes import BOTTOM, COLOURS, HEIGHT, LEFT, LETTER_WIDTH, RIGHT, TOP, WIDTH
from spacy_elmo.charts.scatter_plot import LINE_HEIGHT, ScatterPlot, draw_scatter_plot

from .drawings import SVG, texts_of


def draw(points: list[tuple[str, float, float]], **settings: list[str]) -> tuple[Element, list[Element]]:
    document = ElementTree.fromstring(draw_scatter_plot(ScatterPlot("F", "speed", points, **settings), alt="a <b>"))
    return document, document.findall(f"{SVG}circle")


def position(element: Element, x: str, y: str) -> tuple[float, float]:
    return float(element.get(x) or 0), float(element.get(y) or 0)


def test_dots_are_where_their_values_are() -> None:
    document, dots = draw([("a", 100, 20), ("b", 1000, 30), ("c & d", 10_000, 40)], highlighted=["b"])
    assert document.get("aria-label") == "a <b>"
    (x1, y1), (x2, y2), (x3, y3) = (position(dot, "cx", "cy") for dot in dots)
    assert x2 - x1 == pytest.approx(x3 - x2, abs=0.2)  # equal ratios
    assert y1 - y2 == pytest.approx(y2 - y3, abs=0.2)
    assert y1 > y2
    assert LEFT <= x1 < x3 <= WIDTH - RIGHT
    assert TOP <= y3 < y1 <= HEIGHT - BOTTOM
    assert [dot.get("fill") for dot in dots] == [COLOURS[0], COLOURS[1], COLOURS[0]]
    assert {"F", "speed", "a", "b", "c & d"} <= set(texts_of(document))


def test_names_do_not_overlap() -> None:
    points = [(f"a long name, {i}", 1000.0 + i, 30.0 + i / 100) for i in range(6)]
    document, _ = draw([("a", 10, 20), *points])
    names = [text for text in document.findall(f"{SVG}text") if (text.text or "").startswith("a long name")]
    places = sorted((position(text, "x", "y"), len(text.text or "")) for text in names)
    assert len(places) == 6
    for (x, _), n_letters in places:
        assert LEFT <= x <= x + n_letters * LETTER_WIDTH <= WIDTH - RIGHT + 1
    heights = sorted(y for (_, y), _ in places)
    assert all(b - a >= LINE_HEIGHT - 0.2 for a, b in zip(heights, heights[1:], strict=False))


def test_one_point() -> None:
    _, dots = draw([("a", 5, 50)])
    assert len(dots) == 1
