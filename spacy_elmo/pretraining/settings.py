"""The config of a pretraining run, checked once."""

import dataclasses
import difflib
import math
from dataclasses import dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_type_hints

from confection import Config
from spacy.util import load_config, registry

from ..bilm.config import BiLMConfig
from ..models import find_weights
from .optimizers import OptimizerMaker, ScheduleMaker

PRECISIONS = ("float32", "bfloat16")

KINDS = {int: "a whole number", float: "a number", bool: "true or false", str: "a text", NoneType: "null"}

SettingsT = TypeVar("SettingsT")


@dataclass(frozen=True, kw_only=True)
class CorpusSettings:
    """Where the text is.

    train, dev (str): Corpora in any form that `spacy elmo debug-data` reads.
    lang (str | None): The language of raw text; None for text that is tokenized already.
    n_process (int): Processes that tokenize.
    cache (str | None): The directory that keeps tokenized text; None for the run's own.
    """

    train: str
    dev: str
    lang: str | None
    n_process: int
    cache: str | None

    def __post_init__(self) -> None:
        _check_range("corpus", self, least=1, names=["n_process"])


@dataclass(frozen=True, kw_only=True)
class VocabularySettings:
    """The words that are predicted.

    path (str | None): A vocabulary that `spacy elmo init-vocab` wrote; None to count the words of the training text, or,
        where weights come with a vocabulary, to take that.
    max_size, min_count (int): How many words are counted, and how often they must occur.
    """

    path: str | None
    max_size: int
    min_count: int

    def __post_init__(self) -> None:
        _check_range("vocabulary", self, least=1, names=["max_size", "min_count"])


@dataclass(frozen=True, kw_only=True)
class TrainingSettings:
    """How the model learns.

    seed (int): Of the first weights, of what is dropped and of what is sampled.
    epochs (float): How often the corpus is read. The number of steps follows from it.
    max_steps (int): The most steps; 0 for as many as the epochs take.
    batch_size (int): Rows that each process reads side by side.
    unroll (int): Tokens of a row that are read, and learned from, in one step.
    carry_state (bool): Whether a sentence goes on from the state that the one before it ended in, as in the original.
    dropout (float): Share of the values that are dropped, of each LSTM layer's input and of the softmax's.
    samples (int): Words that the right one is told from in training; 0 for all of the vocabulary, as are more than it has.
    grad_clip (float): The largest norm of all gradients together.
    precision (str): "float32" or "bfloat16", of the products in training.
    softmax_share (float): Share of the steps in which only a new softmax learns, where the weights came without one.
    log_frequency, eval_frequency (int): Steps between two lines of metrics, and between two evaluations.
    eval_tokens (int): Words of the dev text that an evaluation on the way reads; 0 for all. The last one reads all.
    """

    seed: int
    epochs: float
    max_steps: int
    batch_size: int
    unroll: int
    carry_state: bool
    dropout: float
    samples: int
    grad_clip: float
    precision: str
    softmax_share: float
    log_frequency: int
    eval_frequency: int
    eval_tokens: int

    def __post_init__(self) -> None:
        _check_range("bilm_training", self, least=0, names=["seed", "max_steps", "samples", "eval_tokens"])
        _check_range("bilm_training", self, least=1, names=["batch_size", "unroll", "log_frequency", "eval_frequency"])
        for name, is_right, wanted in [
            ("epochs", 0 < self.epochs < math.inf, "above 0, and finite"),
            ("grad_clip", self.grad_clip > 0, "above 0"),
            ("dropout", 0 <= self.dropout < 1, "at least 0 and below 1"),
            ("softmax_share", 0 <= self.softmax_share < 1, "at least 0 and below 1"),
            ("precision", self.precision in PRECISIONS, f"one of {', '.join(PRECISIONS)}"),
        ]:
            if not is_right:
                raise ValueError(f"[bilm_training] {name} must be {wanted}, got {getattr(self, name)!r}.")


@dataclass(frozen=True)
class Settings:
    """All of a run.

    corpus, vocabulary, training: Its sections.
    bilm (BiLMConfig | Path): The sizes of a new model, or weights to go on from.
    make_optimizer, make_schedule (Callable): Make what changes the weights.
    make_logger (Callable): spaCy's kind of logger.
    """

    corpus: CorpusSettings
    vocabulary: VocabularySettings
    bilm: BiLMConfig | Path
    training: TrainingSettings
    make_optimizer: OptimizerMaker
    make_schedule: ScheduleMaker
    make_logger: Any


def read_config(path: Path, overrides: dict[str, Any]) -> Config:
    """Read a config file.

    path (Path): The file.
    overrides (dict): Values that replace those of the file, by their dotted names.
    RETURNS (Config): The config, with its variables filled in.
    """
    return load_config(path, overrides=overrides, interpolate=True)


def read_settings(config: Config) -> Settings:
    """Check a config and make what it names.

    config (Config): The config.
    RETURNS (Settings): The settings.
    """
    sections = {"paths", "corpus", "vocabulary", "bilm", "bilm_training"}
    _check_names("config", sections, config)
    training = dict(config["bilm_training"])
    blocks = {name: training.pop(name, None) for name in ("optimizer", "schedule", "logger")}
    missing = [name for name, block in blocks.items() if block is None]
    if missing:
        raise ValueError(f"The config has no [bilm_training.{missing[0]}].")
    try:
        made = registry.resolve(blocks)
    except ImportError as error:
        raise ValueError(
            f"[bilm_training] names something that needs a package which is not installed: {error}"
        ) from None
    return Settings(
        corpus=_from_section(CorpusSettings, "corpus", config["corpus"]),
        vocabulary=_from_section(VocabularySettings, "vocabulary", config["vocabulary"]),
        bilm=_read_bilm(config["bilm"]),
        training=_from_section(TrainingSettings, "bilm_training", training),
        make_optimizer=made["optimizer"],
        make_schedule=made["schedule"],
        make_logger=made["logger"],
    )


def _read_bilm(section: dict[str, Any]) -> BiLMConfig | Path:
    if section.keys() == {"weights"}:
        if not isinstance(section["weights"], str):
            raise ValueError(
                "[bilm] weights must be a weights directory, or the name of a model in the package. Give it with: --paths.weights DIRECTORY"
            )
        return find_weights(section["weights"])
    if "weights" in section:
        raise ValueError("[bilm] has sizes for a new model. To go on from weights, use configs/finetune.cfg.")
    _check_names("[bilm]", {field.name for field in dataclasses.fields(BiLMConfig)}, section)
    try:
        return BiLMConfig.from_dict(section)
    except ValueError as error:
        raise ValueError(f"[bilm] {error}") from None


def _from_section(cls: type[SettingsT], name: str, section: dict[str, Any]) -> SettingsT:
    """Make settings of a section, which spaCy's registry does not check: it is no call of a registered function."""
    types = get_type_hints(cls)
    _check_names(f"[{name}]", set(types), section)
    for key, value in section.items():
        expected = get_args(types[key]) if isinstance(types[key], UnionType) else (types[key],)
        # A whole number is a fine fraction, but true is no number.
        accepted = expected + ((int,) if float in expected else ())
        if not isinstance(value, accepted) or (isinstance(value, bool) and bool not in expected):
            wanted = " or ".join(KINDS[kind] for kind in expected)
            advice = f" Give it with: --paths.{key} PATH" if value is None and name == "corpus" else ""
            raise ValueError(f"[{name}] {key} must be {wanted}, got {value!r}.{advice}")
    return cls(**section)


def _check_names(where: str, known: set[str], found: dict[str, Any]) -> None:
    problems = []
    for name in sorted(found.keys() - known):
        similar = difflib.get_close_matches(name, known, n=1)
        problems.append(f"{name!r} is unknown" + (f" (is {similar[0]!r} meant?)" if similar else ""))
    problems += [f"{name!r} is missing" for name in sorted(known - found.keys())]
    if problems:
        raise ValueError(f"{where}: {'; '.join(problems)}.")


def _check_range(section: str, settings: Any, *, least: int, names: list[str]) -> None:
    for name in names:
        value = getattr(settings, name)
        if value < least:
            raise ValueError(f"[{section}] {name} must be {least} or more, got {value}.")
