"""Line charts as SVG: plain text that opens in every browser, drawn without a plotting library."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from html import escape

WIDTH, HEIGHT = 460, 320
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 44, 48
# Told apart by people who see colours differently (Okabe and Ito's palette), on white as on black.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00")


@dataclass(frozen=True)
class Line:
    """One line of a chart.

    name (str): What it shows.
    points (Sequence): Pairs of x and y, from left to right.
    dashed (bool): Whether it is there to be compared with.
    """

    name: str
    points: Sequence[tuple[float, float]]
    dashed: bool = False


@dataclass(frozen=True)
class Chart:
    """One chart.

    title, x_label (str): What is written around it.
    lines (Sequence[Line]): Its lines.
    log_scale (bool): Whether equal ratios, not equal differences, are equally far apart upwards.
    """

    title: str
    x_label: str
    lines: Sequence[Line] = field(default_factory=list)
    log_scale: bool = False


def draw_charts(charts: Sequence[Chart]) -> str:
    """Draw charts side by side.

    charts (Sequence[Chart]): The charts.
    RETURNS (str): An SVG document.
    """
    width = WIDTH * len(charts)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {HEIGHT}" width="{width}" height="{HEIGHT}" '
        f'font-family="system-ui, sans-serif" font-size="12" role="img">',
        f'<rect width="{width}" height="{HEIGHT}" fill="white"/>',
    ]
    for i, chart in enumerate(charts):
        parts += [f'<g transform="translate({i * WIDTH} 0)">', *_draw(chart), "</g>"]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _draw(chart: Chart) -> list[str]:
    points = [point for line in chart.lines for point in line.points]
    parts = [f'<text x="{LEFT}" y="18" font-weight="bold">{escape(chart.title)}</text>']
    if not points:
        return [*parts, f'<text x="{LEFT}" y="{HEIGHT / 2}">nothing to show yet</text>']
    x_ticks = _ticks(min(x for x, _ in points), max(x for x, _ in points))
    low, high = min(y for _, y in points), max(y for _, y in points)
    y_ticks = _log_ticks(low, high) if chart.log_scale else _ticks(low, high)
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    x_place = _scale(x_ticks[0], x_ticks[-1], LEFT, right)
    y_place = _scale(y_ticks[0], y_ticks[-1], bottom, TOP, log_scale=chart.log_scale)
    for y in y_ticks:
        parts.append(f'<path d="M{LEFT} {y_place(y):.1f}H{right}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y_place(y) + 4:.1f}" text-anchor="end" fill="#555">{_label(y)}</text>')
    for x in x_ticks:
        parts.append(
            f'<text x="{x_place(x):.1f}" y="{bottom + 16}" text-anchor="middle" fill="#555">{_label(x)}</text>'
        )
    parts.append(
        f'<text x="{(LEFT + right) / 2}" y="{HEIGHT - 10}" text-anchor="middle" fill="#555">{escape(chart.x_label)}</text>'
    )
    legend_x = float(LEFT)
    for line, colour in zip(chart.lines, COLOURS * len(chart.lines), strict=False):
        dash = ' stroke-dasharray="5 4"' if line.dashed else ""
        path = " ".join(f"{x_place(x):.1f},{y_place(y):.1f}" for x, y in line.points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')
        parts.append(f'<path d="M{legend_x:.0f} 32h16" stroke="{colour}" stroke-width="2"{dash}/>')
        parts.append(f'<text x="{legend_x + 20:.0f}" y="36">{escape(line.name)}</text>')
        legend_x += 36 + 7 * len(line.name)
    return parts


def _scale(low: float, high: float, start: float, end: float, *, log_scale: bool = False) -> Callable[[float], float]:
    measure = math.log if log_scale else float
    first, last = measure(low), measure(high)
    return lambda value: start + (end - start) * (measure(value) - first) / (last - first)


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers, two to seven of them, the first below and the last above all values."""
    span = (high - low) or abs(high) or 1.0
    unit = 10 ** math.floor(math.log10(span))
    step = next(unit * share for share in (0.2, 0.5, 1, 2) if span / (unit * share) <= 5)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [i * step for i in range(first, max(last, first + 1) + 1)]


def _log_ticks(low: float, high: float) -> list[float]:
    """1, 2 and 5 times the powers of ten, from below all values to above them."""
    powers = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 2)
    ticks = [digit * 10.0**power for power in powers for digit in (1, 2, 5)]
    below, above = max(tick for tick in ticks if tick <= low), min(tick for tick in ticks if tick > high)
    return [tick for tick in ticks if below <= tick <= above]


def _label(value: float) -> str:
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{letter}"
    return f"{value:.3g}"
