"""Sections about the mixes of ELMo's layers that models have learned."""

import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..analysis.mixes import LearnedMix, draw_mixes, layer_names
from ..files.damage import refuse_damaged
from .formatting import format_layer
from .grid_trials import read_variants
from .page import Code, Figure, Paragraph, Section
from .paper import MIXES
from .results import Result
from .trial_set import TrialSet

EXPLANATION = (
    "ELMo's vectors are a weighted sum of the language model's layers, and training finds the weights. The token layer sees only "
    "the word itself, the layers above it the whole sentence. Gamma scales the sum."
)
PLACES = {"elmo_in": "input", "elmo_out": "output"}


def make_mix_sections(trial_sets: Sequence[TrialSet], fraction: float) -> Iterator[Section]:
    """Show how each model weights ELMo's layers.

    trial_sets (Sequence[TrialSet]): The trials of each model.
    fraction (float): The fraction of the training data.
    YIELDS (Section): A section for each model that learned a mix.
    """
    for number, trial_set in enumerate(trial_sets):
        n_trials = len(trial_set.trials_with(fraction))
        mixes = _mean_mixes(trial_set, fraction)
        if mixes:
            seeds = "of one training" if n_trials == 1 else f"means of {n_trials} trainings"
            yield Section(
                f"Layer weights of {trial_set.name}",
                [
                    Paragraph(EXPLANATION),
                    Figure(f"mixes-{number}", f"The weights of the layers, {seeds}", draw_mixes(mixes)),
                ],
            )


def make_mix_question(grids: Sequence[tuple[Result, Path]]) -> Section | None:
    """Show which layers tasks weight most, as figure 2 of the paper does.

    grids (Sequence[tuple]): The results of grids of trials, and their directories.
    RETURNS (Section | None): The section. For each task, it has the last variant with the most mixes: that with ELMo at the input
        and the output, if it was trained. None if no variant learned a mix.
    """
    chosen: dict[tuple[str, str], list[LearnedMix]] = {}
    commands: dict[tuple[str, str], str] = {}
    for result, directory in grids:
        for trial_set in read_variants(result, directory):
            mixes = _mean_mixes(trial_set, trial_set.fractions[-1])
            task = (trial_set.test_name, mixes[0].component) if mixes else ("", "")
            if mixes and len(mixes) >= len(chosen.get(task, [])):
                chosen[task], commands[task] = mixes, result["command"]
    mixes = [
        LearnedMix(data, f"{component}.{PLACES.get(mix.part, mix.part)}", mix.weights, mix.gamma)
        for (data, component), found in chosen.items()
        for mix in found
    ]
    if not mixes:
        return None
    names = layer_names(mixes)
    answers = []
    for mix in mixes:
        best = max(range(len(mix.weights)), key=lambda i: mix.weights[i])
        layer = format_layer(names[best])
        answers.append(f"‘{mix.name}’ gives {layer} the most weight, {mix.weights[best]:.2f}")
    return Section(
        "Which layers do tasks weight most?",
        [
            Paragraph(f"{'; '.join(answers)}. Equal weights would be {1 / len(names):.2f}.", "result"),
            Paragraph(EXPLANATION),
            Figure("mixes", "The weights of the layers, means of all seeds", draw_mixes(mixes)),
            Paragraph(MIXES, "paper"),
            Code("\n".join(dict.fromkeys(commands.values()))),
        ],
    )


def _mean_mixes(trial_set: TrialSet, fraction: float) -> list[LearnedMix]:
    with refuse_damaged(trial_set.directory, "a directory of trials with learned mixes"):
        return _average([trial.get("mixes", []) for trial in trial_set.trials_with(fraction)])


def _average(mixes_of_trials: Sequence[Sequence[dict[str, Any]]]) -> list[LearnedMix]:
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
