"""What makes two trials the same: the config, and the content of every file that it uses."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from confection import Config

from ..files.checksums import checksum
from ..models import choose_model, find_weights

REPLACED = "below"  # the checksum is compared, not the path; 0.1.0 wrote this value
DIFFERENCES = {
    "config": "the config or its overrides",
    "code": "--code",
    "gold_preproc": "--gold-preproc",
    "test": "the test data",
    "paths.train": "the training data",
    "paths.dev": "the dev data",
}


def make_identity(
    config: Config, *, test: Path, output: Path, code_path: Path | None, gold_preproc: bool
) -> dict[str, str]:
    """Describe a trial so that trials with the same description have the same result. The content of files counts, not their
    paths.

    config (Config): The config, not interpolated, with a fixed seed.
    test (Path): The test data.
    output (Path): The directory of the trials.
    code_path (Path | None): The file with functions that the config names.
    gold_preproc (bool): Whether the test data's own tokens and sentences are used.
    RETURNS (dict[str, str]): The config, the options, and a checksum of each file or directory by the setting that names it.
    """
    config, values = config.copy(), config.interpolate()
    paths = {"test": test}
    for name, value in values["paths"].items():
        # A directory that contains the trials changes with every trial.
        if _is_path(value) and not output.resolve().is_relative_to(Path(value).resolve()):
            paths[f"paths.{name}"] = Path(value)
            config["paths"][name] = REPLACED
    lang = values["nlp"]["lang"]
    others = {name: find_weights(weights) for name, weights in _find_elmo_weights(values, lang)}
    others |= {name: Path(value) for name, value in _find_paths(values)}
    for name, path in others.items():
        if path.exists() and path not in paths.values():
            paths[name] = path
    code = checksum(code_path) if code_path else ""
    checksums = {name: checksum(path) for name, path in paths.items()}
    return {"config": config.to_str(), "code": code, "gold_preproc": str(gold_preproc), **checksums}


def find_difference(found: dict[str, str], expected: dict[str, str]) -> str | None:
    """Compare the identity of an existing trial with that of a new one.

    found, expected (dict[str, str]): The identities.
    RETURNS (str | None): The first difference, to follow the words "The existing trials", or None.
    """
    for name, value in expected.items():
        if found.get(name) != value:
            verb = "differ in" if name in found else "were written by an earlier version, which did not record"
            return f"{verb} {DIFFERENCES.get(name, f'the files of {name}')}"
    return None


def _find_elmo_weights(section: dict[str, Any], lang: str, prefix: str = "") -> Iterator[tuple[str, str | None]]:
    """Find the `weights` of every ELMo in a config: the name of the setting, and its value. A component without any takes the
    model of the language."""
    is_component = section.get("factory") == "elmo" and section.get("model") is None
    weights = section.get("weights")
    if (is_component or section.get("@architectures") == "spacy_elmo.Elmo.v1") and isinstance(weights, str | None):
        yield f"{prefix}weights", choose_model(weights, lang) if is_component else weights
    for name, value in section.items():
        if isinstance(value, dict):
            yield from _find_elmo_weights(value, lang, f"{prefix}{name}.")


def _find_paths(section: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Find the files that a config names outside of [paths]. Directories count only in settings that usually name one."""
    for name, value in section.items():
        if isinstance(value, dict):
            if prefix or name != "paths":
                yield from _find_paths(value, f"{prefix}{name}.")
        elif _is_path(value) and (Path(value).is_file() or name in ("path", "source", "vectors")):
            yield f"{prefix}{name}", value


def _is_path(value: object) -> bool:
    return isinstance(value, str) and bool(value) and os.path.exists(value)  # False for text too long to be a path
