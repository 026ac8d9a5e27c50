"""Train one config several times: with every seed, on every share of the training data."""

import json
import shutil
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TextIO

from confection import Config, ConfigValidationError
from spacy.language import Language
from spacy.training import Corpus
from spacy.training.initialize import init_nlp
from spacy.training.loop import DIR_MODEL_BEST, DIR_MODEL_LAST, train
from spacy.util import load_config, load_model

from ..atomic import naming, write_file
from ..mixes import learned_mixes
from .checksums import checksum
from .labels import give_labels, write_labels
from .places import ALL, METRICS, Place, find_places
from .scoring import LabelScorer
from .subsets import read_docs, write_share

LOG, SHARE_OF_DOCS, LABELS = "training.log", "train.spacy", "labels"
SEED = "system.seed"
TRAIN = "paths.train"
DIFFERENCES = {
    "config": "their config or its overrides",
    "code": "their --code",
    "gold_preproc": "--gold-preproc",
    "test": "their test data",
    TRAIN: "their training data",
    "paths.dev": "their dev data",
}


class TrialError(RuntimeError):
    """A training that failed."""


@dataclass(kw_only=True)
class Trials:
    """Trainings of one config.

    config_path (Path): The config.
    output (Path): The directory for all trials.
    test (Path): What they are scored on: a .spacy file, or a directory of them.
    seeds (Sequence[int]), shares (Sequence[float]): The trials: each with each.
    overrides (dict[str, Any]): Values of the config that are replaced.
    code_path (Path | None): The file with functions that the config names. It must have been imported.
    gold_preproc (bool): Whether the test data's own tokens and sentences are given to the pipeline.
    drop_models (bool): Whether of shares below 100 the metrics alone are kept.
    overwrite (bool): Whether trials that are there are made again.
    use_gpu (int): The GPU, which must have been set up; -1 for none.
    """

    config_path: Path
    output: Path
    test: Path
    seeds: Sequence[int]
    shares: Sequence[float]
    overrides: dict[str, Any] = field(default_factory=dict)
    code_path: Path | None = None
    gold_preproc: bool = False
    drop_models: bool = False
    overwrite: bool = False
    use_gpu: int = -1

    def __post_init__(self) -> None:
        """Check all that can be checked before the first hour of training."""
        if self.output.exists() and not self.output.is_dir():
            raise ValueError(f"{self.output} is a file; a directory is to be written there. Choose another place.")
        if {SEED, "training.seed"} & self.overrides.keys():
            raise ValueError("The seeds are those of --seeds: leave --system.seed and --training.seed out.")
        self.config = load_config(self.config_path, overrides=self.overrides, interpolate=False)
        paths = self.config.interpolate().get("paths", {})
        if not paths.get("train"):
            raise ValueError(
                f"{self.config_path} has no {TRAIN}, the training data. Set it there, or with --{TRAIN} train.spacy."
            )
        self.train = Path(paths["train"])
        self.n_docs = len(read_docs(self.train))
        self.n_test_docs = len(read_docs(self.test))
        self._check_that_shares_are_read()
        self.data = {"test": checksum(self.test)}
        for name, value in paths.items():
            if isinstance(value, str) and value and Path(value).exists():
                self.data[f"paths.{name}"] = checksum(Path(value))
        self.done = [] if self.overwrite else list(self._find_done())
        self.todo = [place for place in self.places if place not in self.done]
        self._is_cleared = not self.overwrite
        self._n_docs: dict[float, int] = {}  # of the shares that were written

    @property
    def places(self) -> list[Place]:
        """RETURNS (list[Place]): All trials, in the order in which they are made: after each seed, there is a whole curve."""
        return [Place(share, seed) for seed in self.seeds for share in self.shares]

    @cached_property
    def identity(self) -> dict[str, str]:
        """RETURNS (dict[str, str]): What makes trials the same. Where the data are does not matter; what is in them does."""
        config = self._with_seed(0)
        for name in config["paths"]:
            if f"paths.{name}" in self.data:
                config["paths"][name] = "below"
        code = checksum(self.code_path) if self.code_path else ""
        return {"config": config.to_str(), "code": code, "gold_preproc": str(self.gold_preproc), **self.data}

    def run(self, place: Place) -> dict[str, Any]:
        """Train and score one.

        place (Place): Which one.
        RETURNS (dict[str, Any]): What was written to its metrics.json.
        """
        directory = place.below(self.output)
        with _explaining(place):
            config, n_docs = self._prepare(place)
            nlp = init_nlp(config, use_gpu=self.use_gpu)
        self._clear()
        _remove(directory)
        with naming(directory):
            directory.mkdir(parents=True, exist_ok=True)
        with (directory / LOG).open("w", encoding="utf8", buffering=1) as log, _explaining(place, log):
            start = time.perf_counter()
            train(nlp, directory, use_gpu=self.use_gpu, stdout=log, stderr=log)
            seconds = time.perf_counter() - start
            best = load_model(directory / DIR_MODEL_BEST)
            scores = self._score(best)
        shutil.rmtree(directory / DIR_MODEL_LAST)
        if self.drop_models and place.share < ALL:
            shutil.rmtree(directory / DIR_MODEL_BEST)
        metrics = {
            "share": place.share,
            "seed": place.seed,
            "n_docs": n_docs,
            "training_seconds": seconds,
            "words_per_second": scores["speed"],
            "scores": scores,
            "mixes": [asdict(mix) for mix in learned_mixes(best)],
            "score_weights": nlp.config["training"]["score_weights"],
            "config": self._describe(nlp),
            "identity": self.identity,
        }
        # Last, and in one piece: a trial that has it is done.
        write_file(directory / METRICS, json.dumps(metrics, indent=2) + "\n")
        return metrics

    def _describe(self, nlp: Language) -> dict[str, Any]:
        return {
            "path": str(self.config_path),
            "overrides": self.overrides,
            "code": str(self.code_path) if self.code_path else None,
            "gold_preproc": self.gold_preproc,
            "lang": nlp.lang,
            "pipeline": nlp.pipe_names,
            "train": str(self.train),
            "n_train_docs": self.n_docs,
            "test": str(self.test),
            "n_test_docs": self.n_test_docs,
        }

    def _prepare(self, place: Place) -> tuple[Config, int]:
        """Make the config of a trial, and the files that it names."""
        config = self._with_seed(place.seed)
        if place.share >= ALL:
            return config, self.n_docs
        give_labels(config, self._labels)
        docs = place.below(self.output).with_name(SHARE_OF_DOCS)
        if place.share not in self._n_docs:
            self._n_docs[place.share] = write_share(self.train, place.share, docs)
        config["paths"]["train"] = str(docs)
        return config, self._n_docs[place.share]

    def _with_seed(self, seed: int) -> Config:
        config = self.config.copy()
        config.setdefault("system", {})["seed"] = seed
        config.setdefault("training", {})["seed"] = seed
        return config

    @cached_property
    def _labels(self) -> dict[str, Path]:
        return write_labels(init_nlp(self._with_seed(0), use_gpu=self.use_gpu), self.output / LABELS)

    def _score(self, nlp: Language) -> dict[str, Any]:
        examples = list(Corpus(self.test, gold_preproc=self.gold_preproc)(nlp))
        return nlp.evaluate(examples, scorer=LabelScorer(nlp))

    def _check_that_shares_are_read(self) -> None:
        config = Config(Language.default_config).merge(self.config)
        config["paths"]["train"] = sign = "a share of the training data"
        config = config.interpolate()
        corpus = config["training"]["train_corpus"]
        section: Any = config
        for name in corpus.split("."):
            section = section.get(name, {})
        if sign not in json.dumps(section) and min(self.shares) < ALL:
            raise ValueError(
                f"In {self.config_path}, [{corpus}] does not read ${{{TRAIN}}}: a share of that would never be read. Name it "
                f"there, or leave --shares out."
            )

    def _find_done(self) -> Iterator[Place]:
        for place in find_places(self.output):
            path = place.below(self.output) / METRICS
            try:
                identity = json.loads(path.read_text(encoding="utf8"))["identity"]
            except (OSError, ValueError, KeyError, TypeError):
                continue  # half done
            different = [name for name, value in self.identity.items() if identity.get(name) != value]
            if different:
                raise ValueError(
                    f"There are trials in {self.output} that differ in {DIFFERENCES.get(different[0], different[0])}, such as "
                    f"{path.parent}. Replace them all (--overwrite), or choose another place."
                )
            yield place

    def _clear(self) -> None:
        """Remove the old trials, all of them, now that nothing is in the way of the new ones."""
        if self._is_cleared:
            return
        for place in find_places(self.output):
            _remove(place.below(self.output))
        self._is_cleared = True


def _remove(directory: Path) -> None:
    """Remove a trial, and nothing that somebody else has put beside it. What says that it is done goes first."""
    for name in (METRICS, LOG):
        (directory / name).unlink(missing_ok=True)
    for name in (DIR_MODEL_BEST, DIR_MODEL_LAST):
        shutil.rmtree(directory / name, ignore_errors=True)


@contextmanager
def _explaining(place: Place, log: TextIO | None = None) -> Iterator[None]:
    """Say which training failed, and leave the traceback in its log. What a component may raise is not known here."""
    try:
        yield
    except ConfigValidationError:
        raise
    except OSError as error:
        raise OSError(f"The training with {place} failed: {error}.") from error
    except Exception as error:
        message = f"The training with {place} failed: {type(error).__name__}: {error}."
        if log is not None:
            log.write(traceback.format_exc())
            message += f" How it came to that is in {log.name}."
        raise TrialError(message) from error
