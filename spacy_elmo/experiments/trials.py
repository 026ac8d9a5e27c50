"""Train one config several times: with every seed, on every share of the training data."""

import gc
import json
import shutil
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
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

from ..analysis.mixes import learned_mixes
from ..files.atomic import naming, write_file
from .checksums import checksum
from .labels import give_labels, write_labels
from .places import ALL, METRICS, Place, find_places
from .scoring import LabelScorer
from .subsets import count_docs, write_share

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
    find_weights (Callable): From the `weights` of an ELMo in the config, which may be null, to their directory.
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
    find_weights: Callable[[str | None], Path]
    overrides: dict[str, Any] = field(default_factory=dict)
    code_path: Path | None = None
    gold_preproc: bool = False
    drop_models: bool = False
    overwrite: bool = False
    use_gpu: int = -1
    _is_cleared: bool = field(default=False, init=False)
    _n_docs_of_share: dict[float, int] = field(default_factory=dict, init=False)  # of the shares that were written

    @property
    def places(self) -> list[Place]:
        """RETURNS (list[Place]): All trials, in the order in which they are made: after each seed, there is a whole curve."""
        return [Place(share, seed) for seed in self.seeds for share in self.shares]

    def find_todo(self) -> list[Place]:
        """Find what is to be done, after checking all that can be checked before the first hour of training.

        RETURNS (list[Place]): The trials that are not done yet.
        """
        if self.output.exists() and not self.output.is_dir():
            raise ValueError(f"{self.output} is a file; a directory is to be written there. Choose another place.")
        if {SEED, "training.seed"} & self.overrides.keys():
            raise ValueError("The seeds are those of --seeds: leave --system.seed and --training.seed out.")
        for path, n_docs in ((self.train, self.n_docs), (self.test, self.n_test_docs)):
            if not n_docs:
                raise ValueError(f"There are no docs at {path}: it is empty.")
        self._check_that_shares_are_read()
        done = [] if self.overwrite else list(self._find_done())
        return [place for place in self.places if place not in done]

    @cached_property
    def config(self) -> Config:
        """RETURNS (Config): The config with its overrides. What refers to other values still does."""
        return load_config(self.config_path, overrides=self.overrides, interpolate=False)

    @cached_property
    def train(self) -> Path:
        """RETURNS (Path): The training data."""
        path = self.config.interpolate().get("paths", {}).get("train")
        if not path:
            raise ValueError(
                f"{self.config_path} has no {TRAIN}, the training data. Set it there, or with --{TRAIN} train.spacy."
            )
        return Path(path)

    @cached_property
    def n_docs(self) -> int:
        """RETURNS (int): How many docs the training data have."""
        return count_docs(self.train)

    @cached_property
    def n_test_docs(self) -> int:
        """RETURNS (int): How many docs the test data have."""
        return count_docs(self.test)

    @cached_property
    def identity(self) -> dict[str, str]:
        """RETURNS (dict[str, str]): What makes trials the same. Where the data are does not matter; what is in them does."""
        config, values = self._with_seed(0), self.config.interpolate()
        paths = {"test": self.test}
        for name, value in values["paths"].items():
            # What holds the trials themselves is never the same again.
            if _is_path(value) and not self.output.resolve().is_relative_to(Path(value).resolve()):
                paths[f"paths.{name}"] = Path(value)
                config["paths"][name] = "below"
        elsewhere = {name: self.find_weights(weights) for name, weights in _find_elmo(values)}
        elsewhere |= {name: Path(value) for name, value in _find_paths(values)}
        for name, path in elsewhere.items():
            if path.exists() and path not in paths.values():
                paths[name] = path
        data = {name: checksum(path) for name, path in paths.items()}
        code = checksum(self.code_path) if self.code_path else ""
        return {"config": config.to_str(), "code": code, "gold_preproc": str(self.gold_preproc), **data}

    def run(self, place: Place) -> dict[str, Any]:
        """Train and score one.

        place (Place): Which one.
        RETURNS (dict[str, Any]): What was written to its metrics.json.
        """
        gc.collect()  # an ELMo and its listeners are a cycle: those of the trial before are still in memory
        directory, identity = place.below(self.output), self.identity
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
                "identity": identity,
            }
            text = json.dumps(metrics, indent=2, default=float)  # a scorer may count in NumPy's integers
        shutil.rmtree(directory / DIR_MODEL_LAST)
        if self.drop_models and place.share < ALL:
            shutil.rmtree(directory / DIR_MODEL_BEST)
        # Last, and in one piece: a trial that has it is done.
        write_file(directory / METRICS, text + "\n")
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
            "training": nlp.config.interpolate()["training"],
        }

    def _prepare(self, place: Place) -> tuple[Config, int]:
        """Make the config of a trial, and the files that it names."""
        config = self._with_seed(place.seed)
        if place.share >= ALL:
            return config, self.n_docs
        docs = place.below(self.output).with_name(SHARE_OF_DOCS)
        if place.share not in self._n_docs_of_share:
            self._n_docs_of_share[place.share] = write_share(self.train, place.share, docs)
        config["paths"]["train"] = str(docs)
        give_labels(config, self._labels)
        return config, self._n_docs_of_share[place.share]

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
        if not isinstance(corpus, str):
            return  # spaCy says what is wrong with it
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
                metrics = json.loads(path.read_text(encoding="utf8"))
            except (OSError, ValueError):
                continue  # half done
            identity = metrics.get("identity") if isinstance(metrics, dict) else None
            if not isinstance(identity, dict):
                raise ValueError(
                    f"{path} is not the metrics of a trial: it has no identity. Move it away, or choose another place."
                )
            for name, value in self.identity.items():
                if identity.get(name) != value:
                    how = "differ in" if name in identity else "are of an earlier version, which took no note of"
                    raise ValueError(
                        f"There are trials in {self.output} that {how} {DIFFERENCES.get(name, f'the files of {name}')}, such as "
                        f"{path.parent}. Replace them all (--overwrite, or delete {self.output}), or choose another place."
                    )
            yield place

    def _clear(self) -> None:
        """Remove the old trials, all of them, now that nothing is in the way of the new ones."""
        if self._is_cleared or not self.overwrite:
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
    for empty in (directory, directory.parent):
        with suppress(OSError):  # it is not empty
            empty.rmdir()


def _find_elmo(section: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, str | None]]:
    """Find the `weights` of every ELMo in a config: the name of the setting, and its value."""
    is_component = section.get("factory") == "elmo" and section.get("model") is None
    weights = section.get("weights")
    if (is_component or section.get("@architectures") == "spacy_elmo.Elmo.v1") and isinstance(weights, str | None):
        yield f"{prefix}weights", weights
    for name, value in section.items():
        if isinstance(value, dict):
            yield from _find_elmo(value, f"{prefix}{name}.")


def _find_paths(section: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Find what a config names outside [paths]: files, and, where they are expected, directories."""
    for name, value in section.items():
        if isinstance(value, dict):
            if prefix or name != "paths":
                yield from _find_paths(value, f"{prefix}{name}.")
        elif _is_path(value) and (Path(value).is_file() or name in ("path", "source", "vectors")):
            yield f"{prefix}{name}", value


def _is_path(value: object) -> bool:
    return isinstance(value, str) and bool(value) and Path(value).exists()


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
