"""Scores: which ones matter, what they are called, and what several seeds say together."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard


@dataclass(frozen=True)
class Score:
    """A score of spaCy's, for people who have not met it.

    name (str): What it is called.
    task (str): What is scored.
    meaning (str): How to read it.
    others (Sequence[str]): The keys of scores that are shown beside it.
    per_label (str | None): The key of the same score for single labels.
    """

    name: str
    task: str
    meaning: str
    others: Sequence[str] = ()
    per_label: str | None = None


_F = "F is the harmonic mean of precision (of what was found, how much is right) and recall (of what there is, how much was found)"
SCORES = {
    "ents_f": Score(
        "F",
        "Named entities",
        f"An entity is found if its first word, its last word and its label are all right. {_F}.",
        ("ents_p", "ents_r"),
        "ents_per_type",
    ),
    "cats_macro_f": Score(
        "macro F",
        "Text classification",
        f"The mean of the labels’ F, where a rare label counts as much as a frequent one. {_F}.",
        ("cats_micro_f", "cats_macro_auc"),
        "cats_f_per_type",
    ),
    "cats_micro_f": Score(
        "micro F",
        "Text classification",
        f"All decisions count alike: if each text has one label, it is the share of texts that got theirs. {_F}.",
        ("cats_macro_f", "cats_macro_auc"),
        "cats_f_per_type",
    ),
    "cats_macro_auc": Score(
        "macro AUC",
        "Text classification",
        "How often a text that has a label gets a higher score for it than one that has not: 50 is guessing. The mean of all "
        "labels, where a rare one counts as much as a frequent one.",
        ("cats_macro_f", "cats_micro_f"),
        "cats_f_per_type",
    ),
    "cats_score": Score(
        "F of the positive label",
        "Text classification",
        f"{_F}.",
        ("cats_micro_f", "cats_macro_f", "cats_macro_auc"),
        "cats_f_per_type",
    ),
    "tag_acc": Score("accuracy", "Tagging", "The share of tokens that got the right tag.", (), "tag_per_type"),
    "pos_acc": Score(
        "accuracy", "Parts of speech", "The share of tokens that got the right part of speech.", (), "pos_per_type"
    ),
    "dep_las": Score(
        "labelled attachment",
        "Dependencies",
        "The share of tokens that got the right head, and the right label for it.",
        ("dep_uas",),
        "dep_las_per_type",
    ),
    "dep_uas": Score("attachment", "Dependencies", "The share of tokens that got the right head.", ("dep_las",)),
    "ents_p": Score("precision", "Named entities", "Of what was found, how much is right."),
    "ents_r": Score("recall", "Named entities", "Of what there is, how much was found."),
}


# What spaCy takes for `cats_score`, by what it says of it.
CATS_SCORES = {"macro F": "cats_macro_f", "macro AUC": "cats_macro_auc"}


def describe(key: str) -> Score:
    """Say what a score is.

    key (str): Its key in spaCy's scores.
    RETURNS (Score): What is known about it.
    """
    return SCORES.get(key) or Score(key, key, f"spaCy's score {key}.", (), f"{key.rpartition('_')[0]}_per_type")


def main_scores(metrics: Mapping[str, Any]) -> list[str]:
    """Find the scores by which a training chose its best model.

    metrics (Mapping[str, Any]): What a trial wrote down.
    RETURNS (list[str]): Their keys, the weightiest first.
    """
    weights = {key: weight for key, weight in metrics["score_weights"].items() if weight}
    keys = sorted(weights, key=lambda key: -weights[key])
    scores = metrics["scores"]
    same = {"cats_score": CATS_SCORES.get(scores.get("cats_score_desc"), "cats_score")}
    return [same.get(key, key) for key in keys if is_number(scores.get(key))]


def is_number(value: object) -> TypeGuard[float]:
    """RETURNS (bool): Whether this is a score, and not a missing one, or scores of several labels."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


@dataclass(frozen=True)
class Sample:
    """One score, of several seeds, in per cent.

    values (Sequence[float]): The scores.
    """

    values: Sequence[float]

    def __len__(self) -> int:
        return len(self.values)

    @property
    def mean(self) -> float:
        """RETURNS (float): The mean."""
        return statistics.fmean(self.values)

    @property
    def deviation(self) -> float | None:
        """RETURNS (float | None): The standard deviation of what the seeds are a sample of; of one seed, nobody knows it."""
        return statistics.stdev(self.values) if len(self) > 1 else None


def conclude(name: str, sample: Sample, first_name: str, first: Sample) -> str:
    """Say in words whether a run is better than the first one, and no more than the seeds say.

    name, first_name (str): What the runs are called.
    sample, first (Sample): Their scores.
    RETURNS (str): A sentence or two.
    """
    difference = sample.mean - first.mean
    if abs(difference) < 0.005:
        return f"‘{name}’ scores as high as ‘{first_name}’: {sample.mean:.1f} on average."
    side, above = ("higher", "above") if difference > 0 else ("lower", "below")
    scores = f"{sample.mean:.1f} against {first.mean:.1f}"
    size = f"{abs(difference):.1f}" if abs(difference) >= 1 else f"{abs(difference):.2f}"
    is_higher = f"scores {side} by {size} points than ‘{first_name}’"
    if len(sample) == len(first) == 1:
        return f"‘{name}’ {is_higher}: {scores}, with one seed each. Another seed may say something else: only several can tell."
    counts = f"{len(sample)} and {len(first)} seeds"
    is_apart = min(sample.values) > max(first.values) or max(sample.values) < min(first.values)
    if not is_apart:
        return f"The seeds overlap: no clear difference. On average, ‘{name}’ {is_higher}: {scores} ({counts})."
    n_orders = math.comb(
        len(sample) + len(first), len(first)
    )  # in two of which the seeds are apart, one way or the other
    return (
        f"‘{name}’ {is_higher} on average: {scores}. Every seed of ‘{name}’ is {above} every seed of ‘{first_name}’ ({counts}); "
        f"if the two were equally good, they would be so far apart, one way or the other, in 2 of {n_orders} cases."
    )
