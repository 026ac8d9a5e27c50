"""The config of a pretraining run, checked once."""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from confection import Config
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from spacy.util import load_config, registry

from ..bilm.config import BiLMConfig
from ..corpora.statistics import LEAST_MAX_CHARS
from ..models import find_weights
from .optimizers import OptimizerMaker, ScheduleMaker
from .vocabulary import SPECIAL

# Types of settings. The description is what an error message asks for.
PathText = Annotated[str, Field(description="a path")]
TextOrNull = Annotated[str | None, Field(description="a text or null")]
Switch = Annotated[bool, Field(description="true or false")]
Natural = Annotated[int, Field(ge=0, description="a whole number, 0 or more")]
Seed = Annotated[int, Field(ge=0, le=2**32 - 2, description=f"a whole number from 0 to {2**32 - 2}")]
Positive = Annotated[int, Field(ge=1, description="a whole number, 1 or more")]
VocabularySize = Annotated[int, Field(ge=len(SPECIAL) + 1, description=f"a whole number, {len(SPECIAL) + 1} or more")]
NaturalFloat = Annotated[float, Field(ge=0, allow_inf_nan=False, description="a number, 0 or more, and finite")]
PositiveFloat = Annotated[float, Field(gt=0, description="a number above 0")]
FinitePositiveFloat = Annotated[float, Field(gt=0, allow_inf_nan=False, description="a number above 0, and finite")]
Fraction = Annotated[float, Field(ge=0, lt=1, description="a number, at least 0 and below 1")]
Precision = Annotated[Literal["float32", "bfloat16"], Field(description='"float32" or "bfloat16"')]


class ConfigSection(BaseModel):
    """A section of the config. All settings must be given, but for those that were added later: they have a default, so that
    existing configs still work. true and "3" are not accepted as numbers. `_check_names` refuses other settings, and
    suggests what a mistyped one may be."""

    model_config = ConfigDict(strict=True, frozen=True)


ConfigSectionT = TypeVar("ConfigSectionT", bound=ConfigSection)


class CorpusSettings(ConfigSection):
    """The section [corpus].

    train, dev (str): Corpora, in any format that `spacy elmo debug-data` reads.
    lang (str | None): The language of raw text; None for tokenized text.
    segmenter (str | None): How Chinese text is cut into words: "char" or "jieba"; None for spaCy's default.
    n_process (int): The number of processes that tokenize.
    cache (str | None): The directory for tokenized text; None for the run's own.
    """

    train: PathText
    dev: PathText
    lang: TextOrNull
    segmenter: TextOrNull = None  # earlier configs do not have it
    n_process: Positive
    cache: TextOrNull


class VocabularySettings(ConfigSection):
    """The section [vocabulary]: the words that are predicted.

    path (str | None): A vocabulary that `spacy elmo init-vocab` wrote. None for the vocabulary that comes with the weights,
        or else the words of the training text.
    max_size (int): The maximum number of words, marks included, if they are counted in the training text.
    min_count (int): How often a word must occur there.
    """

    path: TextOrNull
    max_size: VocabularySize
    min_count: Positive


class TrainingSettings(ConfigSection):
    """The section [bilm_training], without its blocks.

    seed (int): The seed of new weights, of dropout and of sampled candidates.
    epochs (float): How often the corpus is read. It determines the number of steps.
    max_steps (int): The maximum number of steps; 0 for as many as the epochs take.
    batch_size (int): Rows in the batch of each process.
    unroll (int): Tokens of a row in one step, which is how far gradients reach back.
    carry_state (bool): Whether a sentence starts from the LSTM state at the end of the one before, as in the original.
    dropout (float): The fraction of values that is dropped from the input of each LSTM layer and of the softmax.
    samples (int): Words that the softmax samples in training; 0, or more than there are, for the full vocabulary.
    grad_clip (float): The largest norm of all gradients together.
    precision (str): "float32" or "bfloat16", for the matrix products in training.
    softmax_share (float): The fraction of the steps in which only a new softmax is trained, if the weights had none.
    log_frequency, eval_frequency (int): Steps between two lines of metrics, and between two evaluations.
    eval_tokens (int): Words of the dev text that these evaluations read; 0 for all. The final one reads all.
    checkpoint_minutes (float): Minutes between two checkpoints; 0 for one at each evaluation, and no others.
    """

    seed: Seed
    epochs: FinitePositiveFloat
    max_steps: Natural
    batch_size: Positive
    unroll: Positive
    carry_state: Switch
    dropout: Fraction
    samples: Natural
    grad_clip: PositiveFloat
    precision: Precision
    softmax_share: Fraction
    log_frequency: Positive
    eval_frequency: Positive
    eval_tokens: Natural
    checkpoint_minutes: NaturalFloat = 10.0


@dataclass(frozen=True)
class PretrainingSettings:
    """All settings of a run.

    corpus, vocabulary, training: Sections of the config.
    bilm (BiLMConfig | Path): The sizes of a new model, or a weights directory to start from.
    max_chars (int | None): The `max_chars` of a new model; None for what suits the training text. That of `bilm` is then the
        lowest.
    make_optimizer, make_schedule (Callable): They make the optimizer and the schedule of its learning rate.
    make_logger (Callable): A logger, as spaCy has them.
    """

    corpus: CorpusSettings
    vocabulary: VocabularySettings
    bilm: BiLMConfig | Path
    max_chars: int | None
    training: TrainingSettings
    make_optimizer: OptimizerMaker
    make_schedule: ScheduleMaker
    make_logger: Any


def load_run_config(path: Path, overrides: dict[str, Any]) -> Config:
    """Read a config file.

    path (Path): The file.
    overrides (dict): Values that replace those of the file, by their dotted names.
    RETURNS (Config): The config, with its variables filled in.
    """
    file = load_config(path, interpolate=False)
    known = dict.fromkeys(file.get("paths", {}), False)
    _check_names(
        "[paths]", known, {name.removeprefix("paths."): None for name in overrides if name.startswith("paths.")}
    )
    return load_config(path, overrides=overrides, interpolate=True)


def read_settings(config: Config) -> PretrainingSettings:
    """Check a config, and call the functions that it names.

    config (Config): The config.
    RETURNS (PretrainingSettings): The settings.
    """
    _check_names("config", dict.fromkeys(("paths", "corpus", "vocabulary", "bilm", "bilm_training"), True), config)
    training = dict(config["bilm_training"])
    blocks = {name: training.pop(name, None) for name in ("optimizer", "schedule", "logger")}
    missing = [name for name, block in blocks.items() if block is None]
    if missing:
        raise ValueError(f"The config has no [bilm_training.{missing[0]}].")
    try:
        made = registry.resolve(blocks)
    except ImportError as error:
        raise ValueError(f"[bilm_training] needs a package that is not installed: {error}") from None
    return PretrainingSettings(
        corpus=_read_section(CorpusSettings, "corpus", config["corpus"]),
        vocabulary=_read_section(VocabularySettings, "vocabulary", config["vocabulary"]),
        bilm=_read_bilm(config["bilm"]),
        max_chars=config["bilm"].get("max_chars"),
        training=_read_section(TrainingSettings, "bilm_training", training),
        make_optimizer=made["optimizer"],
        make_schedule=made["schedule"],
        make_logger=made["logger"],
    )


def fill_defaults(config: dict[str, Any]) -> dict[str, Any]:
    """Add the settings that a config leaves to their defaults, as configs do that are older than a setting.

    config (dict[str, Any]): The config.
    RETURNS (dict[str, Any]): The config with all settings of [bilm_training].
    """
    fields = TrainingSettings.model_fields.items()
    defaults = {name: field.default for name, field in fields if not field.is_required()}
    return {**config, "bilm_training": {**defaults, **config["bilm_training"]}}


def _read_bilm(section: dict[str, Any]) -> BiLMConfig | Path:
    if section.keys() == {"weights"}:
        if not isinstance(section["weights"], str):
            raise ValueError(
                "[bilm] weights must be a weights directory, or the name of a bundled model. Give it with: --paths.weights DIRECTORY"
            )
        return find_weights(section["weights"])
    if "weights" in section:
        others = ", ".join(name for name in section if name != "weights")
        raise ValueError(
            f"[bilm] has weights, which bring their own sizes and language. Leave out the other settings: {others}. "
            f"configs/finetune.cfg starts from weights, the other configs from scratch."
        )
    _check_names("[bilm]", BiLMConfig.required_fields(), section)
    try:
        if section["max_chars"] is None:
            section = {**section, "max_chars": LEAST_MAX_CHARS}
        return BiLMConfig.from_dict(section)
    except ValueError as error:
        raise ValueError(f"[bilm] {error}") from None


def _read_section(cls: type[ConfigSectionT], name: str, section: dict[str, Any]) -> ConfigSectionT:
    _check_names(f"[{name}]", {key: field.is_required() for key, field in cls.model_fields.items()}, section)
    try:
        return cls(**section)
    except ValidationError as error:
        raise ValueError(" ".join(_explain(cls, name, section, error))) from None


def _explain(cls: type[ConfigSection], name: str, section: dict[str, Any], error: ValidationError) -> Iterable[str]:
    """Translate pydantic's errors about the values of a section: what each should be, what it is, and how to give it."""
    for key in dict.fromkeys(str(problem["loc"][0]) for problem in error.errors()):
        advice = f" Give it with: --paths.{key} PATH" if section[key] is None and name == "corpus" else ""
        yield f"[{name}] {key} must be {cls.model_fields[key].description}, got {section[key]!r}.{advice}"


def _check_names(where: str, known: dict[str, bool], found: dict[str, Any]) -> None:
    """Refuse names that are unknown, or required and missing, all at once. Suggest what a mistyped one may be."""
    problems = []
    for name in sorted(found.keys() - known.keys()):
        similar = difflib.get_close_matches(name, list(known), n=1)
        problems.append(f"{name!r} is unknown" + (f" (did you mean {similar[0]!r}?)" if similar else ""))
    problems += [f"{name!r} is missing" for name in sorted(known.keys() - found.keys()) if known[name]]
    if problems:
        raise ValueError(f"{where}: {'; '.join(problems)}.")
