"""The finished trials of one config, read from the directory that `spacy elmo trials` wrote."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import Any

from .sample import Sample
from .scores import is_score, main_scores
from .trial_id import TRIAL_METRICS, TrialId, find_trials

TrialMetrics = dict[str, Any]

NUMBER = (int, float)
REQUIRED: dict[str, tuple[type, ...]] = {
    "fraction": NUMBER,
    "seed": (int,),
    "n_docs": (int,),
    "training_seconds": NUMBER,
    "words_per_second": NUMBER,
    "scores": (dict,),
    "score_weights": (dict,),
    "config": (dict,),
    "identity": (dict,),
}
REQUIRED_OF_CONFIG: dict[str, tuple[type, ...]] = {
    "path": (str,),
    "overrides": (dict,),
    "code": (str, NoneType),
    "gold_preproc": (bool,),
    "pipeline": (list,),
    "train": (str,),
    "test": (str,),
    "n_test_docs": (int,),
}
SPELLINGS = {"elmo": "ELMo", "bilm": "biLM", "ner": "NER", "crf": "CRF", "cnn": "CNN"}


@dataclass(frozen=True)
class TrialSet:
    """The trials of one config.

    name (str): Its name on the page.
    directory (Path): The directory of the trials.
    trials (Sequence[TrialMetrics]): The metrics of each finished trial.
    n_unfinished (int): The number of trials that were started but not finished.
    """

    name: str
    directory: Path
    trials: Sequence[TrialMetrics]
    n_unfinished: int = 0

    @property
    def fractions(self) -> list[float]:
        """RETURNS (list[float]): The fractions of the training data in per cent, in ascending order."""
        return sorted({trial["fraction"] for trial in self.trials})

    @property
    def seeds(self) -> list[int]:
        """RETURNS (list[int]): The seeds, in ascending order."""
        return sorted({trial["seed"] for trial in self.trials})

    @property
    def config(self) -> dict[str, Any]:
        """RETURNS (dict[str, Any]): The description of the config, which all trials share."""
        config: dict[str, Any] = self.trials[0]["config"]
        return config

    @property
    def test_name(self) -> str:
        """RETURNS (str): The name of the test data: that of their directory, since files are often named test.spacy."""
        path = Path(self.config["test"])
        return path.parent.name or path.stem

    def trials_with(self, fraction: float) -> list[TrialMetrics]:
        """RETURNS (list[TrialMetrics]): The trials with a fraction of the training data, one for each seed."""
        return [trial for trial in self.trials if trial["fraction"] == fraction]

    def main_scores(self, fraction: float) -> list[str]:
        """RETURNS (list[str]): The keys of the scores by which it chose its best models, in the order of their weights."""
        return main_scores(self.trials_with(fraction)[0])

    def sample(self, key: str, fraction: float) -> Sample:
        """RETURNS (Sample): A score of all seeds. A seed without the score is left out."""
        scores = [trial["scores"].get(key) for trial in self.trials_with(fraction)]
        return Sample([100 * score for score in scores if is_score(score)])

    def label_samples(self, key: str, fraction: float) -> dict[str, Sample]:
        """RETURNS (dict[str, Sample]): The F of each label that any seed has."""
        values: dict[str, list[float]] = {}
        for trial in self.trials_with(fraction):
            per_label = trial["scores"].get(key)
            for label, scores in per_label.items() if isinstance(per_label, dict) else ():
                score = scores.get("f") if isinstance(scores, dict) else scores
                if is_score(score):
                    values.setdefault(label, []).append(100 * score)
        return {label: Sample(scores) for label, scores in values.items()}


def read_trial_sets(directories: Sequence[Path], names: Sequence[str] = ()) -> list[TrialSet]:
    """Read sets of trials that are to be compared.

    directories (Sequence[Path]): Their directories, the baseline first.
    names (Sequence[str]): Their names on the page; by default, those of their directories.
    RETURNS (list[TrialSet]): The sets, in the same order.
    """
    if len(directories) < 2:
        found = ", ".join(map(str, directories)) or "none"
        raise ValueError(
            f"A comparison needs two directories of trials or more: the baseline, and what is compared with it. Got {found}."
        )
    if names and len(names) != len(directories):
        raise ValueError(
            f"There are {len(directories)} directories of trials and {len(names)} names: name all of them, or none."
        )
    if len({directory.resolve() for directory in directories}) < len(directories):
        raise ValueError(f"A directory of trials is given twice: {', '.join(map(str, directories))}.")
    names = names or default_names(directories)
    if len(set(names)) < len(names):
        raise ValueError(f"Two directories of trials have the same name: {', '.join(names)}. Set others with --names.")
    trial_sets = [read_trial_set(directory, name) for directory, name in zip(directories, names, strict=True)]
    check_test_data(trial_sets)
    return trial_sets


def read_trial_set(directory: Path, name: str) -> TrialSet:
    """Read the finished trials in a directory.

    directory (Path): The directory that `spacy elmo trials` wrote.
    name (str): Its name on the page.
    RETURNS (TrialSet): The trials.
    """
    if not directory.is_dir():
        raise ValueError(f"There are no trials in {directory}: no such directory.")
    trial_ids = find_trials(directory)
    paths = {trial_id: trial_id.directory(directory) / TRIAL_METRICS for trial_id in trial_ids}
    trials = [_read_metrics(path, trial_id) for trial_id, path in paths.items() if path.exists()]
    if not trials:
        raise ValueError(
            f"There is no finished trial in {directory}: none of its directories FRACTION/SEED has a {TRIAL_METRICS}. Run `python "
            f"-m spacy elmo trials` first."
        )
    for trial in trials:
        if trial["identity"] != trials[0]["identity"]:
            first, other = (TrialId(found["fraction"], found["seed"]) for found in (trials[0], trial))
            raise ValueError(
                f"{directory} has trials of different configs or data: {first} and {other}. Run all of them again with `python "
                f"-m spacy elmo trials ... --overwrite`."
            )
    return TrialSet(name, directory, trials, len(trial_ids) - len(trials))


def default_names(directories: Sequence[Path]) -> list[str]:
    """Name sets of trials after their directories. Names of parent directories are added until all names are different.

    directories (Sequence[Path]): The directories.
    RETURNS (list[str]): The names.
    """
    parts = [directory.resolve().parts for directory in directories]
    for n_parts in range(1, max(map(len, parts))):
        names = [", ".join(map(_spell, part[-n_parts:])) for part in parts]
        if len(set(names)) == len(names):
            return names
    return list(map(str, directories))  # run_1 and run-1, for example, are spelled alike


def check_test_data(trial_sets: Sequence[TrialSet]) -> None:
    """Raise an error if sets of trials were scored on different test data.

    trial_sets (Sequence[TrialSet]): The sets.
    """
    baseline = trial_sets[0]
    expected = baseline.trials[0]
    for trial_set in trial_sets:
        for trial in trial_set.trials:
            if trial["identity"].get("test") != expected["identity"].get("test"):
                raise ValueError(
                    f"{trial_set.directory} was scored on other test data than {baseline.directory}: "
                    f"{TrialId(trial['fraction'], trial['seed'])} on {trial['config'].get('test')}, the other on "
                    f"{expected['config'].get('test')}. Run the trials with the same --test to compare their scores."
                )
            if trial["identity"].get("gold_preproc") != expected["identity"].get("gold_preproc"):
                raise ValueError(
                    f"{trial_set.directory} was scored on other tokens than {baseline.directory}: one of them with --gold-preproc, "
                    f"the other without it. Run the trials of both with --gold-preproc, or of both without it."
                )


def _spell(name: str) -> str:
    """Write the name of a directory in words: "with_elmo-2" is "With ELMo 2"."""
    words = [SPELLINGS.get(word.lower(), word) for word in re.split(r"[\s_-]+", name) if word]
    text = " ".join(words) or name
    return text if words and words[0] in SPELLINGS.values() else text[:1].upper() + text[1:]


def _find_missing(found: dict[str, Any], required: dict[str, tuple[type, ...]]) -> list[str]:
    """List what is missing, or of another type, or a number that is not finite, or a list of something else than texts."""
    return [
        name
        for name, types in required.items()
        if name not in found
        or not isinstance(found[name], types)
        or (types == NUMBER and not is_score(found[name]))
        or (types == (list,) and not all(isinstance(item, str) for item in found[name]))
    ]


def _read_metrics(path: Path, trial_id: TrialId) -> TrialMetrics:
    remedy = "Delete it and repeat `python -m spacy elmo trials`, which runs this trial again."
    try:
        metrics = json.loads(path.read_text(encoding="utf8"))
    except (ValueError, OSError, RecursionError) as error:
        raise ValueError(f"{path} cannot be read: {error}. {remedy}") from error
    found = metrics if isinstance(metrics, dict) else {}
    if "share" in found:  # as version 0.1 named it
        found["fraction"] = found.pop("share")
    missing = _find_missing(found, REQUIRED) or [
        f"config.{name}" for name in _find_missing(found["config"], REQUIRED_OF_CONFIG)
    ]
    if missing:
        raise ValueError(f"{path} is not the metrics of a trial: it has no {missing[0]}. {remedy}")
    found_id = TrialId(found["fraction"], found["seed"])
    if found_id != trial_id:
        raise ValueError(
            f"{path} has the metrics of {found_id}, perhaps as a copy. A seed must not count twice. {remedy}"
        )
    return found
