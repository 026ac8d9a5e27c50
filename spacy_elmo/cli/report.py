"""`spacy elmo report`: one page from trials, from the results of other commands, and from a pretraining."""

import shlex
from pathlib import Path

from spacy.cli._util import Arg, Opt
from wasabi import msg

DEFAULT_TITLE = "What ELMo knows, and what it gains"


def report_cli(
    output: Path = Arg(..., help="The page to write: a file name that ends in .html"),
    results: list[str] | None = Arg(
        None,
        metavar="RESULT.json | BASELINE,OTHER",
        help="What `probe`, `senses`, `contextuality`, `neighbours` (--output) and `trials` (--grid) wrote, or directories of "
        "`trials` to compare, separated by commas, the baseline first. With a title: 'TITLE: BASELINE,OTHER'",
    ),
    bilm: list[Path] | None = Opt(
        None,
        "--bilm",
        "-b",
        help="The output directory of `spacy elmo pretrain`, to show its learning curve (repeatable)",
    ),
    title: str = Opt(DEFAULT_TITLE, "--title", "-t", help="The title of the page"),
) -> None:
    """Put results on one page.

    The page is one HTML file, without links to other files. Each argument after the name of the page is a result:

        python -m spacy elmo report report.html out/baseline,out/elmo out/layers/grid.json out/probe.json --bilm out/bilm

    Each part of the page has a question, the answer, the numbers, and the command that made them. Where the paper has such
    numbers, they are beside.
    """
    from ..experiments.formatting import format_count
    from ..experiments.report import make_sections, write_report

    results, directories = results or [], bilm or []
    words = ["python", "-m", "spacy", "elmo", "report", str(output), *results]
    words += [word for directory in directories for word in ("--bilm", str(directory))]
    words += ["--title", title] if title != DEFAULT_TITLE else []
    try:
        sections = make_sections(results)
        if directories:
            from ..experiments.pretraining_section import make_pretraining_section

            sections += [make_pretraining_section(directory) for directory in directories]
        write_report(output, sections, title=title, command=shlex.join(words))
    except (ValueError, OSError) as error:
        msg.fail("Could not write the report", str(error), exits=1)
    msg.good(f"Wrote {output}", f"It has {format_count(len(sections), 'section')}. Open it in a browser.")
