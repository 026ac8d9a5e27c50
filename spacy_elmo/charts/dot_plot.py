"""Dot plots as SVG: every value is a dot, and a bar marks the mean of a group."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from .axes import (
    BOTTOM,
    COLOURS,
    FAINT,
    LETTER_WIDTH,
    RIGHT,
    WIDTH,
    draw_legend,
    draw_x_axis,
    fit_text,
    make_scale,
    score_ticks,
    svg_document,
)

DOTS_CAPTION = "Each dot is a seed, each bar the mean of several."


@dataclass(frozen=True)
class DotPlot:
    """Groups of values, one row for each name and one colour for each series.

    title, x_label (str): The texts above and below it.
    series (Sequence[str]): The names of the series, in the legend.
    rows (Sequence[tuple]): For each row its name and its groups: the values of each series, which may be empty.
    """

    title: str
    x_label: str
    series: Sequence[str]
    rows: Sequence[tuple[str, Sequence[Sequence[float]]]]


def draw_dot_plot(plot: DotPlot, *, alt: str = "") -> str:
    """Draw a dot plot.

    plot (DotPlot): The plot.
    alt (str): What it shows, for screen readers.
    RETURNS (str): An SVG document.
    """
    group_height, gap = (12, 10) if len(plot.rows) > 1 else (18, 12)
    row_height = group_height * len(plot.series) + gap
    left = min(200, 16 + LETTER_WIDTH * max((len(name) for name, _ in plot.rows), default=0))
    right = WIDTH - RIGHT
    legend, top = draw_legend([(name, False) for name in plot.series], 16)
    bottom = top + row_height * len(plot.rows)
    parts = [f'<text x="16" y="18" font-weight="bold">{escape(plot.title)}</text>', *legend]
    values = [value for _, groups in plot.rows for group in groups for value in group]
    if not values:
        parts.append(f'<text x="16" y="{top + 14}">nothing to show yet</text>')
        return svg_document(WIDTH, bottom + BOTTOM, parts, alt)
    ticks = score_ticks(min(values), max(values))
    scale = make_scale(ticks[0], ticks[-1], left + 8, right - 8)
    for x in ticks:
        parts.append(f'<path d="M{scale(x):.1f} {top}V{bottom}" stroke="{FAINT}"/>')
    parts += draw_x_axis(ticks, scale, plot.x_label, bottom)
    for i, (name, groups) in enumerate(plot.rows):
        y = top + i * row_height
        if i:
            parts.append(f'<path d="M16 {y}H{right}" stroke="{FAINT}"/>')
        parts.append(
            f'<text x="{left - 6}" y="{y + row_height / 2 + 4}" text-anchor="end">{fit_text(name, left - 16)}</text>'
        )
        for j, group in enumerate(groups):
            y_group = y + gap / 2 + group_height * (j + 0.5)
            parts += _draw_group([scale(x) for x in group], y_group, COLOURS[j % len(COLOURS)])
    return svg_document(WIDTH, bottom + BOTTOM, parts, alt)


def _draw_group(xs: Sequence[float], y: float, colour: str) -> list[str]:
    parts = [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}" fill-opacity="0.6"/>' for x in xs]
    if len(xs) > 1:
        mean = sum(xs) / len(xs)
        parts.append(f'<path d="M{mean:.1f} {y - 6:.1f}v12" stroke="{colour}" stroke-width="2.5"/>')
    return parts
