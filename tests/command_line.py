"""The commands, as typed, in this process: starting spaCy takes longer than most of them."""

import contextlib
import io
import runpy
from pathlib import Path
from unittest import mock

import pytest
from spacy.cli._util import app
from typer.testing import CliRunner

import spacy_elmo.cli  # noqa: F401  spaCy does this through the entry point


def run_spacy(*arguments: str | Path, code: int = 0) -> str:
    """Run a command of spaCy.

    arguments (str | Path): The command and its arguments, without `python -m spacy`.
    code (int): The exit code to expect.
    RETURNS (str): What it printed, in one line, whatever the width of the terminal.
    """
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, f"{result.output}\n{result.exception!r}"
    assert result.exception is None or isinstance(result.exception, SystemExit)  # no traceback
    return " ".join(result.output.split())


def run(*arguments: str | Path, code: int = 0) -> str:
    """Run `spacy elmo`, as `run_spacy` does."""
    return run_spacy("elmo", *arguments, code=code)


def run_project(directory: Path, workflow: str, **variables: str | int) -> str:
    """Run a workflow of a project, every command in this process.

    directory (Path): The directory of the project.
    workflow (str): The name of the workflow.
    variables (str | int): Other values for the project's variables.
    RETURNS (str): What all commands printed, each in one line.
    """
    outputs: list[str] = []

    def run_command(command: list[str], **_: object) -> None:
        _python, *arguments = command
        if arguments[:2] == ["-m", "spacy"]:
            outputs.append(run_spacy(*arguments[2:]))
        else:
            outputs.append(run_script(*arguments))

    options = [part for name, value in variables.items() for part in (f"--vars.{name}", str(value))]
    with mock.patch("weasel.cli.run.run_command", run_command):
        outputs.append(run_spacy("project", "run", workflow, directory, *options))
    return "\n".join(outputs)


def run_script(path: str, *arguments: str) -> str:
    """Run a Python script that leaves its arguments to typer, and say what it printed, in one line."""
    output = io.StringIO()
    argv = mock.patch("sys.argv", [path, *arguments])
    with argv, contextlib.redirect_stdout(output), pytest.raises(SystemExit) as end:
        runpy.run_path(path, run_name="__main__")
    assert not end.value.code, output.getvalue()
    return " ".join(output.getvalue().split())
