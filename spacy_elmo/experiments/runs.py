"""What `spacy elmo trials` wrote, read back."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .places import METRICS, Place, find_places
from .scores import Sample, is_number, main_scores

Metrics = dict[str, Any]

NUMBER = (int, float)
NEEDED: dict[str, tuple[type, ...]] = {
    "share": NUMBER,
    "seed": (int,),
    "n_docs": (int,),
    "training_seconds": NUMBER,
    "words_per_second": NUMBER,
    "scores": (dict,),
    "score_weights": (dict,),
    "config": (dict,),
    "identity": (dict,),
}
DESCRIPTION = ("path", "overrides", "code", "gold_preproc", "pipeline", "train", "n_train_docs", "test", "n_test_docs")
# As people write them.
SPELLINGS = {"elmo": "ELMo", "bilm": "biLM", "ner": "NER", "crf": "CRF", "cnn": "CNN"}


@dataclass(frozen=True)
class Run:
    """The trials of one config.

    name (str): What it is called.
    directory (Path): Where it is.
    trials (Sequence[Metrics]): What each trial wrote down.
    n_unfinished (int): How many trials were begun and not finished.
    """

    name: str
    directory: Path
    trials: Sequence[Metrics]
    n_unfinished: int = 0

    @property
    def shares(self) -> list[float]:
        """RETURNS (list[float]): The shares of the training data, from small to large."""
        return sorted({trial["share"] for trial in self.trials})

    @property
    def seeds(self) -> list[int]:
        """RETURNS (list[int]): The seeds."""
        return sorted({trial["seed"] for trial in self.trials})

    @property
    def config(self) -> dict[str, Any]:
        """RETURNS (dict[str, Any]): What its trials say of their config."""
        config: dict[str, Any] = self.trials[0]["config"]
        return config

    def at(self, share: float) -> list[Metrics]:
        """RETURNS (list[Metrics]): The trials with a share of the training data, one for each seed."""
        return [trial for trial in self.trials if trial["share"] == share]

    def main_scores(self, share: float) -> list[str]:
        """RETURNS (list[str]): The keys of the scores by which it chose its best models, the weightiest first."""
        return main_scores(self.at(share)[0])

    def sample(self, key: str, share: float) -> Sample:
        """RETURNS (Sample): A score of all seeds, in per cent. Where it is missing, it is left out."""
        return Sample([100 * trial["scores"][key] for trial in self.at(share) if is_number(trial["scores"].get(key))])

    def label_samples(self, key: str, share: float) -> dict[str, Sample]:
        """RETURNS (dict[str, Sample]): The F of each label that any seed has, in per cent."""
        values: dict[str, list[float]] = {}
        for trial in self.at(share):
            per_label = trial["scores"].get(key)
            for label, scores in per_label.items() if isinstance(per_label, dict) else ():
                score = scores.get("f") if isinstance(scores, dict) else scores
                if is_number(score):
                    values.setdefault(label, []).append(100 * score)
        return {label: Sample(scores) for label, scores in values.items()}


def read_runs(directories: Sequence[Path], names: Sequence[str] = ()) -> list[Run]:
    """Read runs that are to be compared.

    directories (Sequence[Path]): Where they are, the first being the one that the others are compared with.
    names (Sequence[str]): What they are called; by default, after their directories.
    RETURNS (list[Run]): The runs.
    """
    if len(directories) < 2:
        raise ValueError(f"A comparison takes two runs or more, got {len(directories)}.")
    if names and len(names) != len(directories):
        raise ValueError(
            f"There are {len(directories)} runs and {len(names)} names: give a name to each run, or to none."
        )
    if len({directory.resolve() for directory in directories}) < len(directories):
        raise ValueError(f"The same run is to be compared with itself: {directories[0]}. Name different ones.")
    names = names or name_runs(directories)
    if len(set(names)) < len(names):
        raise ValueError(f"Two runs have the same name: {', '.join(names)}. Give each its own (--names).")
    runs = [read_run(directory, name) for directory, name in zip(directories, names, strict=True)]
    check_test_data(runs)
    return runs


def read_run(directory: Path, name: str) -> Run:
    """Read one run.

    directory (Path): Where it is.
    name (str): What it is called.
    RETURNS (Run): The run.
    """
    if not directory.is_dir():
        raise ValueError(f"There is no run at {directory}: no such directory.")
    places = find_places(directory)
    paths = [place.below(directory) / METRICS for place in places]
    trials = [_read_metrics(path, place) for path, place in zip(paths, places, strict=True) if path.exists()]
    if not trials:
        raise ValueError(
            f"There is no finished trial in {directory}: none of its directories SHARE/SEED has a {METRICS}. Make some with "
            f"`python -m spacy elmo trials`."
        )
    for trial in trials:
        if trial["identity"] != trials[0]["identity"]:
            first, other = (Place(found["share"], found["seed"]) for found in (trials[0], trial))
            raise ValueError(
                f"{directory} has trials of different configs or data: {first} and {other}. Make them all again with "
                f"`python -m spacy elmo trials ... --overwrite`."
            )
    return Run(name, directory, trials, len(places) - len(trials))


def name_runs(directories: Sequence[Path]) -> list[str]:
    """Name runs after their directories, with as many of those above as it takes to tell them apart.

    directories (Sequence[Path]): Where they are.
    RETURNS (list[str]): Their names.
    """
    parts = [directory.resolve().parts for directory in directories]
    for n_parts in range(1, max(map(len, parts))):
        names = [", ".join(map(spell, part[-n_parts:])) for part in parts]
        if len(set(names)) == len(names):
            return names
    return list(map(str, directories))  # such as run_1 and run-1, which would be spelled alike


def spell(name: str) -> str:
    """RETURNS (str): The name of a directory or of a label, as one would write it."""
    words = [SPELLINGS.get(word.lower(), word) for word in re.split(r"[\s_-]+", name) if word]
    text = " ".join(words) or name
    return text if words and words[0] in SPELLINGS.values() else text[:1].upper() + text[1:]


def check_test_data(runs: Sequence[Run]) -> None:
    """Refuse scores that are not of the same data.

    runs (Sequence[Run]): The runs.
    """
    (first, *_), trials = runs[0].trials, [(run, trial) for run in runs for trial in run.trials]
    for run, trial in trials:
        for name, reason in (("test", "test data"), ("gold_preproc", "tokens (--gold-preproc)")):
            if trial["identity"].get(name) != first["identity"].get(name):
                raise ValueError(
                    f"{run.directory} was scored on other {reason} than {runs[0].directory}: share {trial['share']:g}, seed "
                    f"{trial['seed']} on {trial['config'].get('test')}, the other on {first['config'].get('test')}. Their "
                    f"scores cannot be compared: run the trials with the same --test."
                )


def _read_metrics(path: Path, place: Place) -> Metrics:
    remedy = "Delete it and repeat `python -m spacy elmo trials`, which makes this trial again."
    try:
        metrics = json.loads(path.read_text(encoding="utf8"))
    except (ValueError, OSError) as error:
        raise ValueError(f"{path} cannot be read: {error}. {remedy}") from error
    found = metrics if isinstance(metrics, dict) else {}
    wrong = [name for name, kinds in NEEDED.items() if not isinstance(found.get(name), kinds)]
    wrong = wrong or [f"config.{name}" for name in DESCRIPTION if name not in found["config"]]
    if wrong:
        raise ValueError(f"{path} is not the metrics of a trial: it has no {wrong[0]}. {remedy}")
    says = Place(found["share"], found["seed"])
    if says != place:
        raise ValueError(f"{path} has the metrics of {says}, as if copied: a seed must not count twice. {remedy}")
    return found
