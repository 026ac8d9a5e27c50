"""Heat maps: shades and numbers that can be read."""

from xml.etree import ElementTree

from spacy_elmo.charts.axes import MUTED, PAPER
from spacy_elmo.charts.heat_map import draw_heat_map

from .drawings import SVG


def test_heat_map_shades_and_escapes() -> None:
    svg = draw_heat_map("A <title> & more", ["x", "y"], [("<b>", [0.6, 0.75])], ["n & m"])
    root = ElementTree.fromstring(svg)
    shades = [rect.get("fill-opacity") for rect in root.iter(f"{SVG}rect")][1:]
    assert shades == ["0.60", "0.75"]
    texts = [(text.text, text.get("fill")) for text in root.iter(f"{SVG}text")]
    assert texts[0][0] == "A <title> & more"
    # What has no fill is as dark or light as the page's other text.
    assert texts[3:] == [("<b>", None), ("0.60", None), ("0.75", PAPER), ("n & m", MUTED)]
    assert 'fill-opacity="0.05"' in draw_heat_map("Nothing is seen, too", ["x"], [("a", [0.0])])
    width = float(root.get("width", "0"))
    assert all(float(text.get("x", "0")) < width for text in root.iter(f"{SVG}text"))
