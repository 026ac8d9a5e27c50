"""Results as commands write them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from spacy_elmo.experiments.grid import GRID, load_grid

from .written_trials import write_trials

CONFIGS = Path(__file__).parents[2] / "configs"
LAYERS = [("token layer", [0]), ("LSTM layer 1", [1]), ("LSTM layer 2", [2]), ("mean", [0, 1, 2])]


def _score(mean: float) -> dict[str, Any]:
    return {"mean": mean, "deviation": 1.0, "seeds": [mean - 1, mean, mean + 1]}


def probe(attribute: str = "tag", **changes: Any) -> dict[str, Any]:
    found = zip(LAYERS, (80.0, 92.0, 90.0, 93.0), (60.0, 75.0, 70.0, 76.0), strict=True)
    return {
        "kind": "probe",
        "command": f"python -m spacy elmo probe --attr {attribute}",
        "weights": "small",
        "attribute": attribute,
        "tokens": {"train": 20000, "dev": 1000, "test": 2000},
        "unseen": 300,
        "baselines": [{"name": "majority", "all": 13.0, "unseen": None}, {"name": "most", "all": 70.5, "unseen": 20.0}],
        "probes": [
            {"name": name, "layers": layers, "all": _score(all_words), "unseen": _score(unseen), "weights": None}
            for (name, layers), all_words, unseen in found
        ],
        **changes,
    }


def senses(**changes: Any) -> dict[str, Any]:
    return {
        "kind": "senses",
        "command": "python -m spacy elmo senses",
        "weights": "small",
        "train": {"name": "train", "instances": 1200, "senses": 90, "lemmas": 40},
        "tests": [
            {"name": "one", "instances": 100},
            {"name": "two", "instances": 50},
            {"name": "all", "instances": 150},
        ],
        "baselines": [{"name": "first sense", "f1": {"one": 60.0, "two": 66.0, "all": 62.0}}],
        "layers": [
            {"name": name, "layers": layers, "f1": {"one": f1, "two": f1, "all": f1}}
            for (name, layers), f1 in zip(LAYERS, (50.0, 61.0, 64.5, 70.0), strict=True)
        ],
        **changes,
    }


def contextuality() -> dict[str, Any]:
    cosines = [(1.0, 0.3, 0.1), (0.8, 0.4, 0.2), (0.6, 0.5, 0.3), (0.8, 0.4, 0.2)]
    return {
        "kind": "contextuality",
        "command": "python -m spacy elmo contextuality",
        "weights": "small",
        "sentences": 100,
        "tokens": 2000,
        "words": 30,
        "layers": [
            {"name": name, "layers": layers, "same_word": same, "same_sentence": sentence, "random_words": anything}
            for (name, layers), (same, sentence, anything) in zip(LAYERS, cosines, strict=True)
        ],
    }


def neighbours() -> dict[str, Any]:
    def uses(*texts: str) -> list[dict[str, Any]]:
        return [{"similarity": 0.9, "text": text} for text in texts]

    verb, noun = "They [play] chess.", "A new [play] <b>."
    return {
        "kind": "neighbours",
        "command": "python -m spacy elmo neighbours",
        "weights": "small",
        "layers": ["token layer", "LSTM layer 1"],
        "uses": [
            {"sentence": "We [play].", "neighbours": [uses(verb, noun), uses(verb, "You [play].")]},
            {"sentence": "A [Play].", "neighbours": [uses(verb, noun), uses(noun, "You [play].")]},
        ],
    }


def write_grid_result(
    directory: Path, name: str, found: dict[str, Sequence[float]], *, data: str = "wnut17", component: str = "ner"
) -> Path:
    """Write what `spacy elmo trials --grid configs/grid_NAME.cfg` would have written: the scores of some variants."""
    grid = load_grid(CONFIGS / f"grid_{name}.cfg")
    parts = {"input": ["elmo_in"], "output": ["elmo_out"], "both": ["elmo_in", "elmo_out"]}
    for variant in grid.variants:
        if variant.name in found:
            mixes = [
                {"component": component, "part": part, "weights": [0.2, 0.5, 0.3], "gamma": 2.0}
                for part in parts.get(variant.place, [])
                if variant.settings["layers"] == "mix"
            ]
            config = {"test": f"corpus/{data}/test.spacy"}
            write_trials(directory / variant.name, {100.0: found[variant.name]}, mixes=mixes, config=config)
    result: dict[str, Any] = {
        "kind": "grid",
        "command": f"python -m spacy elmo trials {component} {name}",
        "question": grid.question,
    }
    result |= {"explanation": grid.explanation, "paper_table": grid.paper_table}
    result |= {"variants": [{"name": variant.name, "title": variant.title} for variant in grid.variants]}
    (directory / GRID).write_text(json.dumps(result), encoding="utf8")
    return directory / GRID
