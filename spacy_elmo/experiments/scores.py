"""spaCy's scores: their names, their meaning, and which ones a training optimizes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

LARGEST = 1e300  # JSON can hold infinity, NaN, and integers that no float can


@dataclass(frozen=True)
class ScoreInfo:
    """A score of spaCy, explained to readers who do not know it.

    name (str): Its name.
    task (str): The task that it scores.
    meaning (str): How to read it.
    others (Sequence[str]): The keys of scores that are shown beside it.
    per_label (str | None): The key of the same score for single labels.
    """

    name: str
    task: str
    meaning: str
    others: Sequence[str] = ()
    per_label: str | None = None

    @property
    def title(self) -> str:
        """RETURNS (str): The task and the name."""
        return self.name if self.name == self.task else f"{self.task}, {self.name}"


_F = "F is the harmonic mean of precision (how much of what was found is right) and recall (how much of what is right was found)"
KNOWN_SCORES = {
    "ents_f": ScoreInfo(
        "F",
        "Named entities",
        f"An entity is found if its first word, its last word and its label are all right. {_F}.",
        ("ents_p", "ents_r"),
        "ents_per_type",
    ),
    "cats_macro_f": ScoreInfo(
        "macro F",
        "Text classification",
        f"The mean of the F of all labels. Rare labels count as much as frequent ones. {_F}.",
        ("cats_micro_f", "cats_macro_auc"),
        "cats_f_per_type",
    ),
    "cats_micro_f": ScoreInfo(
        "micro F",
        "Text classification",
        f"The F of all decisions together. If each text has one label, it is the accuracy. {_F}.",
        ("cats_macro_f", "cats_macro_auc"),
        "cats_f_per_type",
    ),
    "cats_macro_auc": ScoreInfo(
        "macro AUC",
        "Text classification",
        "How often a text with a label gets a higher score for it than a text without it; 50 is chance. It is the mean of all "
        "labels. Rare labels count as much as frequent ones.",
        ("cats_macro_f", "cats_micro_f"),
        "cats_f_per_type",
    ),
    "cats_score": ScoreInfo(
        "F of the positive label",
        "Text classification",
        f"{_F}.",
        ("cats_micro_f", "cats_macro_f", "cats_macro_auc"),
        "cats_f_per_type",
    ),
    "tag_acc": ScoreInfo("accuracy", "Tagging", "How many tokens get the right tag.", (), "tag_per_type"),
    "pos_acc": ScoreInfo(
        "accuracy", "Parts of speech", "How many tokens get the right part of speech.", (), "pos_per_type"
    ),
    "dep_las": ScoreInfo(
        "labelled attachment",
        "Dependencies",
        "How many tokens get the right head and the right label for it.",
        ("dep_uas",),
        "dep_las_per_type",
    ),
    "dep_uas": ScoreInfo("attachment", "Dependencies", "How many tokens get the right head.", ("dep_las",)),
    "ents_p": ScoreInfo("precision", "Named entities", "How much of what was found is right."),
    "ents_r": ScoreInfo("recall", "Named entities", "How much of what is right was found."),
}
# `cats_score` is a copy of one of these; its description says which.
CATS_SCORES = {"macro F": "cats_macro_f", "macro AUC": "cats_macro_auc"}


def get_score_info(key: str) -> ScoreInfo:
    """Explain a score.

    key (str): Its key in spaCy's scores.
    RETURNS (ScoreInfo): The explanation. That of a score that is not listed here has only its key.
    """
    return KNOWN_SCORES.get(key) or ScoreInfo(
        key, key, f"spaCy's score {key}.", (), f"{key.rpartition('_')[0]}_per_type"
    )


def main_scores(metrics: Mapping[str, Any]) -> list[str]:
    """Find the scores by which a training chose its best model.

    metrics (Mapping[str, Any]): The metrics of a trial.
    RETURNS (list[str]): Their keys, in the order of their weights.
    """
    weights = {key: weight for key, weight in metrics["score_weights"].items() if is_score(weight) and weight}
    keys = sorted(weights, key=lambda key: -weights[key])
    scores = metrics["scores"]
    copied = {"cats_score": CATS_SCORES.get(scores.get("cats_score_desc"), "cats_score")}
    return list(dict.fromkeys(copied.get(key, key) for key in keys if is_score(scores.get(key))))


def is_score(value: object) -> TypeGuard[float]:
    """RETURNS (bool): Whether a value is a single score: neither missing nor a dictionary of labels."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < LARGEST
