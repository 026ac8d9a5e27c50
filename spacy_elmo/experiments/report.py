"""Several comparisons on one page."""

from collections.abc import Sequence
from pathlib import Path

from ..files.atomic import naming, write_file
from .compare import CONTENT
from .page import Paragraph, Section, from_json, to_html

INTRODUCTION = (
    "A word like “play” means one thing on a stage and another in a garden. ELMo gives each word a vector that depends on the "
    "sentence around it: a language model that was trained on plain text reads the sentence in both directions, and a task learns "
    "which of its layers it needs. This page shows what that brings to tasks, each beside a training without it."
)


def write_report(output: Path, comparisons: Sequence[Path], *, title: str, more: Sequence[Section] = ()) -> int:
    """Write a page of comparisons.

    output (Path): The HTML file.
    comparisons (Sequence[Path]): Directories that `write_comparison` wrote.
    title (str): The page's title.
    more (Sequence[Section]): What comes after them.
    RETURNS (int): How many parts the page has.
    """
    if output.suffix != ".html":
        raise ValueError(f"The page is an HTML file: give it a name that ends in .html, not {output.name!r}.")
    if output.is_dir():
        raise ValueError(f"{output} is a directory; a file is to be written there. Choose another name.")
    parts = [*map(read_comparison, comparisons), *more]
    if not parts:
        raise ValueError("There is nothing to report: name a comparison, or a pretraining run (--bilm).")
    with naming(output):
        output.parent.mkdir(parents=True, exist_ok=True)
    write_file(output, to_html(Section(title, [Paragraph(INTRODUCTION)], parts)))
    return len(parts)


def read_comparison(directory: Path) -> Section:
    """Read what `write_comparison` wrote.

    directory (Path): The directory.
    RETURNS (Section): The page.
    """
    path = directory / CONTENT
    if not path.exists():
        raise ValueError(
            f"There is no comparison in {directory}: no {CONTENT}. Make one with `python -m spacy elmo compare`."
        )
    try:
        page = from_json(path.read_text(encoding="utf8"), directory)
        to_html(page)  # which finds out whether its parts are what they should be
        return page
    except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
        raise ValueError(
            f"{path} cannot be read: {error!r}. Make it again with `python -m spacy elmo compare`."
        ) from error
