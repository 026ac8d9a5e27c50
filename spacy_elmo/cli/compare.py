"""`spacy elmo compare`: a page that says what one config brings over another."""

from pathlib import Path

from spacy.cli._util import Arg, Opt
from wasabi import msg


def compare_cli(
    runs: list[Path] = Arg(
        ...,
        metavar="BASELINE RUN...",
        help="Directories that `spacy elmo trials` wrote; the others are compared with the first",
    ),
    output: Path = Opt(..., "--output", "-o", help="The directory for report.html, report.md and figures"),
    names: str | None = Opt(None, "--names", "-n", help="What the runs are called, separated by commas"),
    title: str | None = Opt(None, "--title", "-t", help="The title of the page"),
    score: str | None = Opt(
        None,
        "--score",
        "-s",
        help="The score that matters, such as ents_f, if not that by which the best model was chosen",
    ),
) -> None:
    """Compare trials of two configs or more, on the same test data.

        python -m spacy elmo compare out/baseline out/elmo --output out/comparison

    Writes a page with what each run scores, how far its seeds are apart, label by label, with less training data if several
    shares were run, and what it costs.
    """
    from ..experiments.comparability import find_caveats
    from ..experiments.compare import HTML, compare_runs, write_comparison
    from ..experiments.page import Paragraph
    from ..experiments.runs import read_runs

    try:
        found = read_runs(runs, [name.strip() for name in names.split(",")] if names else [])
        page = compare_runs(found, output=output, title=title, score=score)
        write_comparison(page, output)
    except (ValueError, OSError) as error:
        msg.fail("Could not compare the runs", str(error), exits=1)
    for caveat in find_caveats(found):
        msg.warn(caveat)
    msg.good(f"Wrote {output / HTML}")
    for block in page.blocks:
        if isinstance(block, Paragraph):
            msg.text(block.text)
