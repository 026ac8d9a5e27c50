"""One page from trials and from the results of other commands."""

from collections.abc import Callable, Sequence
from pathlib import Path

from ..files.atomic import write_file
from ..files.damage import refuse_damaged
from .comparability import common_fractions
from .comparison import compare_trial_sets
from .contextuality_section import make_contextuality_section
from .fraction_section import make_fraction_section
from .grid_section import make_grid_section
from .mix_sections import make_mix_question
from .neighbour_section import make_neighbour_section
from .page import Code, Paragraph, Section
from .paper import CITATION
from .probe_section import make_probe_section
from .render import to_html
from .results import COMMANDS, Result, read_result
from .sense_section import make_sense_section
from .trial_set import read_trial_sets

INTRODUCTION = (
    "The word “play” has one meaning in a theatre and another in a garden. ELMo gives each word a vector that depends on its "
    "sentence: a language model that was trained on plain text reads the sentence in both directions, and a task learns which of "
    "its layers are useful."
)
RESULT = ".json"  # how the name of a result ends
MAKERS: dict[str, Callable[[Sequence[Result]], Section]] = {
    "neighbours": make_neighbour_section,
    "probe": make_probe_section,
    "senses": make_sense_section,
    "contextuality": make_contextuality_section,
}


def make_sections(arguments: Sequence[str]) -> list[Section]:
    """Make the sections of a page from the arguments of `spacy elmo report`.

    arguments (Sequence[str]): JSON files that other commands have written, and comparisons: directories of trials, separated by
        commas, the baseline first, such as "out/baseline,out/elmo". A title and a colon may stand before them.
    RETURNS (list[Section]): The sections in the order of the arguments. Results of one kind share a section, and so do grids with
        the same question.
    """
    groups: dict[str, list[tuple[Result, Path]]] = {}
    for argument in arguments:
        if argument.endswith(RESULT):
            result = read_result(Path(argument))
            group = result["question"] if result["kind"] == "grid" else result["kind"]
            groups.setdefault(group, []).append((result, Path(argument)))
        else:
            groups[argument] = []
    sections: list[Section] = []
    grids: list[tuple[Result, Path]] = []
    after_grids = 0
    for group, found in groups.items():
        if not found:
            sections.append(make_comparison(group))
        elif group in MAKERS:
            with refuse_damaged(" or ".join(str(path) for _, path in found), f"what `{COMMANDS[group]}` writes"):
                sections.append(MAKERS[group]([result for result, _ in found]))
        else:
            directories = [(result, path.parent) for result, path in found]
            sections.append(make_grid_section(directories))
            grids += directories
            after_grids = len(sections)
    mixes = make_mix_question(grids)
    return sections if mixes is None else [*sections[:after_grids], mixes, *sections[after_grids:]]


def make_comparison(text: str) -> Section:
    """Make a section that compares models.

    text (str): Directories of trials, separated by commas, the baseline first: "out/baseline,out/elmo". A title and a colon may
        stand before them: "Named entities: out/baseline,out/elmo".
    RETURNS (Section): The comparison. With several fractions of the training data, it is about these.
    """
    title, _, directories = text.rpartition(": ")
    paths = [Path(part.strip()) for part in directories.split(",") if part.strip()]
    if len(paths) < 2:
        raise ValueError(
            f"Expected a result that ends in {RESULT}, or a comparison: two directories of trials or more, separated by commas, such "
            f"as out/baseline,out/elmo; got {text!r}."
        )
    trial_sets = read_trial_sets(paths)
    if len(common_fractions(trial_sets)) > 1:
        return make_fraction_section(trial_sets, title)
    return compare_trial_sets(trial_sets, title=title or None)


def write_report(output: Path, sections: Sequence[Section], *, title: str, command: str) -> None:
    """Write a page of sections.

    output (Path): The HTML file.
    sections (Sequence[Section]): The sections.
    title (str): The title of the page.
    command (str): The command that writes the page.
    """
    if output.suffix != ".html":
        raise ValueError(f"The page is an HTML file: its name must end in .html, got {output.name!r}.")
    if output.is_dir():
        raise ValueError(f"{output} is a directory, and the page is a file. Choose another name.")
    if not sections:
        raise ValueError(
            "There is nothing to report. Add results of other commands, such as out/probe.json, directories of trials, such as "
            "out/baseline,out/elmo, or the output directory of a pretraining (--bilm)."
        )
    last = Section("Command to write this page", [Code(command), Paragraph(f"The paper is {CITATION}", "note")])
    write_file(output, to_html(Section(title, [Paragraph(INTRODUCTION)], [*sections, last])))
