"""`spacy elmo report`: several comparisons, and the pretraining of the language model, on one page."""

import shlex
from pathlib import Path

from spacy.cli._util import Arg, Opt
from wasabi import msg

DEFAULT_TITLE = "Models with and without ELMo"


def report_cli(
    output: Path = Arg(..., help="The page to write: a file name that ends in .html"),
    comparisons: list[str] | None = Arg(
        None,
        metavar="BASELINE,OTHER",
        help="What to compare: directories that `spacy elmo trials` wrote, separated by commas, the baseline first. With a "
        "title: 'TITLE: BASELINE,OTHER'",
    ),
    bilm: list[Path] | None = Opt(
        None,
        "--bilm",
        "-b",
        help="The output directory of `spacy elmo pretrain`, to show its learning curve (repeatable)",
    ),
    title: str = Opt(DEFAULT_TITLE, "--title", "-t", help="The title of the page"),
) -> None:
    """Put comparisons on one page.

    The page is one HTML file, without links to other files. Each argument after the name of the page is one comparison:

        python -m spacy elmo report report.html out/baseline,out/elmo --bilm out/bilm
    """
    from ..experiments.formatting import format_count
    from ..experiments.report import make_comparison, write_report

    comparisons, directories = comparisons or [], bilm or []
    words = ["python", "-m", "spacy", "elmo", "report", str(output), *comparisons]
    words += [word for directory in directories for word in ("--bilm", str(directory))]
    words += ["--title", title] if title != DEFAULT_TITLE else []
    try:
        sections = [make_comparison(comparison) for comparison in comparisons]
        if directories:
            from ..experiments.pretraining_section import make_pretraining_section

            sections += [make_pretraining_section(directory) for directory in directories]
        write_report(output, sections, title=title, command=shlex.join(words))
    except (ValueError, OSError) as error:
        msg.fail("Could not write the report", str(error), exits=1)
    msg.good(f"Wrote {output}", f"It has {format_count(len(sections), 'section')}. Open it in a browser.")
