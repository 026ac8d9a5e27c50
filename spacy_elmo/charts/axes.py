"""What all charts share: colours, sizes, ticks, legends, and the SVG document around them.

The charts are drawn without a plotting library. SVG is plain text, so a page can give a chart its own colours, and a test can
read the values back.
"""

import math
from collections.abc import Callable, Sequence
from html import escape

WIDTH, HEIGHT = 460, 320
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 44, 48
# Okabe and Ito's palette: people with colour vision deficiencies can distinguish these, on white and on black.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00")
# A page with another background finds these colours in the SVG and replaces them.
PAPER, FAINT, MUTED = "white", "#ddd", "#555"
LETTER_WIDTH = 7  # pixels, about
LEGEND_Y, LEGEND_ROW_HEIGHT = 32, 16

Scale = Callable[[float], float]  # from a value to a coordinate


def make_scale(low: float, high: float, start: float, end: float, *, log_scale: bool = False) -> Scale:
    """Map a range of values to a range of coordinates.

    low, high (float): The values at the two ends.
    start, end (float): The coordinates of the two ends.
    log_scale (bool): Whether equal ratios, not equal differences, are equally far apart.
    RETURNS (Scale): The mapping.
    """
    measure = math.log if log_scale else float
    first, last = measure(low), measure(high)
    return lambda value: start + (end - start) * (measure(value) - first) / (last - first)


def linear_ticks(low: float, high: float) -> list[float]:
    """RETURNS (list[float]): Two to seven round numbers. The first is not above `low`, the last not below `high`."""
    span = (high - low) or abs(high) or 1.0
    unit = 10 ** math.floor(math.log10(span))
    step = next(unit * factor for factor in (0.2, 0.5, 1, 2) if span / (unit * factor) <= 5)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [i * step for i in range(first, max(last, first + 1) + 1)]


def score_ticks(low: float, high: float) -> list[float]:
    """RETURNS (list[float]): Round numbers around scores, which lie between 0 and 100 and may all be equal."""
    if high - low < 1 and high <= 100 and low >= 0:
        low, high = max(0.0, low - 0.5), min(100.0, high + 0.5)
    return linear_ticks(low, high)


def log_ticks(low: float, high: float) -> list[float]:
    """RETURNS (list[float]): 1, 2 and 5 times powers of ten. The first is not above `low`, the last is above `high`."""
    powers = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 2)
    ticks = [digit * 10.0**power for power in powers for digit in (1, 2, 5)]
    below, above = max(tick for tick in ticks if tick <= low), min(tick for tick in ticks if tick > high)
    return [tick for tick in ticks if below <= tick <= above]


def tick_label(value: float) -> str:
    """RETURNS (str): A number with at most three digits and a unit, such as 2.5k."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{letter}"
    return f"{value:.3g}"


def draw_x_axis(ticks: Sequence[float], scale: Scale, label: str, bottom: float) -> list[str]:
    """Draw the numbers and the label below a chart. A number that would touch its right neighbour is left out.

    ticks (Sequence[float]): The numbers, from left to right.
    scale (Scale): From a number to its x coordinate.
    label (str): What the numbers measure.
    bottom (float): The y coordinate of the lower edge of the chart.
    RETURNS (list[str]): SVG elements.
    """
    parts, last = [], math.inf
    for x in reversed(ticks):
        if last - scale(x) > LETTER_WIDTH * (len(tick_label(x)) + 1):
            last = scale(x)
            parts.append(
                f'<text x="{last:.1f}" y="{bottom + 16:g}" text-anchor="middle" fill="{MUTED}">{tick_label(x)}</text>'
            )
    middle = (scale(ticks[0]) + scale(ticks[-1])) / 2
    text = f'<text x="{middle:.1f}" y="{bottom + 38:g}" text-anchor="middle" fill="{MUTED}">{escape(label)}</text>'
    return [*reversed(parts), text]


def draw_y_axis(ticks: Sequence[float], scale: Scale) -> list[str]:
    """Draw the numbers left of a chart, and a line across the chart for each.

    ticks (Sequence[float]): The numbers.
    scale (Scale): From a number to its y coordinate.
    RETURNS (list[str]): SVG elements.
    """
    parts = []
    for y in ticks:
        parts.append(f'<path d="M{LEFT} {scale(y):.1f}H{WIDTH - RIGHT}" stroke="{FAINT}"/>')
        parts.append(
            f'<text x="{LEFT - 6}" y="{scale(y) + 4:.1f}" text-anchor="end" fill="{MUTED}">{tick_label(y)}</text>'
        )
    return parts


def draw_legend(names: Sequence[tuple[str, bool]], left: float) -> tuple[list[str], float]:
    """Draw the names of lines or series below the title, in as many rows as they need.

    names (Sequence[tuple]): Each name, and whether its line is dashed.
    left (float): The x coordinate where rows begin.
    RETURNS (tuple): SVG elements, and the y coordinate where the chart can begin.
    """
    parts, x, y = [], left, float(LEGEND_Y)
    for (name, is_dashed), colour in zip(names, COLOURS * len(names), strict=False):
        max_width = WIDTH - RIGHT - left - 20
        width = min(max_width, LETTER_WIDTH * len(name))
        if x > left and x + 20 + width > WIDTH - RIGHT:
            x, y = left, y + LEGEND_ROW_HEIGHT
        parts.append(f'<path d="M{x:.0f} {y:.0f}h16" stroke="{colour}" stroke-width="2"{dash_style(is_dashed)}/>')
        parts.append(f'<text x="{x + 20:.0f}" y="{y + 4:.0f}">{fit_text(name, max_width)}</text>')
        x += 36 + width
    return parts, y - LEGEND_Y + TOP


def dash_style(is_dashed: bool) -> str:
    """RETURNS (str): The SVG attribute of a dashed line, or nothing."""
    return ' stroke-dasharray="5 4"' if is_dashed else ""


def fit_text(text: str, width: float) -> str:
    """RETURNS (str): A text, escaped and cut to a width in pixels. A tooltip shows the whole text."""
    n_letters = int(width / LETTER_WIDTH)
    if len(text) <= n_letters:
        return escape(text)
    return f"{escape(text[: n_letters - 1])}…<title>{escape(text)}</title>"


def svg_document(width: float, height: float, parts: Sequence[str], alt: str) -> str:
    """Put SVG elements into a document.

    width, height (float): The size in pixels.
    parts (Sequence[str]): The elements.
    alt (str): What the chart shows, for screen readers.
    RETURNS (str): An SVG document.
    """
    label = f' aria-label="{escape(alt)}"' if alt else ""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}" '
            f'font-family="system-ui, sans-serif" font-size="12" role="img"{label}>',
            f'<rect width="{width:g}" height="{height:g}" fill="{PAPER}"/>',
            *parts,
            "</svg>\n",
        ]
    )
