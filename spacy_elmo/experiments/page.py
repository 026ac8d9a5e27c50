"""What a page consists of: sections of paragraphs, tables, figures and code."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Paragraph:
    """A paragraph.

    text (str): Its text, without markup.
    kind (str): "text", "result" for a main result, "note" for a caveat, or "paper" for what the paper reports.
    """

    text: str
    kind: str = "text"


@dataclass(frozen=True)
class Table:
    """A table.

    caption (str): The text above it.
    header (Sequence[str]): The names of its columns. The first column has the names of the rows, the others have numbers.
    rows (Sequence[Sequence[str]]): Its cells, as text.
    kind (str): "numbers", or "texts" for columns of texts side by side, without names of rows. A word in square brackets is
        highlighted.
    """

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    kind: str = "numbers"


@dataclass(frozen=True)
class Figure:
    """A chart.

    name (str): The name of its file, without .svg.
    caption (str): The text below it.
    svg (str): The SVG document of one of our charts. It is not escaped.
    """

    name: str
    caption: str
    svg: str


@dataclass(frozen=True)
class Code:
    """Commands for the shell.

    text (str): One line or several.
    """

    text: str


Block = Paragraph | Table | Figure | Code


@dataclass(frozen=True)
class Section:
    """A section of a page, or a whole page.

    title (str): Its heading.
    blocks (Sequence[Block]): Its content, from top to bottom.
    sections (Sequence[Section]): Its subsections, below the content.
    """

    title: str
    blocks: Sequence[Block] = field(default_factory=list)
    sections: Sequence["Section"] = field(default_factory=list)


def figures_of(section: Section) -> Iterator[Figure]:
    """YIELDS (Figure): The figures of a section and its subsections."""
    yield from (block for block in section.blocks if isinstance(block, Figure))
    for subsection in section.sections:
        yield from figures_of(subsection)
