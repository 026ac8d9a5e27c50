"""What sets of trials have in common, and what makes a comparison of them doubtful."""

from collections.abc import Sequence
from typing import Any

from .formatting import format_count, format_fractions, format_list
from .scores import KNOWN_SCORES
from .trial_set import TrialSet


def common_fractions(trial_sets: Sequence[TrialSet]) -> list[float]:
    """RETURNS (list[float]): The fractions of the training data that all sets have, in ascending order."""
    fractions = set.intersection(*(set(trial_set.fractions) for trial_set in trial_sets))
    if not fractions:
        found = "; ".join(
            f"{trial_set.directory} has {format_fractions(trial_set.fractions)}" for trial_set in trial_sets
        )
        raise ValueError(f"The trials have no fraction of the training data in common: {found}. Run the missing ones.")
    return sorted(fractions)


def common_scores(trial_sets: Sequence[TrialSet], fraction: float, score: str | None) -> list[str]:
    """Find the scores by which sets of trials can be compared.

    trial_sets (Sequence[TrialSet]): The sets.
    fraction (float): The fraction of the training data.
    score (str | None): The key of the score to use; by default, the scores by which the best models were chosen.
    RETURNS (list[str]): Keys of scores that all sets have.
    """

    def is_common(key: str) -> bool:
        return all(len(trial_set.sample(key, fraction)) for trial_set in trial_sets)

    if score is not None:
        scores = trial_sets[0].trials_with(fraction)[0]["scores"]
        known = ", ".join(sorted(key for key in scores if is_common(key) and key != "speed")) or "none in common"
        if score == "speed":
            raise ValueError(
                f"'speed' is not a score in per cent, and every page has it anyway. Choose a score, or leave out --score: the trials "
                f"have {known}."
            )
        if not is_common(score):
            raise ValueError(f"Not all trials have the score {score!r}. They have: {known}.")
        return [score]
    candidates = [key for trial_set in trial_sets for key in trial_set.main_scores(fraction)]
    keys = [key for key in dict.fromkeys(candidates) if is_common(key)]
    keys = keys or [key for key in KNOWN_SCORES if is_common(key)][:1]
    if not keys:
        found = "; ".join(
            f"{trial_set.directory} has {', '.join(trial_set.main_scores(fraction)) or 'none'}"
            for trial_set in trial_sets
        )
        raise ValueError(f"The trials have no score in common: {found}. Are they of the same task?")
    return keys


def find_caveats(trial_sets: Sequence[TrialSet]) -> list[str]:
    """Find reasons to doubt a comparison.

    trial_sets (Sequence[TrialSet]): The sets, the baseline first.
    RETURNS (list[str]): A sentence for each reason.
    """
    caveats = []
    baseline, fractions = trial_sets[0], common_fractions(trial_sets)
    for trial_set in trial_sets:
        caveats += _find_left_out(trial_set, fractions)
        for name, data in (("train", "training data"), ("dev", "dev data")):
            checksums = [found.trials[0]["identity"].get(f"paths.{name}") for found in (trial_set, baseline)]
            if checksums[0] != checksums[1]:
                caveats.append(
                    f"‘{trial_set.name}’ had other {data} than ‘{baseline.name}’: the data may be the cause of a difference."
                )
        if settings := _different_settings(trial_set, baseline):
            caveats.append(
                f"‘{trial_set.name}’ had other settings than ‘{baseline.name}’, which may be the cause of a difference: "
                f"{', '.join(settings)}."
            )
    single = [trial_set.name for trial_set in trial_sets if len(trial_set.trials_with(fractions[-1])) == 1]
    if single:
        names = format_list([f"‘{name}’" for name in single])
        caveats.append(f"There is only one seed of {names}, so that there is no standard deviation.")
    return caveats


def find_gaps(trial_sets: Sequence[TrialSet]) -> list[str]:
    """Find which trials of variants are missing. Variants differ on purpose, so that other differences are not caveats.

    trial_sets (Sequence[TrialSet]): The trials of each variant.
    RETURNS (list[str]): A sentence for each gap.
    """
    fractions = common_fractions(trial_sets)
    gaps = [gap for trial_set in trial_sets for gap in _find_left_out(trial_set, fractions)]
    n_seeds = {trial_set.name: len(trial_set.trials_with(fractions[-1])) for trial_set in trial_sets}
    if len(set(n_seeds.values())) > 1:
        found = [f"‘{name}’ has {format_count(number, 'seed')}" for name, number in n_seeds.items()]
        gaps.append(f"The numbers of seeds differ: {format_list(found)}.")
    return gaps


def _find_left_out(trial_set: TrialSet, fractions: Sequence[float]) -> list[str]:
    left_out = []
    if extra := [fraction for fraction in trial_set.fractions if fraction not in fractions]:
        left_out.append(
            f"‘{trial_set.name}’ also has trials with {format_fractions(extra)} of the training data. They are left out here, "
            f"since not all others have them."
        )
    if trial_set.n_unfinished:
        trials = format_count(trial_set.n_unfinished, "trial")
        left_out.append(f"‘{trial_set.name}’ has {trials} that did not finish, left out here.")
    return left_out


def _different_settings(*trial_sets: TrialSet) -> list[str]:
    """List the settings in which two sets differ: those of [training], and those that were set on the command line."""
    configs = [trial_set.config for trial_set in trial_sets]
    has_training = all("training" in config for config in configs)  # early versions did not record it
    settings, others = (
        {
            **(_flatten(config["training"], "training.") if has_training else {}),
            **{name: value for name, value in config["overrides"].items() if not name.startswith("paths.")},
        }
        for config in configs
    )
    names = (settings.keys() | others.keys()) - {"training.seed"}
    return sorted(name for name in names if settings.get(name) != others.get(name))


def _flatten(section: dict[str, Any], prefix: str) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in section.items():
        flat |= _flatten(value, f"{prefix}{name}.") if isinstance(value, dict) else {f"{prefix}{name}": value}
    return flat
