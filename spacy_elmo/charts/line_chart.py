"""Line charts as SVG, side by side."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

from .axes import (
    BOTTOM,
    COLOURS,
    HEIGHT,
    LEFT,
    RIGHT,
    WIDTH,
    Scale,
    dash_style,
    draw_legend,
    draw_x_axis,
    draw_y_axis,
    linear_ticks,
    log_ticks,
    make_scale,
    score_ticks,
    svg_document,
)

Point = tuple[float, float]


@dataclass(frozen=True)
class Line:
    """One line of a chart.

    name (str): Its name in the legend.
    points (Sequence[Point]): Pairs of x and y, from left to right.
    dashed (bool): Whether it is dashed, for a line that is only a reference.
    band (Sequence[tuple]): For each point, the lowest and the highest y of the values that it is the mean of, or nothing.
    marked (bool): Whether each point also gets a dot.
    """

    name: str
    points: Sequence[Point]
    dashed: bool = False
    band: Sequence[tuple[float, float]] = ()
    marked: bool = False


@dataclass(frozen=True)
class LineChart:
    """One chart.

    title, x_label (str): The texts above and below it.
    lines (Sequence[Line]): Its lines.
    log_scale (bool): Whether the y axis is logarithmic.
    x_ticks (Sequence[float]): The numbers on the x axis, from left to right, which is logarithmic then and ends at the first and
        the last of them. Without them, the axis is linear and has round numbers.
    per_cent (bool): Whether y values are scores between 0 and 100.
    """

    title: str
    x_label: str
    lines: Sequence[Line] = field(default_factory=list)
    log_scale: bool = False
    x_ticks: Sequence[float] = ()
    per_cent: bool = False


def draw_line_charts(charts: Sequence[LineChart], *, alt: str = "") -> str:
    """Draw charts side by side.

    charts (Sequence[LineChart]): The charts.
    alt (str): What they show, for screen readers.
    RETURNS (str): An SVG document.
    """
    parts = []
    for i, chart in enumerate(charts):
        parts += [f'<g transform="translate({i * WIDTH} 0)">', *_draw_chart(chart), "</g>"]
    return svg_document(WIDTH * len(charts), HEIGHT, parts, alt)


def _draw_chart(chart: LineChart) -> list[str]:
    points = [point for line in chart.lines for point in line.points]
    parts = [f'<text x="{LEFT}" y="18" font-weight="bold">{escape(chart.title)}</text>']
    if not points:
        return [*parts, f'<text x="{LEFT}" y="{HEIGHT / 2}">nothing to show yet</text>']
    legend, top = draw_legend([(line.name, line.dashed) for line in chart.lines], LEFT)
    has_x_ticks = len(chart.x_ticks) > 1
    x_ticks = chart.x_ticks if has_x_ticks else linear_ticks(min(x for x, _ in points), max(x for x, _ in points))
    y_values = [y for _, y in points] + [y for line in chart.lines for pair in line.band for y in pair]
    find_ticks = log_ticks if chart.log_scale else score_ticks if chart.per_cent else linear_ticks
    y_ticks = find_ticks(min(y_values), max(y_values))
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    x_scale = make_scale(x_ticks[0], x_ticks[-1], LEFT, right, log_scale=has_x_ticks)
    y_scale = make_scale(y_ticks[0], y_ticks[-1], bottom, top, log_scale=chart.log_scale)
    parts += draw_y_axis(y_ticks, y_scale)
    parts += draw_x_axis(x_ticks, x_scale, chart.x_label, bottom)
    for line, colour in zip(chart.lines, COLOURS * len(chart.lines), strict=False):
        parts += _draw_band(line, colour, x_scale, y_scale)
    for line, colour in zip(chart.lines, COLOURS * len(chart.lines), strict=False):
        parts += _draw_line(line, colour, x_scale, y_scale)
    return [*parts, *legend]


def _draw_line(line: Line, colour: str, x_scale: Scale, y_scale: Scale) -> list[str]:
    points = [(f"{x_scale(x):.1f}", f"{y_scale(y):.1f}") for x, y in line.points]
    path = " ".join(",".join(point) for point in points)
    parts = [f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"{dash_style(line.dashed)}/>']
    if line.marked:
        parts += [f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}"/>' for x, y in points]
    return parts


def _draw_band(line: Line, colour: str, x_scale: Scale, y_scale: Scale) -> list[str]:
    """Draw the area between the lowest and the highest values. With one point, it is a vertical bar."""
    if not line.band:
        return []
    xs = [x_scale(x) for x, _ in line.points]
    lows = [f"{x:.1f},{y_scale(low):.1f}" for x, (low, _) in zip(xs, line.band, strict=True)]
    highs = [f"{x:.1f},{y_scale(high):.1f}" for x, (_, high) in zip(xs, line.band, strict=True)]
    path = " ".join([*lows, *reversed(highs)])
    return [f'<polygon points="{path}" fill="{colour}" fill-opacity="0.18" stroke="{colour}" stroke-opacity="0.35"/>']
