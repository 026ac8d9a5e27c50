"""Sections about the mixes of ELMo's layers that models have learned."""

import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from ..analysis.mixes import LearnedMix, draw_mixes
from .page import Figure, Paragraph, Section
from .trial_set import TrialSet


def make_mix_sections(trial_sets: Sequence[TrialSet], fraction: float) -> Iterator[Section]:
    """Show how each model weights ELMo's layers.

    trial_sets (Sequence[TrialSet]): The trials of each model.
    fraction (float): The fraction of the training data.
    YIELDS (Section): A section for each model that learned a mix.
    """
    for number, trial_set in enumerate(trial_sets):
        trials = trial_set.trials_with(fraction)
        mixes = _mean_mixes([trial.get("mixes", []) for trial in trials])
        if mixes:
            seeds = "of one training" if len(trials) == 1 else f"means of {len(trials)} trainings"
            yield Section(
                f"Layer weights of {trial_set.name}",
                [
                    Paragraph(
                        "ELMo's vectors are a weighted sum of the language model's layers, and training finds the weights. The "
                        "token layer sees only the word itself, the layers above it the whole sentence. Gamma scales the sum."
                    ),
                    Figure(f"mixes-{number}", f"The weights of the layers, {seeds}", draw_mixes(mixes)),
                ],
            )


def _mean_mixes(mixes_of_trials: Sequence[Sequence[dict[str, Any]]]) -> list[LearnedMix]:
    """Average each mix over all trials. Mixes with the same name in one trial are distinguished by their order."""
    groups: dict[tuple[str, str, int], list[dict[str, Any]]] = {}
    for mixes in mixes_of_trials:
        n_same: Counter[tuple[str, str]] = Counter()
        for mix in mixes:
            key = (mix["component"], mix["part"] if "part" in mix else mix["place"])  # "place": as 0.1.0 wrote it
            groups.setdefault((*key, n_same[key]), []).append(mix)
            n_same[key] += 1
    return [
        LearnedMix(
            component,
            part,
            weights=[statistics.fmean(layer) for layer in zip(*(mix["weights"] for mix in group), strict=True)],
            gamma=statistics.fmean(mix["gamma"] for mix in group),
        )
        for (component, part, _), group in groups.items()
    ]
