"""`spacy elmo report`: several comparisons, and the language model behind them, on one page."""

from pathlib import Path

from spacy.cli._util import Arg, Opt
from wasabi import msg


def report_cli(
    output: Path = Arg(..., help="The page to write: a name that ends in .html"),
    comparisons: list[Path] | None = Arg(None, help="Directories that `spacy elmo compare` wrote"),
    bilm: Path | None = Opt(None, "--bilm", "-b", help="The directory of a pretraining run, to show how it learned"),
    title: str = Opt("What ELMo brings", "--title", "-t", help="The title of the page"),
) -> None:
    """Put comparisons on one page that opens anywhere, without other files and without a network.

    python -m spacy elmo report report.html out/ner/comparison out/textcat/comparison --bilm training/bilm
    """
    from ..experiments.report import write_report

    try:
        parts = []
        if bilm is not None:
            from ..pretraining.summary import summarize_pretraining

            parts.append(summarize_pretraining(bilm))
        n_parts = write_report(output, comparisons or [], title=title, more=parts)
    except (ValueError, OSError) as error:
        msg.fail("Could not write the report", str(error), exits=1)
    msg.good(f"Wrote {output}", f"{n_parts} parts; open it in a browser")
