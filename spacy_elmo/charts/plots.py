"""Line charts and dot plots as SVG: plain text that opens in every browser, drawn without a plotting library."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from html import escape

WIDTH, HEIGHT = 460, 320
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 44, 48
# Told apart by people who see colours differently (Okabe and Ito's palette), on white as on black.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00")
# A page that shows a chart on another background can find these, and change them.
PAPER, FAINT, MUTED = "white", "#ddd", "#555"
LETTER = 7  # the width of one, about
LEGEND_ROW = 16

Pair = tuple[float, float]
Placer = Callable[[float], float]  # a value to where it is drawn


@dataclass(frozen=True)
class Line:
    """One line of a chart.

    name (str): What it shows.
    points (Sequence[Pair]): Pairs of x and y, from left to right.
    dashed (bool): Whether it is there to be compared with.
    band (Sequence[Pair]): For each point the lowest and the highest y of what it is the mean of, or nothing.
    marked (bool): Whether each point is a dot as well.
    """

    name: str
    points: Sequence[Pair]
    dashed: bool = False
    band: Sequence[Pair] = ()
    marked: bool = False


@dataclass(frozen=True)
class Chart:
    """One chart.

    title, x_label (str): What is written around it.
    lines (Sequence[Line]): Its lines.
    log_scale (bool): Whether equal ratios, not equal differences, are equally far apart upwards.
    x_ticks (Sequence[float]): Where numbers stand below it, from left to right, if not where it finds best: the first and the
        last are its ends, and equal ratios between them are equally far apart.
    per_cent (bool): Whether heights are scores, which end at 0 and 100.
    """

    title: str
    x_label: str
    lines: Sequence[Line] = field(default_factory=list)
    log_scale: bool = False
    x_ticks: Sequence[float] = ()
    per_cent: bool = False


@dataclass(frozen=True)
class DotPlot:
    """Values side by side, each a dot, and a bar at the mean of those that belong together.

    title, x_label (str): What is written around it.
    series (Sequence[str]): What the colours stand for.
    rows (Sequence): What is on the left, and the values of each of the series there, or none.
    """

    title: str
    x_label: str
    series: Sequence[str]
    rows: Sequence[tuple[str, Sequence[Sequence[float]]]]


def draw_charts(charts: Sequence[Chart], *, alt: str = "") -> str:
    """Draw charts side by side.

    charts (Sequence[Chart]): The charts.
    alt (str): What is to be seen, for those who cannot.
    RETURNS (str): An SVG document.
    """
    parts = []
    for i, chart in enumerate(charts):
        parts += [f'<g transform="translate({i * WIDTH} 0)">', *_draw(chart), "</g>"]
    return _document(WIDTH * len(charts), HEIGHT, parts, alt)


def draw_dots(plot: DotPlot, *, alt: str = "") -> str:
    """Draw a dot plot.

    plot (DotPlot): The plot.
    alt (str): What is to be seen, for those who cannot.
    RETURNS (str): An SVG document.
    """
    lane, gap = (12, 10) if len(plot.rows) > 1 else (18, 12)
    row_height = lane * len(plot.series) + gap
    left = min(200, 16 + LETTER * max((len(name) for name, _ in plot.rows), default=0))
    right = WIDTH - RIGHT
    legend, top = _legend([(name, False) for name in plot.series], 16)
    bottom = top + row_height * len(plot.rows)
    parts = [f'<text x="16" y="18" font-weight="bold">{escape(plot.title)}</text>', *legend]
    values = [value for _, groups in plot.rows for group in groups for value in group]
    if not values:
        parts.append(f'<text x="16" y="{top + 14}">nothing to show yet</text>')
        return _document(WIDTH, bottom + BOTTOM, parts, alt)
    x_ticks = _score_ticks(min(values), max(values))
    x_place = _scale(x_ticks[0], x_ticks[-1], left + 8, right - 8)
    for x in x_ticks:
        parts.append(f'<path d="M{x_place(x):.1f} {top}V{bottom}" stroke="{FAINT}"/>')
    parts += _below(x_ticks, x_place, plot.x_label, bottom)
    for i, (name, groups) in enumerate(plot.rows):
        y = top + i * row_height
        if i:
            parts.append(f'<path d="M16 {y}H{right}" stroke="{FAINT}"/>')
        parts.append(
            f'<text x="{left - 6}" y="{y + row_height / 2 + 4}" text-anchor="end">{_fit(name, left - 16)}</text>'
        )
        for j, group in enumerate(groups):
            parts += _dots([x_place(x) for x in group], y + gap / 2 + lane * (j + 0.5), COLOURS[j % len(COLOURS)])
    return _document(WIDTH, bottom + BOTTOM, parts, alt)


def _dots(places: Sequence[float], y: float, colour: str) -> list[str]:
    dots = [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}" fill-opacity="0.6"/>' for x in places]
    if len(places) > 1:
        mean = sum(places) / len(places)
        dots.append(f'<path d="M{mean:.1f} {y - 6:.1f}v12" stroke="{colour}" stroke-width="2.5"/>')
    return dots


def _draw(chart: Chart) -> list[str]:
    points = [point for line in chart.lines for point in line.points]
    parts = [f'<text x="{LEFT}" y="18" font-weight="bold">{escape(chart.title)}</text>']
    if not points:
        return [*parts, f'<text x="{LEFT}" y="{HEIGHT / 2}">nothing to show yet</text>']
    legend, top = _legend([(line.name, line.dashed) for line in chart.lines], LEFT)
    has_x_ticks = len(chart.x_ticks) > 1
    x_ticks = chart.x_ticks if has_x_ticks else _ticks(min(x for x, _ in points), max(x for x, _ in points))
    heights = [y for _, y in points] + [y for line in chart.lines for pair in line.band for y in pair]
    find_ticks = _log_ticks if chart.log_scale else _score_ticks if chart.per_cent else _ticks
    y_ticks = find_ticks(min(heights), max(heights))
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    x_place = _scale(x_ticks[0], x_ticks[-1], LEFT, right, log_scale=has_x_ticks)
    y_place = _scale(y_ticks[0], y_ticks[-1], bottom, top, log_scale=chart.log_scale)
    for y in y_ticks:
        parts.append(f'<path d="M{LEFT} {y_place(y):.1f}H{right}" stroke="{FAINT}"/>')
        parts.append(
            f'<text x="{LEFT - 6}" y="{y_place(y) + 4:.1f}" text-anchor="end" fill="{MUTED}">{_label(y)}</text>'
        )
    parts += _below(x_ticks, x_place, chart.x_label, bottom, left=LEFT)
    for line, colour in zip(chart.lines, COLOURS * len(chart.lines), strict=False):
        parts += _band(line, colour, x_place, y_place)
    for line, colour in zip(chart.lines, COLOURS * len(chart.lines), strict=False):
        parts += _line(line, colour, x_place, y_place)
    return [*parts, *legend]


def _line(line: Line, colour: str, x_place: Placer, y_place: Placer) -> list[str]:
    places = [(f"{x_place(x):.1f}", f"{y_place(y):.1f}") for x, y in line.points]
    path = " ".join(",".join(place) for place in places)
    parts = [f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"{_dash(line.dashed)}/>']
    if line.marked:
        parts += [f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}"/>' for x, y in places]
    return parts


def _band(line: Line, colour: str, x_place: Placer, y_place: Placer) -> list[str]:
    """What lies between the lowest and the highest; where there is but one x, a bar."""
    if not line.band:
        return []
    x_places = [x_place(x) for x, _ in line.points]
    lows = [f"{x:.1f},{y_place(low):.1f}" for x, (low, _) in zip(x_places, line.band, strict=True)]
    highs = [f"{x:.1f},{y_place(high):.1f}" for x, (_, high) in zip(x_places, line.band, strict=True)]
    path = " ".join([*lows, *reversed(highs)])
    return [f'<polygon points="{path}" fill="{colour}" fill-opacity="0.18" stroke="{colour}" stroke-opacity="0.35"/>']


def _legend(names: Sequence[tuple[str, bool]], left: float) -> tuple[list[str], float]:
    """Name the lines below the title, in as many rows as it takes, and say where the chart can begin."""
    parts, x, y = [], left, 32.0
    for (name, is_dashed), colour in zip(names, COLOURS * len(names), strict=False):
        room = WIDTH - RIGHT - left - 20
        width = min(room, LETTER * len(name))
        if x > left and x + 20 + width > WIDTH - RIGHT:
            x, y = left, y + LEGEND_ROW
        parts.append(f'<path d="M{x:.0f} {y:.0f}h16" stroke="{colour}" stroke-width="2"{_dash(is_dashed)}/>')
        parts.append(f'<text x="{x + 20:.0f}" y="{y + 4:.0f}">{_fit(name, room)}</text>')
        x += 36 + width
    return parts, y - 32 + TOP


def _below(ticks: Sequence[float], place: Placer, label: str, bottom: float, *, left: float | None = None) -> list[str]:
    """The numbers below a chart, without those that would touch the one on their right, and what they are of."""
    parts, last = [], math.inf
    for x in reversed(ticks):
        if last - place(x) > LETTER * (len(_label(x)) + 1):
            last = place(x)
            parts.append(
                f'<text x="{last:.1f}" y="{bottom + 16:g}" text-anchor="middle" fill="{MUTED}">{_label(x)}</text>'
            )
    middle = ((place(ticks[0]) if left is None else left) + place(ticks[-1])) / 2
    text = f'<text x="{middle:.1f}" y="{bottom + 38:g}" text-anchor="middle" fill="{MUTED}">{escape(label)}</text>'
    return [*reversed(parts), text]


def _dash(is_dashed: bool) -> str:
    return ' stroke-dasharray="5 4"' if is_dashed else ""


def _fit(text: str, width: float) -> str:
    """Cut a text off where its place ends; all of it appears under the mouse."""
    n_letters = int(width / LETTER)
    if len(text) <= n_letters:
        return escape(text)
    return f"{escape(text[: n_letters - 1])}…<title>{escape(text)}</title>"


def _document(width: float, height: float, parts: Sequence[str], alt: str) -> str:
    name = f' aria-label="{escape(alt)}"' if alt else ""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}" '
            f'font-family="system-ui, sans-serif" font-size="12" role="img"{name}>',
            f'<rect width="{width:g}" height="{height:g}" fill="{PAPER}"/>',
            *parts,
            "</svg>\n",
        ]
    )


def _scale(low: float, high: float, start: float, end: float, *, log_scale: bool = False) -> Placer:
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


def _score_ticks(low: float, high: float) -> list[float]:
    """Round numbers around scores, which end at 0 and 100 and may all be the same."""
    if high - low < 1 and high <= 100 and low >= 0:
        low, high = max(0.0, low - 0.5), min(100.0, high + 0.5)
    return _ticks(low, high)


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
