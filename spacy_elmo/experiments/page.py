"""A page of text, tables and figures, as Markdown and as HTML in one file."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from ..charts.plots import COLOURS, FAINT, MUTED, PAPER, WIDTH


@dataclass(frozen=True)
class Paragraph:
    """A paragraph.

    text (str): What it says, without any markup.
    kind (str): "text", "result" for what a reader in a hurry should see, or "note" for what to be careful about.
    """

    text: str
    kind: str = "text"


@dataclass(frozen=True)
class Table:
    """A table.

    caption (str): What is in it.
    header (Sequence[str]): The names of its columns. The first one has the names of the rows, the others have numbers.
    rows (Sequence[Sequence[str]]): Its cells, as they are written.
    """

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Figure:
    """A picture.

    name (str): The name of its file, without .svg.
    caption (str): What it shows.
    svg (str): The picture, as our charts draw it.
    """

    name: str
    caption: str
    svg: str


@dataclass(frozen=True)
class Code:
    """Something to type.

    text (str): One line or several.
    """

    text: str


Block = Paragraph | Table | Figure | Code


@dataclass(frozen=True)
class Section:
    """A part of a page, or a whole one.

    title (str): Its heading.
    blocks (Sequence[Block]): What is in it, from top to bottom.
    sections (Sequence[Section]): Its parts, below that.
    """

    title: str
    blocks: Sequence[Block] = field(default_factory=list)
    sections: Sequence["Section"] = field(default_factory=list)


def figures_of(section: Section) -> Iterator[Figure]:
    """Find the figures of a page.

    section (Section): The page.
    YIELDS (Figure): Its figures, and those of its parts.
    """
    yield from (block for block in section.blocks if isinstance(block, Figure))
    for part in section.sections:
        yield from figures_of(part)


# As Markdown


def to_markdown(page: Section) -> str:
    """Write a page as Markdown. It refers to its figures as files beside it.

    page (Section): The page.
    RETURNS (str): The Markdown.
    """
    return "\n\n".join(_markdown_section(page, 1)) + "\n"


def _markdown_section(section: Section, level: int) -> Iterator[str]:
    yield f"{'#' * min(level, 6)} {_inline(section.title)}"
    for block in section.blocks:
        yield _markdown_block(block)
    for part in section.sections:
        yield from _markdown_section(part, level + 1)


def _markdown_block(block: Block) -> str:
    match block:
        case Paragraph(text, "result"):
            return f"**{_inline(text)}**"
        case Paragraph(text, kind):
            return ("> " if kind == "note" else "") + _plain(text)
        case Table(caption, header, rows):
            head, *cells = ([_inline(cell) for cell in row] for row in (header, *rows))
            rule = ["---", *["---:"] * (len(header) - 1)]
            return "\n".join([f"{_plain(caption)}\n", *(f"| {' | '.join(row)} |" for row in (head, rule, *cells))])
        case Figure(name, caption):
            return f"![{_inline(caption)}]({name}.svg)"
        case Code(text):
            fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
            return f"{fence}bash\n{text}\n{fence}"


def _plain(text: str) -> str:
    """Write a paragraph so that Markdown shows it as it is: not as a list or a heading."""
    return re.sub(r"^(\d*)([#+=.)-])", r"\1\\\2", _inline(text))


def _inline(text: str) -> str:
    """Write a part of a line so that Markdown shows it as it is."""
    return re.sub(r"[\\`*\[\]<>|&~$]|(?<![^\W_])_|_(?![^\W_])|#$", r"\\\g<0>", " ".join(text.split()))


# As HTML


def to_html(page: Section) -> str:
    """Write a page as HTML: one file that needs no other, and nothing from the network.

    page (Section): The page.
    RETURNS (str): The HTML.
    """
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        '<meta name="generator" content="spacy-elmo">',
        f"<title>{escape(page.title)}</title>",
        f"<style>{STYLE}</style>",
        "</head>",
        "<body>",
        "<main>",
        f"<h1>{escape(page.title)}</h1>",
        *map(_html_block, page.blocks),
        *_html_contents(page),
        *(line for i, part in enumerate(page.sections, start=1) for line in _html_section(part, 2, f"part-{i}")),
        "</main>",
        "</body>",
        "</html>",
    ]
    return "\n".join(parts) + "\n"


def _html_contents(page: Section) -> Iterator[str]:
    if len(page.sections) > 1:
        items = (
            f'<li><a href="#part-{i}">{escape(part.title)}</a></li>' for i, part in enumerate(page.sections, start=1)
        )
        yield f'<nav aria-label="Contents"><ul>{"".join(items)}</ul></nav>'


def _html_section(section: Section, level: int, name: str) -> Iterator[str]:
    heading = f"h{min(level, 6)}"
    yield f'<section id="{name}" aria-labelledby="{name}-title">'
    yield f'<{heading} id="{name}-title">{escape(section.title)}</{heading}>'
    yield from map(_html_block, section.blocks)
    for i, part in enumerate(section.sections, start=1):
        yield from _html_section(part, level + 1, f"{name}-{i}")
    yield "</section>"


def _html_block(block: Block) -> str:
    match block:
        case Paragraph(text, kind):
            return f'<p class="{escape(kind)}">{escape(text)}</p>'
        case Table(caption, header, rows):
            head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in header)
            body = "\n".join(_html_row(row) for row in rows)
            return (
                f'<div class="wide" role="region" aria-label="{escape(caption)}" tabindex="0"><table>'
                f"<caption>{escape(caption)}</caption>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>"
            )
        case Figure(_, caption, svg):
            return f"<figure>\n{svg.strip()}\n<figcaption>{escape(caption)}</figcaption>\n</figure>"
        case Code(text):
            return f'<pre tabindex="0"><code>{escape(text)}</code></pre>'


def _html_row(row: Sequence[str]) -> str:
    name, *cells = row
    return f'<tr><th scope="row">{escape(name)}</th>{"".join(f"<td>{escape(cell)}</td>" for cell in cells)}</tr>'


# On disk


def to_json(page: Section) -> str:
    """Write a page so that it can be a part of another one.

    page (Section): The page.
    RETURNS (str): JSON. The pictures of figures are not in it.
    """
    return json.dumps(_to_dict(page), indent=2, ensure_ascii=False) + "\n"


def from_json(text: str, directory: Path) -> Section:
    """Read a page.

    text (str): What `to_json` wrote.
    directory (Path): Where its figures are.
    RETURNS (Section): The page.
    """
    return _from_dict(json.loads(text), directory)


def _to_dict(section: Section) -> dict[str, Any]:
    blocks = [
        {"type": type(block).__name__, **{name: value for name, value in vars(block).items() if name != "svg"}}
        for block in section.blocks
    ]
    return {"title": section.title, "blocks": blocks, "sections": [_to_dict(part) for part in section.sections]}


def _from_dict(section: dict[str, Any], directory: Path) -> Section:
    blocks: list[Block] = []
    for values in section["blocks"]:
        kind = values.pop("type")
        if kind == Figure.__name__:
            values["svg"] = (directory / f"{Path(values['name']).name}.svg").read_text(encoding="utf8")
        blocks.append({"Paragraph": Paragraph, "Table": Table, "Figure": Figure, "Code": Code}[kind](**values))
    return Section(section["title"], blocks, [_from_dict(part, directory) for part in section["sections"]])


# The charts have colours for white paper; these rules give them those of the page.
STYLE = f"""
:root {{ color-scheme: light dark; --paper: #fdfdfc; --ink: #1c1e21; --muted: #5a6068; --line: #dcdfe3; --soft: #f2f4f6;
  --result: #e9f3fa; --mark: #0072b2; }}
@media (prefers-color-scheme: dark) {{
  :root {{ --paper: #15181c; --ink: #e6e8ea; --muted: #a3aab3; --line: #343a41; --soft: #1e2329; --result: #16293a;
    --mark: #4aa8e0; }}
  svg [fill="{COLOURS[0]}"] {{ fill: var(--mark); }}
  svg [stroke="{COLOURS[0]}"] {{ stroke: var(--mark); }}
}}
* {{ box-sizing: border-box; }}
html {{ -webkit-text-size-adjust: 100%; }}
body {{ margin: 0; background: var(--paper); color: var(--ink); font: 17px/1.6 system-ui, -apple-system, "Segoe UI", sans-serif; }}
main {{ max-width: 46rem; margin: 0 auto; padding: 2.5rem 1.25rem 4rem; }}
h1 {{ font-size: 2rem; line-height: 1.2; margin: 0 0 1.25rem; }}
h2 {{ font-size: 1.4rem; line-height: 1.3; margin: 3rem 0 0.75rem; padding-top: 1.25rem; border-top: 1px solid var(--line); }}
h3 {{ font-size: 1.1rem; margin: 2rem 0 0.5rem; }}
h1, h2, h3, th[scope="row"], p, figcaption {{ overflow-wrap: anywhere; }}
a {{ color: var(--mark); }}
.result {{ background: var(--result); border-left: 4px solid var(--mark); padding: 0.9rem 1.1rem; border-radius: 0 6px 6px 0;
  font-size: 1.06rem; }}
.note {{ color: var(--muted); font-size: 0.92rem; border-left: 4px solid var(--line); padding-left: 1.1rem; }}
nav ul {{ padding-left: 1.2rem; }}
.wide {{ overflow-x: auto; margin: 1.5rem 0; }}
table {{ border-collapse: collapse; width: 100%; font-size: 0.94rem; font-variant-numeric: tabular-nums; }}
caption {{ text-align: left; color: var(--muted); padding-bottom: 0.5rem; }}
th, td {{ padding: 0.4rem 0.7rem; text-align: right; border-bottom: 1px solid var(--line); }}
thead th, thead th:first-child {{ font-weight: 600; vertical-align: bottom; border-bottom: 2px solid var(--muted); }}
th:first-child {{ text-align: left; font-weight: 500; padding-left: 0; min-width: 7rem; }}
td {{ white-space: nowrap; }}
figure {{ margin: 1.75rem 0; text-align: center; }}
figure svg {{ width: 100%; max-width: 40rem; height: auto; }}
figure svg[width="{2 * WIDTH}"] {{ max-width: none; }}
figcaption {{ color: var(--muted); font-size: 0.92rem; text-align: left; margin-top: 0.4rem; }}
pre {{ background: var(--soft); padding: 0.9rem 1.1rem; border-radius: 6px; overflow-x: auto; font-size: 0.86rem; }}
svg text:not([fill]) {{ fill: var(--ink); }}
svg [fill="{PAPER}"] {{ fill: var(--paper); }}
svg [fill="{MUTED}"] {{ fill: var(--muted); }}
svg [stroke="{FAINT}"] {{ stroke: var(--line); }}
@media print {{
  :root {{ --paper: white; --ink: black; --muted: #444; --line: #bbb; --soft: #f4f4f4; --result: #f4f4f4; }}
  body {{ font-size: 11pt; }}
  main {{ max-width: none; padding: 0; }}
  nav {{ display: none; }}
  figure, tr, .result, pre {{ break-inside: avoid; }}
  h2, h3, caption {{ break-after: avoid; }}
  pre {{ white-space: pre-wrap; }}
  .wide {{ overflow: visible; }}
  table {{ font-size: 9pt; }}
}}
"""
