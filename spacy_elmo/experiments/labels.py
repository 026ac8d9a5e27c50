"""The labels of all of the training data, for a share of it that may lack some."""

import inspect
from pathlib import Path
from typing import Any

import srsly
from confection import Config
from spacy.language import Language

from ..files.atomic import naming, write_file


def write_labels(nlp: Language, directory: Path) -> dict[str, Path]:
    """Write the labels that each component has found, as `spacy init labels` does.

    nlp (Language): A pipeline that was initialized with all of the training data.
    directory (Path): Where to write.
    RETURNS (dict[str, Path]): The files, for each component that can be given its labels.
    """
    paths = {}
    for name, component in nlp.pipeline:
        labels, initialize = getattr(component, "label_data", None), getattr(component, "initialize", None)
        if labels and initialize and "labels" in inspect.signature(initialize).parameters:
            paths[name] = directory / f"{name}.json"
            with naming(directory):
                directory.mkdir(parents=True, exist_ok=True)
            write_file(paths[name], srsly.json_dumps(labels))
    return paths


def give_labels(config: Config, paths: dict[str, Path]) -> None:
    """Let components read their labels from files, and not from training data that may not have them all. Otherwise a tagger
    would know fewer tags the less it is trained on, and a text classifier with one label would not start at all.

    config (Config): The config, which is changed. Labels that it gives itself stay.
    paths (dict[str, Path]): The files.
    """
    components: dict[str, Any] = config.setdefault("initialize", {}).setdefault("components", {})
    for name, path in paths.items():
        reader = {"@readers": "spacy.read_labels.v1", "path": str(path)}
        components.setdefault(name, {}).setdefault("labels", reader)
