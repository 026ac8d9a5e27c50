"""Heat maps as SVG: a table whose cells are shaded by their numbers."""

from collections.abc import Sequence
from html import escape

from .axes import COLOURS, LETTER_WIDTH, MUTED, PAPER, svg_document

CELL_WIDTH, CELL_HEIGHT = 92, 30
TOP = 62
DARK = 0.7  # a shade above this is too dark for dark numbers


def draw_heat_map(
    title: str, columns: Sequence[str], rows: Sequence[tuple[str, Sequence[float]]], notes: Sequence[str] = ()
) -> str:
    """Draw numbers from 0 to 1 as shades, with the numbers inside.

    title (str): The text above it.
    columns (Sequence[str]): The names of the columns.
    rows (Sequence[tuple]): For each row its name and its numbers, which may be fewer than the columns.
    notes (Sequence[str]): A remark behind each row, or none at all.
    RETURNS (str): An SVG document.
    """
    left = 24 + LETTER_WIDTH * max((len(name) for name, _ in rows), default=0)
    right = 16 + LETTER_WIDTH * max((len(note) for note in notes), default=0)
    width = max(left + CELL_WIDTH * len(columns) + right, 32 + 8 * len(title))
    height = TOP + CELL_HEIGHT * len(rows) + 16
    parts = [f'<text x="16" y="22" font-weight="bold">{escape(title)}</text>']
    for i, name in enumerate(columns):
        x = left + CELL_WIDTH * (i + 0.5)
        parts.append(f'<text x="{x}" y="{TOP - 8}" text-anchor="middle" fill="{MUTED}">{escape(name)}</text>')
    for row, (name, values) in enumerate(rows):
        y = TOP + CELL_HEIGHT * row
        parts.append(f'<text x="{left - 8}" y="{y + 19}" text-anchor="end">{escape(name)}</text>')
        for i, value in enumerate(values):
            x = left + CELL_WIDTH * i
            parts.append(
                f'<rect x="{x}" y="{y}" width="{CELL_WIDTH - 2}" height="{CELL_HEIGHT - 2}" rx="3" '
                f'fill="{COLOURS[0]}" fill-opacity="{max(0.05, min(value, 1.0)):.2f}"/>'
            )
            fill = f' fill="{PAPER}"' if value > DARK else ""  # other numbers have the text colour of the page
            parts.append(f'<text x="{x + CELL_WIDTH / 2}" y="{y + 19}" text-anchor="middle"{fill}>{value:.2f}</text>')
        if row < len(notes):
            x = left + CELL_WIDTH * len(columns) + 8
            parts.append(f'<text x="{x}" y="{y + 19}" fill="{MUTED}">{escape(notes[row])}</text>')
    return svg_document(width, height, parts, title)
