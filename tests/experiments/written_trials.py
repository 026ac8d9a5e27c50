"""Write what trials would have written, and compare it."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from spacy_elmo.experiments.comparison import compare_trial_sets
from spacy_elmo.experiments.page import Section, Table
from spacy_elmo.experiments.trial_id import TRIAL_METRICS, TrialId
from spacy_elmo.experiments.trial_set import read_trial_sets

RARE = "<b>&"


def write_trials(
    directory: Path,
    found: dict[float, Sequence[float | None]],
    *,
    labels: dict[str, float] | None = None,
    **changes: Any,
) -> Path:
    """Write what trials would have written: for each fraction, the scores of seed 0, 1 and so on."""
    for fraction, values in found.items():
        for seed, value in enumerate(values):
            types = {label: {"p": 0.0, "r": 0.0, "f": f} for label, f in (labels or {}).items()}
            config: dict[str, Any] = {
                "path": "ner.cfg",
                "overrides": {"training.max_steps": 5, "paths.train": "my train.spacy"},
            }
            config |= {"code": None, "gold_preproc": False, "pipeline": ["elmo", "ner"], "train": "my train.spacy"}
            config |= {"n_train_docs": 200, "test": "test.spacy", "n_test_docs": 60}
            metrics: dict[str, Any] = {
                "fraction": fraction,
                "seed": seed,
                "n_docs": round(2 * fraction),
                "training_seconds": 10.0 + seed,
                "words_per_second": 1000.0,
                "scores": {"ents_f": value, "ents_p": 0.5, "ents_r": None, "ents_per_type": types, "speed": 1000.0},
                "score_weights": {"ents_f": 1.0, "ents_p": 0.0},
                "config": config,
                "identity": {"test": "abc", "gold_preproc": "False", "paths.train": "t", "paths.dev": "d"},
            }
            for name, change in changes.items():
                metrics[name] = {**metrics[name], **change} if isinstance(change, dict) else change
            path = TrialId(fraction, seed).directory(directory)
            path.mkdir(parents=True)
            (path / TRIAL_METRICS).write_text(json.dumps(metrics), encoding="utf8")
    return directory


def compare(*directories: Path, names: Sequence[str] = (), **options: Any) -> Section:
    return compare_trial_sets(read_trial_sets(directories, names), **options)


def tables_of(page: Section) -> dict[str, list[list[str]]]:
    tables = {block.caption: [list(row) for row in block.rows] for block in page.blocks if isinstance(block, Table)}
    for part in page.sections:
        tables |= tables_of(part)
    return tables
