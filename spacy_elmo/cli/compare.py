"""`spacy elmo compare`: a page that compares models with a baseline."""

from pathlib import Path

from spacy.cli._util import Arg, Opt
from wasabi import msg


def compare_cli(
    directories: list[Path] = Arg(
        ...,
        metavar="BASELINE OTHER...",
        help="Directories that `spacy elmo trials` wrote; the others are compared with the first",
    ),
    output: Path = Opt(..., "--output", "-o", help="The directory for report.html, report.md and figures"),
    names: str | None = Opt(None, "--names", "-n", help="The names of the models on the page, separated by commas"),
    title: str | None = Opt(None, "--title", "-t", help="The title of the page"),
    score: str | None = Opt(
        None,
        "--score",
        "-s",
        help="The score to compare, such as ents_f; by default, the score by which the best model was chosen",
    ),
) -> None:
    """Compare trials of several configs.

    All trials must have the same test data:

        python -m spacy elmo compare out/baseline out/elmo --output out/comparison

    The page shows the scores per model and per label, the differences between seeds, the training time, and a curve if there
    are several fractions of the training data.
    """
    from ..experiments.comparability import find_caveats
    from ..experiments.comparison import HTML, compare_command, compare_trial_sets, write_comparison
    from ..experiments.page import Paragraph
    from ..experiments.trial_set import read_trial_sets

    try:
        trial_sets = read_trial_sets(directories, [name.strip() for name in names.split(",")] if names else [])
        command = compare_command(trial_sets, output, title, score)
        page = compare_trial_sets(trial_sets, title=title, score=score, command=command)
        write_comparison(page, output)
    except (ValueError, OSError) as error:
        msg.fail("Could not compare the trials", str(error), exits=1)
    for caveat in find_caveats(trial_sets):
        msg.warn(caveat)
    msg.good(f"Wrote {output / HTML}")
    for block in page.blocks:
        if isinstance(block, Paragraph):
            msg.text(block.text)
