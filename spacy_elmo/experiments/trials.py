"""Train one config several times: with every seed, on every fraction of the training data."""

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
from filelock import FileLock, Timeout
from spacy.language import Language
from spacy.training import Corpus
from spacy.training.initialize import init_nlp
from spacy.training.loop import DIR_MODEL_BEST, DIR_MODEL_LAST, train
from spacy.util import load_config, load_model

from ..analysis.mixes import learned_mixes
from ..files.atomic import explain_write_errors, write_file
from .identity import find_difference, make_identity
from .label_scorer import LabelScorer
from .labels import read_labels_from, write_labels
from .reuse import copy_trial, find_equal
from .subsets import count_docs, write_subset
from .trial_id import ALL, TRIAL_METRICS, TrialId, find_trials

LOG, SUBSET, LABELS, LOCK = "training.log", "train.spacy", "labels", ".lock"


class TrialError(RuntimeError):
    """A training that failed."""


@dataclass(kw_only=True)
class Trials:
    """Trainings of one config.

    config_path (Path): The config.
    output (Path): The directory for all trials.
    test_path (Path): The test data: a .spacy file, or a directory of them.
    seeds (Sequence[int]), fractions (Sequence[float]): There is a trial for each seed and each fraction.
    overrides (dict[str, Any]): Values of the config that are replaced.
    code_path (Path | None): The file with functions that the config names. It must have been imported.
    gold_preproc (bool): Whether to score on the test data's own tokens and sentences.
    drop_models (bool): Whether to keep only the metrics of fractions below 100.
    overwrite (bool): Whether to replace existing trials.
    reuse (Sequence[Path]): Directories with finished trials. One that equals a new trial is copied.
    use_gpu (int): The GPU, which must have been set up; -1 for none.
    """

    config_path: Path
    output: Path
    test_path: Path
    seeds: Sequence[int]
    fractions: Sequence[float]
    overrides: dict[str, Any] = field(default_factory=dict)
    code_path: Path | None = None
    gold_preproc: bool = False
    drop_models: bool = False
    overwrite: bool = False
    reuse: Sequence[Path] = ()
    use_gpu: int = -1
    _has_removed_old: bool = field(default=False, init=False)
    _subset_sizes: dict[float, int] = field(default_factory=dict, init=False)  # of the fractions that were written

    @property
    def trial_ids(self) -> list[TrialId]:
        """RETURNS (list[TrialId]): All trials in the order of their training: all fractions of one seed, then the next seed."""
        return [TrialId(fraction, seed) for seed in self.seeds for fraction in self.fractions]

    def check(self) -> None:
        """Check everything that can be checked before the first training, and change nothing."""
        if self.output.exists() and not self.output.is_dir():
            raise ValueError(f"{self.output} is a file, not a directory. Choose another output directory.")
        if {"system.seed", "training.seed"} & self.overrides.keys():
            raise ValueError("The seeds are set by --seeds: leave out --system.seed and --training.seed.")
        if not {"lang", "pipeline"} <= self.config.get("nlp", {}).keys():
            raise ValueError(
                f"{self.config_path} has no [nlp] with a lang and a pipeline, so that there is no pipeline to train. Choose a config "
                f"for `spacy train`, such as configs/ner.cfg."
            )
        self._check_that_output_is_not_in_data()
        for path, n_docs in ((self.train_path, self.n_docs), (self.test_path, self.n_test_docs)):
            if not n_docs:
                raise ValueError(f"There are no docs at {path}: it is empty.")
        if inside := [path for path in self.reuse if path.resolve().is_relative_to(self.output.resolve())]:
            raise ValueError(
                f"{inside[0]} is in the output directory, whose finished trials are kept anyway. Leave out --reuse."
            )
        if min(self.fractions) < ALL:
            self._check_that_train_path_is_used()

    def find_unfinished(self) -> list[TrialId]:
        """Find the trials to run. Refuse existing trials of something else.

        RETURNS (list[TrialId]): The trials that are not finished.
        """
        finished = [] if self.overwrite else list(self._find_finished())
        return [trial_id for trial_id in self.trial_ids if trial_id not in finished]

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Lock the output directory against other processes. The operating system releases the lock when this process ends,
        even if it is killed."""
        with explain_write_errors(self.output):
            self.output.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self.output / LOCK)
        try:
            lock.acquire(blocking=False)
        except Timeout:
            raise ValueError(
                f"Another process is running trials in {self.output}. Wait until it has finished, or choose another directory."
            ) from None
        except (OSError, NotImplementedError):
            pass  # some network file systems have no locks
        try:
            yield
        finally:
            lock.release()

    @cached_property
    def config(self) -> Config:
        """RETURNS (Config): The config with its overrides, not interpolated."""
        return load_config(self.config_path, overrides=self.overrides, interpolate=False)

    @cached_property
    def train_path(self) -> Path:
        """RETURNS (Path): The training data."""
        path = self.config.interpolate().get("paths", {}).get("train")
        if not path:
            raise ValueError(
                f"{self.config_path} has no paths.train, the training data. Set it there, or with --paths.train train.spacy."
            )
        return Path(path)

    @cached_property
    def n_docs(self) -> int:
        """RETURNS (int): The number of training docs."""
        return count_docs(self.train_path)

    @cached_property
    def n_test_docs(self) -> int:
        """RETURNS (int): The number of test docs."""
        return count_docs(self.test_path)

    @cached_property
    def identity(self) -> dict[str, str]:
        """RETURNS (dict[str, str]): What all trials share: the config, the options, and checksums of the files."""
        return make_identity(
            self._config_with_seed(0),
            test=self.test_path,
            output=self.output,
            code_path=self.code_path,
            gold_preproc=self.gold_preproc,
        )

    def run(self, trial_id: TrialId, *, on_ready: Callable[[], None] = lambda: None) -> dict[str, Any]:
        """Train and score one model, or copy an equal trial.

        trial_id (TrialId): The trial.
        on_ready (Callable): Called when the trial is ready to train or to be copied, before it replaces anything.
        RETURNS (dict[str, Any]): Its metrics, as they were written to its directory.
        """
        with_model = trial_id.fraction == ALL or not self.drop_models
        directory = trial_id.directory(self.output)
        equal = find_equal(self.reuse, trial_id, self.identity, own=directory, with_model=with_model)
        if equal is None:
            return self._train(trial_id, with_model=with_model, on_ready=on_ready)
        on_ready()
        self.remove_old_trials()
        _remove_trial(directory)
        return copy_trial(equal, directory, self._setup, with_model=with_model)

    def remove_old_trials(self) -> None:
        """With `overwrite`, remove all existing trials, once. This waits until the first new trial is ready."""
        if self._has_removed_old or not self.overwrite:
            return
        for trial_id in find_trials(self.output):
            _remove_trial(trial_id.directory(self.output))
        self._has_removed_old = True

    def _train(self, trial_id: TrialId, *, with_model: bool, on_ready: Callable[[], None]) -> dict[str, Any]:
        gc.collect()  # an ELMo and its listeners form a cycle, which keeps those of the last trial in memory
        directory, identity = trial_id.directory(self.output), self.identity
        with _explain_failure(trial_id):
            config, n_docs = self._prepare(trial_id)
            nlp = init_nlp(config, use_gpu=self.use_gpu)
        on_ready()
        self.remove_old_trials()
        _remove_trial(directory)
        with explain_write_errors(directory):
            directory.mkdir(parents=True, exist_ok=True)
        with (directory / LOG).open("w", encoding="utf8", buffering=1) as log, _explain_failure(trial_id, log):
            start = time.perf_counter()
            train(nlp, directory, use_gpu=self.use_gpu, stdout=log, stderr=log)
            seconds = time.perf_counter() - start
            best = load_model(directory / DIR_MODEL_BEST)
            scores = self._score(best)
            metrics = {
                "fraction": trial_id.fraction,
                "seed": trial_id.seed,
                "n_docs": n_docs,
                "training_seconds": seconds,
                "words_per_second": scores["speed"],
                "scores": scores,
                "mixes": [asdict(mix) for mix in learned_mixes(best)],
                "score_weights": nlp.config["training"]["score_weights"],
                "config": {
                    **self._setup,
                    "lang": nlp.lang,
                    "pipeline": nlp.pipe_names,
                    "training": nlp.config.interpolate()["training"],
                },
                "identity": identity,
            }
            text = json.dumps(metrics, indent=2, default=float)  # a scorer may return NumPy's integers
        shutil.rmtree(directory / DIR_MODEL_LAST)
        if not with_model:
            shutil.rmtree(directory / DIR_MODEL_BEST)
        write_file(directory / TRIAL_METRICS, text + "\n")  # last, since it marks the trial as finished
        return metrics

    @cached_property
    def _setup(self) -> dict[str, Any]:
        """What the metrics of a trial say about where it came from."""
        return {
            "path": str(self.config_path),
            "overrides": self.overrides,
            "code": str(self.code_path) if self.code_path else None,
            "gold_preproc": self.gold_preproc,
            "train": str(self.train_path),
            "n_train_docs": self.n_docs,
            "test": str(self.test_path),
            "n_test_docs": self.n_test_docs,
        }

    def _prepare(self, trial_id: TrialId) -> tuple[Config, int]:
        """Make the config of a trial and write the files that it names. Return the config and the number of training docs."""
        config, fraction = self._config_with_seed(trial_id.seed), trial_id.fraction
        if fraction >= ALL:
            return config, self.n_docs
        path = trial_id.directory(self.output).with_name(SUBSET)
        if fraction not in self._subset_sizes:
            self._subset_sizes[fraction] = write_subset(self.train_path, fraction, path)
        config["paths"]["train"] = str(path)
        read_labels_from(config, self._labels)
        return config, self._subset_sizes[fraction]

    def _config_with_seed(self, seed: int) -> Config:
        config = self.config.copy()
        config.setdefault("system", {})["seed"] = seed
        config.setdefault("training", {})["seed"] = seed
        return config

    @cached_property
    def _labels(self) -> dict[str, Path]:
        return write_labels(init_nlp(self._config_with_seed(0), use_gpu=self.use_gpu), self.output / LABELS)

    def _score(self, nlp: Language) -> dict[str, Any]:
        examples = list(Corpus(self.test_path, gold_preproc=self.gold_preproc)(nlp))
        return nlp.evaluate(examples, scorer=LabelScorer(nlp))

    def _check_that_output_is_not_in_data(self) -> None:
        """spaCy reads a directory with all directories inside: fractions that are written there would be read as well."""
        dev = self.config.interpolate().get("paths", {}).get("dev")
        for path in (self.train_path, self.test_path, *([Path(dev)] if isinstance(dev, str) else [])):
            if path.is_dir() and self.output.resolve().is_relative_to(path.resolve()):
                raise ValueError(
                    f"{self.output} is inside of the data {path}, and would become a part of them. Choose another output directory."
                )

    def _check_that_train_path_is_used(self) -> None:
        """Put a marker into paths.train, and look for it in the corpus that training reads."""
        config = Config(Language.default_config).merge(self.config)
        config["paths"]["train"] = marker = "a fraction of the training data"
        config = config.interpolate()
        corpus = config["training"]["train_corpus"]
        if not isinstance(corpus, str):
            return  # spaCy reports what is wrong with it
        section: Any = config
        for name in corpus.split("."):
            section = section.get(name, {})
        if marker not in json.dumps(section):
            raise ValueError(
                f"In {self.config_path}, [{corpus}] does not read ${{paths.train}}, so that training would ignore --fractions. "
                f"Use ${{paths.train}} there, or leave out --fractions."
            )

    def _find_finished(self) -> Iterator[TrialId]:
        for trial_id in find_trials(self.output):
            path = trial_id.directory(self.output) / TRIAL_METRICS
            try:
                metrics = json.loads(path.read_text(encoding="utf8"))
            except (OSError, ValueError, RecursionError):
                continue
            identity = metrics.get("identity") if isinstance(metrics, dict) else None
            if not isinstance(identity, dict):
                raise ValueError(
                    f"{path} is not the metrics of a trial: it has no identity. Move it away, or choose another output directory."
                )
            if difference := find_difference(identity, self.identity):
                raise ValueError(
                    f"The existing trials in {self.output} {difference}; see {path.parent}. Replace all of them (--overwrite, or "
                    f"delete {self.output}), or choose another output directory."
                )
            yield trial_id


def _remove_trial(directory: Path) -> None:
    """Remove the files of a trial, the metrics first, and keep all other files in its directory."""
    for name in (TRIAL_METRICS, LOG):
        (directory / name).unlink(missing_ok=True)
    for name in (DIR_MODEL_BEST, DIR_MODEL_LAST):
        shutil.rmtree(directory / name, ignore_errors=True)
    for empty in (directory, directory.parent):
        with suppress(OSError):  # it is not empty
            empty.rmdir()


@contextmanager
def _explain_failure(trial_id: TrialId, log: TextIO | None = None) -> Iterator[None]:
    """Say which training failed, and write the traceback to its log. A component may raise any exception."""
    try:
        yield
    except ConfigValidationError:
        raise
    except Exception as error:
        where = ""
        if log is not None:
            with suppress(OSError):  # the disk may be full
                log.write(traceback.format_exc())
                where = f" The traceback is in {log.name}."
        name = "" if isinstance(error, OSError) else f"{type(error).__name__}: "
        reason = f"{name}{error}" + ("" if str(error).endswith((".", "?")) else ".")  # our own errors are sentences
        message = f"The training with {trial_id} failed: {reason}{where}"
        raise (OSError if isinstance(error, OSError) else TrialError)(message) from error
