"""`spacy elmo`, as typed: its help."""

import re

import pytest
from spacy.cli._util import app
from typer.testing import CliRunner

from spacy_elmo.cli import app as elmo_app

from ..command_line import run


def test_help_names_the_commands() -> None:
    output = run("--help")
    assert "convert" in output
    assert "demo" in output
    assert "python -m spacy elmo convert WEIGHTS_DIR OUT --to bilm-tf" in run("convert", "--help")


def test_summaries_of_the_commands_are_not_cut() -> None:
    commands = CliRunner().invoke(app, ["elmo", "--help"]).output.split("Commands:")[1]
    assert len(commands.split("\n")) > 10
    assert "..." not in commands


@pytest.mark.parametrize("command", [command.name for command in elmo_app.registered_commands])
def test_no_option_is_wrapped(command: str) -> None:
    output = CliRunner().invoke(app, ["elmo", command, "--help"]).output
    assert "Usage:" in output
    assert [line for line in output.split("\n") if re.search(r" --?\w[\w-]*-$", line)] == []


@pytest.mark.parametrize("command", [["convert"], []])
def test_no_arguments_show_help(command: list[str]) -> None:
    result = CliRunner().invoke(app, ["elmo", *command])
    assert "Usage:" in result.output
