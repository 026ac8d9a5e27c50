"""The labels of the whole training data, for trainings on a fraction of it."""

import inspect
from pathlib import Path
from typing import Any

import srsly
from confection import Config
from spacy.language import Language

from ..files.atomic import write_file


def write_labels(nlp: Language, directory: Path) -> dict[str, Path]:
    """Write the labels of each component to a file, as `spacy init labels` does.

    nlp (Language): A pipeline that was initialized with the whole training data.
    directory (Path): The directory for the files.
    RETURNS (dict[str, Path]): The file of each component that accepts labels.
    """
    paths = {}
    for name, component in nlp.pipeline:
        labels, initialize = getattr(component, "label_data", None), getattr(component, "initialize", None)
        if labels and initialize and "labels" in inspect.signature(initialize).parameters:
            paths[name] = directory / f"{name}.json"
            write_file(paths[name], srsly.json_dumps(labels))
    return paths


def read_labels_from(config: Config, paths: dict[str, Path]) -> None:
    """Make components read their labels from files. A fraction of the training data may lack some labels: a tagger would then
    have fewer tags, and a text classifier with a single label would not start.

    config (Config): The config, which is changed. Labels that it sets itself are kept.
    paths (dict[str, Path]): The file of each component.
    """
    components: dict[str, Any] = config.setdefault("initialize", {}).setdefault("components", {})
    for name, path in paths.items():
        reader = {"@readers": "spacy.read_labels.v1", "path": str(path)}
        components.setdefault(name, {}).setdefault("labels", reader)
