"""Results of analyses, as JSON: `spacy elmo report` reads them."""

import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from wasabi import msg

from ..files.atomic import write_file


def check_output(output: Path | None) -> None:
    """Refuse a file that cannot be written before anything is computed.

    output (Path | None): The file, if one was asked for.
    """
    if output is not None and output.is_dir():
        raise ValueError(f"{output} is a directory, and the results are a file. Choose another name.")


def write_output(output: Path, text: str) -> None:
    """Write results that have been printed, or say why that failed and end the command.

    output (Path): The file.
    text (str): Its contents.
    """
    try:
        write_file(output, text)
    except (ValueError, OSError) as error:
        msg.fail("Could not write the results", str(error), exits=1)


def write_results(
    output: Path, kind: str, *, weights: str, arguments: Sequence[object], results: Mapping[str, Any]
) -> None:
    """Write the results of an analysis, with the command that made them.

    output (Path): The file.
    kind (str): The name of the analysis, which is also that of its command.
    weights (str): The weights, as typed.
    arguments (Sequence[object]): The arguments and options of the command, without --output. Files and directories are Paths.
    results (Mapping[str, Any]): The results.
    """
    words = ["python", "-m", "spacy", "elmo", kind, *map(_show, arguments), "--output", _show(output)]
    everything = {"kind": kind, "command": shlex.join(words), "weights": Path(weights).name, **results}
    write_output(output, json.dumps(everything, indent=2, ensure_ascii=False) + "\n")


def _show(argument: object) -> str:
    """Absolute paths say nothing on another machine, so only their names are shown. Other texts may start with a slash."""
    return argument.name if isinstance(argument, Path) and argument.is_absolute() else str(argument)
