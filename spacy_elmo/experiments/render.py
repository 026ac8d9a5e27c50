"""A page as Markdown, with its figures in files, and as HTML, in one file."""

import re
from collections.abc import Iterator
from html import escape
from pathlib import Path

from jinja2 import Environment, FileSystemLoader

from ..analysis.marked_use import MARKED
from ..charts.axes import COLOURS, FAINT, MUTED, PAPER, WIDTH
from .page import Block, Code, Figure, Paragraph, Section, Table

TEMPLATE = "page.html.jinja"


def to_html(page: Section) -> str:
    """Render a page as HTML. It needs no other file and no network.

    page (Section): The page.
    RETURNS (str): The HTML.
    """
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    for name, block_type in {"paragraph": Paragraph, "table": Table, "figure": Figure, "code": Code}.items():
        environment.tests[name] = lambda block, block_type=block_type: isinstance(block, block_type)
    environment.filters["highlight"] = _highlight
    colours = {"chart_colour": COLOURS[0], "chart_paper": PAPER, "chart_muted": MUTED, "chart_faint": FAINT}
    return environment.get_template(TEMPLATE).render(page=page, double_width=2 * WIDTH, **colours) + "\n"


def _highlight(text: str) -> str:
    """Escape a text, and mark the word in square brackets."""
    return MARKED.sub(r"<mark>\1</mark>", escape(text), count=1)


def to_markdown(page: Section) -> str:
    """Render a page as Markdown. It refers to its figures as files beside it.

    page (Section): The page.
    RETURNS (str): The Markdown.
    """
    return "\n\n".join(_markdown_section(page, 1)) + "\n"


def _markdown_section(section: Section, level: int) -> Iterator[str]:
    yield f"{'#' * min(level, 6)} {_escape_inline(section.title)}"
    for block in section.blocks:
        yield _markdown_block(block)
    for subsection in section.sections:
        yield from _markdown_section(subsection, level + 1)


def _markdown_block(block: Block) -> str:
    match block:
        case Paragraph(text, "result"):
            return f"**{_escape_inline(text)}**"
        case Paragraph(text, kind):
            return ("> " if kind == "note" else "") + _escape_line(text)
        case Table(caption, header, rows, kind):
            head, *cells = ([_escape_inline(cell) for cell in row] for row in (header, *rows))
            rule = ["---", *["---" if kind == "texts" else "---:"] * (len(header) - 1)]
            lines = [f"| {' | '.join(row)} |" for row in (head, rule, *cells)]
            return "\n".join([f"{_escape_line(caption)}\n", *lines])
        case Figure(name, caption):
            return f"![{_escape_inline(caption)}]({name}.svg)"
        case Code(text):
            fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
            return f"{fence}bash\n{text}\n{fence}"


def _escape_line(text: str) -> str:
    """Escape a paragraph, also where Markdown would make it a list or a heading."""
    return re.sub(r"^(\d*)([#+=.)-])", r"\1\\\2", _escape_inline(text))


def _escape_inline(text: str) -> str:
    """Escape a part of a line."""
    return re.sub(r"[\\`*\[\]<>|&~$]|(?<![^\W_])_|_(?![^\W_])|#$", r"\\\g<0>", " ".join(text.split()))
