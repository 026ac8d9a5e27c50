"""Several comparisons on one page."""

from collections.abc import Sequence
from pathlib import Path

from ..files.atomic import write_file
from .comparison import compare_trial_sets
from .page import Code, Paragraph, Section
from .render import to_html
from .trial_set import read_trial_sets

INTRODUCTION = (
    "The word “play” has one meaning in a theatre and another in a garden. ELMo gives each word a vector that depends on its "
    "sentence: a language model that was trained on plain text reads the sentence in both directions, and a task learns which of "
    "its layers are useful. This page compares models with ELMo and models without it."
)


def make_comparison(text: str) -> Section:
    """Make a section from an argument of `spacy elmo report`.

    text (str): Directories of trials, separated by commas, the baseline first: "out/baseline,out/elmo". A title and a colon may
        stand before them: "Named entities: out/baseline,out/elmo".
    RETURNS (Section): The comparison.
    """
    title, _, directories = text.rpartition(": ")
    paths = [Path(part.strip()) for part in directories.split(",") if part.strip()]
    if len(paths) < 2:
        raise ValueError(
            f"A comparison is two directories of trials or more, separated by commas, such as out/baseline,out/elmo; got {text!r}."
        )
    return compare_trial_sets(read_trial_sets(paths), title=title or None)


def write_report(output: Path, sections: Sequence[Section], *, title: str, command: str) -> None:
    """Write a page of sections.

    output (Path): The HTML file.
    sections (Sequence[Section]): Comparisons, and other sections.
    title (str): The title of the page.
    command (str): The command that writes the page.
    """
    if output.suffix != ".html":
        raise ValueError(f"The page is an HTML file: its name must end in .html, got {output.name!r}.")
    if output.is_dir():
        raise ValueError(f"{output} is a directory, and the page is a file. Choose another name.")
    if not sections:
        raise ValueError(
            "There is nothing to report. Add directories of trials, such as out/baseline,out/elmo, or the output directory of a "
            "pretraining (--bilm)."
        )
    last = Section("Command to write this page", [Code(command)])
    write_file(output, to_html(Section(title, [Paragraph(INTRODUCTION)], [*sections, last])))
