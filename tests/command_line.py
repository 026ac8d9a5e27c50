"""The commands, as typed."""

from pathlib import Path

from spacy.cli._util import app
from typer.testing import CliRunner

import spacy_elmo.cli  # noqa: F401  spaCy does this through the entry point


def run(*arguments: str | Path, code: int = 0) -> str:
    """Run `spacy elmo` and say what it printed, in one line."""
    result = CliRunner().invoke(app, ["elmo", *map(str, arguments)])
    assert result.exit_code == code, result.output
    return " ".join(result.output.split())  # whatever the width of the terminal
