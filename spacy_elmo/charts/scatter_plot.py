"""Scatter plots as SVG: named points, with their names beside them."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from .axes import (
    BOTTOM,
    COLOURS,
    HEIGHT,
    LEFT,
    LETTER_WIDTH,
    RIGHT,
    TOP,
    WIDTH,
    draw_x_axis,
    draw_y_axis,
    log_ticks,
    make_scale,
    score_ticks,
    svg_document,
)

LINE_HEIGHT = 13
RADIUS = 4.5


@dataclass(frozen=True)
class ScatterPlot:
    """Named points.

    title, x_label (str): The texts above and below it.
    points (Sequence[tuple]): The name, x and y of each. The x axis is logarithmic, y values are scores between 0 and 100.
    highlighted (Sequence[str]): The names of points with a colour of their own.
    """

    title: str
    x_label: str
    points: Sequence[tuple[str, float, float]]
    highlighted: Sequence[str] = ()


def draw_scatter_plot(plot: ScatterPlot, *, alt: str = "") -> str:
    """Draw a scatter plot.

    plot (ScatterPlot): The plot, with at least one point.
    alt (str): What it shows, for screen readers.
    RETURNS (str): An SVG document.
    """
    names, xs, ys = zip(*plot.points, strict=True)
    x_ticks, y_ticks = log_ticks(min(xs), max(xs)), score_ticks(min(ys), max(ys))
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    x_scale = make_scale(x_ticks[0], x_ticks[-1], LEFT, right, log_scale=True)
    y_scale = make_scale(y_ticks[0], y_ticks[-1], bottom, TOP)
    parts = [f'<text x="{LEFT}" y="18" font-weight="bold">{escape(plot.title)}</text>']
    parts += draw_y_axis(y_ticks, y_scale)
    parts += draw_x_axis(x_ticks, x_scale, plot.x_label, bottom)
    dots = [(name, x_scale(x), y_scale(y)) for name, x, y in plot.points]
    for (name, x, y), (label_x, label_y) in zip(dots, _place_labels(dots, right), strict=True):
        colour = COLOURS[1] if name in plot.highlighted else COLOURS[0]
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{RADIUS}" fill="{colour}"/>')
        parts.append(f'<text x="{label_x:.1f}" y="{label_y + 4:.1f}">{escape(name)}</text>')
    return svg_document(WIDTH, HEIGHT, parts, alt)


def _place_labels(dots: Sequence[tuple[str, float, float]], right: float) -> list[tuple[float, float]]:
    """Place names right of their dots, above or below them, or left of them, each at the nearest height that is free.

    RETURNS (list[tuple]): For each dot, the left end and the middle of its name.
    """
    gap = RADIUS + 4
    taken = [(x - RADIUS, x + RADIUS, y) for _, x, y in dots]
    placed = []
    for name, x, y in dots:
        width = LETTER_WIDTH * len(name)
        starts = [x + gap] if x + gap + width <= right else []
        starts += [max(LEFT, min(x - width / 2, right - width)), max(LEFT, x - gap - width)]
        places = [(start, y + i * LINE_HEIGHT / 2) for i in range(-20, 21) for start in starts]
        start, height = next(
            (start, height)
            for start, height in sorted(places, key=lambda place: abs(place[1] - y))
            if all(
                start > other_end or start + width < other_start or abs(height - other) >= LINE_HEIGHT
                for other_start, other_end, other in taken
            )
        )
        taken.append((start, start + width, height))
        placed.append((start, height))
    return placed
