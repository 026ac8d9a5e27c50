"""Dot plots: well-formed SVG, with every dot inside the frame."""

from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_elmo.charts.axes import BOTTOM, COLOURS, RIGHT, TOP
from spacy_elmo.charts.dot_plot import DotPlot, draw_dot_plot

from .drawings import SVG, texts_of


def dots_of(plot: DotPlot, alt: str = "") -> tuple[Element, dict[str, list[tuple[float, float]]]]:
    document = ElementTree.fromstring(draw_dot_plot(plot, alt=alt))
    found: dict[str, list[tuple[float, float]]] = {}
    for dot in document.findall(f"{SVG}circle"):
        trial_id = (float(dot.get("cx") or 0), float(dot.get("cy") or 0))
        found.setdefault(dot.get("fill") or "", []).append(trial_id)
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
    for x, y in (trial_id for trial_ids in dots.values() for trial_id in trial_ids):
        assert 200 <= x <= width - RIGHT
        assert TOP <= y <= height - BOTTOM


@pytest.mark.parametrize("rows", [[], [("", [[], []])]])
def test_no_dots(rows: list[tuple[str, list[list[float]]]]) -> None:
    document, _ = dots_of(DotPlot("F", "score", ["a", "b"], rows))
    assert texts_of(document) == ["F", "a", "b", "nothing to show yet"]
