"""Scripts, as typed."""

from collections.abc import Callable
from pathlib import Path

import typer
from typer.testing import CliRunner


def run_script(script: Callable[..., None], *arguments: str | Path, code: int = 0) -> str:
    """Run the function of a script with arguments as typed, and return its output."""
    app = typer.Typer()
    app.command()(script)
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result.output


def run_in_one_line(script: Callable[..., None], *arguments: str | Path, code: int = 0) -> str:
    """Run a script and return its output in one line, whatever the width of the terminal."""
    return " ".join(run_script(script, *arguments, code=code).split())
