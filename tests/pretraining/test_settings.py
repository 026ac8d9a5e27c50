"""The config of a pretraining run, and what can be wrong with it."""

from pathlib import Path
from typing import Any

import pytest
import torch
from confection import Config, ConfigValidationError
from torch import nn

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.models import find_weights
from spacy_elmo.pretraining.loggers import configure_console_logger_v1
from spacy_elmo.pretraining.settings import PretrainingSettings, fill_defaults, load_run_config, read_settings
from spacy_elmo.pretraining.softmax import Softmax

from .runs import TINY


def make_config(changes: dict[str, Any] | None = None, without: tuple[str, ...] = ()) -> Config:
    """Make a config from that of the tiny model. Changes may name what it does not have."""
    config = load_run_config(TINY, {})
    for name, value in (changes or {}).items():
        *sections, key = name.split(".")
        section_of(config, sections)[key] = value
    for name in without:
        *sections, key = name.split(".")
        del section_of(config, sections)[key]
    return config


def section_of(config: dict[str, Any], sections: list[str]) -> dict[str, Any]:
    for section in sections:
        config = config[section]
    return config


def read(changes: dict[str, Any] | None = None, without: tuple[str, ...] = ()) -> PretrainingSettings:
    return read_settings(make_config(changes, without))


# Configs that are right


def test_settings_of_the_tiny_model() -> None:
    settings = read()
    corpus, training = settings.corpus, settings.training
    assert (corpus.train, corpus.dev) == ("assets/sample/train.txt", "assets/sample/dev.txt")
    assert (corpus.lang, corpus.n_process, corpus.cache) == ("en", 1, None)
    assert settings.vocabulary.path is None
    assert (settings.vocabulary.max_size, settings.vocabulary.min_count) == (30_000, 2)
    assert isinstance(settings.bilm, BiLMConfig)
    assert settings.bilm.filters == ((1, 16), (2, 32), (3, 64), (4, 64))
    assert (settings.bilm.projection, settings.bilm.cells, settings.bilm.depth) == (64, 128, 2)
    assert training.carry_state is False
    assert (training.epochs, training.batch_size, training.unroll, training.samples) == (12, 16, 20, 0)
    assert (training.dropout, training.grad_clip, training.precision) == (0.3, 5.0, "float32")
    optimizer = settings.make_optimizer([nn.Parameter(torch.zeros(2))])
    assert type(optimizer).__name__ == "AdamW"
    group = optimizer.param_groups[0]
    assert (group["lr"], list(group["betas"]), group["weight_decay"]) == (0.005, [0.9, 0.99], 0.01)
    settings.make_schedule(optimizer, 1000)
    assert group["lr"] == pytest.approx(0.005 / 101)  # the first step of 100 that warm up
    assert settings.make_logger.__qualname__ == configure_console_logger_v1(progress_bar=True).__qualname__


def test_overrides_replace_values_of_the_file() -> None:
    overrides = {"paths.train": "other.txt", "bilm_training.epochs": 0.5, "vocabulary.path": "vocab.txt"}
    settings = read_settings(load_run_config(TINY, overrides))
    assert (settings.corpus.train, settings.training.epochs) == ("other.txt", 0.5)
    assert settings.vocabulary.path == "vocab.txt"


def test_values_at_their_bounds() -> None:
    changes: dict[str, Any] = {
        "corpus.lang": None,
        "corpus.cache": "cache",
        "vocabulary.min_count": 1,
        "vocabulary.max_size": 4,
        "bilm_training.seed": 2**32 - 2,
        "bilm_training.epochs": 1,  # a whole number is a fraction, too
        "bilm_training.dropout": 0,
        "bilm_training.unroll": 1,
        "bilm_training.precision": "bfloat16",
        "bilm_training.carry_state": True,
    }
    settings = read(changes)
    assert settings.corpus.lang is None
    assert settings.corpus.cache == "cache"
    assert (settings.vocabulary.max_size, settings.training.seed) == (4, 4_294_967_294)
    Softmax(2, 3).initialize(settings.training.seed + 1, [1, 1])  # the largest seed of NumPy
    assert (settings.training.dropout, settings.training.unroll, settings.training.carry_state) == (0, 1, True)


def test_weights_to_start_from() -> None:
    assert read({"bilm": {"weights": "some/where"}}).bilm == Path("some/where")
    assert read({"bilm": {"weights": "en_elmo_sm"}}).bilm == find_weights(None)
    with pytest.raises(
        ValueError, match=r"\[bilm\] weights must be a weights directory, or .*--paths\.weights DIRECTORY"
    ):
        read({"bilm": {"weights": None}})
    message = r"^\[bilm\] has weights, which bring their own sizes and language\. Leave out the other settings: lang\. .*finetune"
    with pytest.raises(ValueError, match=message):
        read({"bilm": {"weights": "some/where", "lang": "de"}})
    with pytest.raises(
        ValueError, match=r"^\[bilm\] has weights, .* Leave out the other settings: .*projection, .*configs/"
    ):
        read({"bilm.weights": "some/where"})


def test_max_chars_is_given_or_left_to_the_text() -> None:
    given, left = read({"bilm.max_chars": 30}), read({"bilm.max_chars": None})
    assert isinstance(given.bilm, BiLMConfig)
    assert isinstance(left.bilm, BiLMConfig)
    assert (given.max_chars, given.bilm.max_chars) == (30, 30)
    assert (left.max_chars, left.bilm.max_chars) == (None, 50)


# Configs that are not


@pytest.mark.parametrize("section", ["paths", "corpus", "vocabulary", "bilm", "bilm_training"])
def test_every_section_is_needed(section: str) -> None:
    with pytest.raises(ValueError, match=rf"^config: '{section}' is missing\.$"):
        read(without=(section,))


@pytest.mark.parametrize("block", ["optimizer", "schedule", "logger"])
def test_every_block_is_needed(block: str) -> None:
    with pytest.raises(ValueError, match=rf"The config has no \[bilm_training\.{block}\]\."):
        read(without=(f"bilm_training.{block}",))


def keys_of(*sections: str) -> list[str]:
    config = make_config()
    return [
        f"{section}.{key}"
        for section in sections
        for key, value in config[section].items()
        if not isinstance(value, dict)
    ]


def test_keys_of_this_test_are_complete() -> None:
    # The tests below would prove nothing about keys that are not in the list.
    assert len(keys_of("corpus", "vocabulary", "bilm", "bilm_training")) == 6 + 3 + 11 + 15


# Settings that earlier configs do not have.
DEFAULTS = {"bilm_training.checkpoint_minutes": 10.0}
LATER = {"corpus.segmenter", *DEFAULTS}


def test_later_settings_have_a_default() -> None:
    training = read(without=tuple(DEFAULTS)).training
    assert {name: getattr(training, name.split(".")[1]) for name in DEFAULTS} == DEFAULTS
    assert read(without=("corpus.segmenter",)).corpus == read().corpus
    assert fill_defaults(make_config(without=tuple(DEFAULTS))) == make_config(DEFAULTS)
    given = make_config(dict.fromkeys(DEFAULTS, 3))
    assert fill_defaults(given) == given
    with pytest.raises(
        ValueError, match=r"^\[bilm_training\]: 'checkpoint_minute' is unknown \(did you mean 'checkpoint_minutes'"
    ):
        read({"bilm_training.checkpoint_minute": 1})


@pytest.mark.parametrize(
    "name", [key for key in keys_of("corpus", "vocabulary", "bilm", "bilm_training") if key not in LATER]
)
def test_every_key_is_needed_and_spelled_right(name: str) -> None:
    section, key = name.split(".")
    with pytest.raises(ValueError, match=rf"^\[{section}\]: '{key}x' is unknown \(did you mean '{key}'\?\)\.$"):
        read({f"{name}x": 1})
    with pytest.raises(ValueError, match=rf"^\[{section}\]: '{key}' is missing\.$"):
        read(without=(name,))
    message = rf"^\[{section}\]: '{key}x' is unknown \(did you mean '{key}'\?\); '{key}' is missing\.$"
    with pytest.raises(ValueError, match=message):
        read({f"{name}x": 1}, without=(name,))


def test_unknown_names_without_a_similar_one() -> None:
    with pytest.raises(ValueError, match=r"^config: 'nlp' is unknown\.$"):
        read({"nlp": {}})
    with pytest.raises(ValueError, match=r"^config: 'corpora' is unknown \(did you mean 'corpus'\?\)\.$"):
        read({"corpora": {}})
    with pytest.raises(ValueError, match=r"^\[bilm_training\]: 'zzz' is unknown\.$"):
        read({"bilm_training.zzz": 1})


TYPES: dict[str, str] = {
    "corpus.train": "a path",
    "corpus.dev": "a path",
    "corpus.lang": "a text or null",
    "corpus.segmenter": "a text or null",
    "corpus.n_process": "a whole number, 1 or more",
    "corpus.cache": "a text or null",
    "vocabulary.path": "a text or null",
    "vocabulary.max_size": "a whole number, 4 or more",
    "vocabulary.min_count": "a whole number, 1 or more",
    "bilm_training.seed": "a whole number from 0 to 4294967294",
    "bilm_training.epochs": "a number above 0, and finite",
    "bilm_training.max_steps": "a whole number, 0 or more",
    "bilm_training.batch_size": "a whole number, 1 or more",
    "bilm_training.unroll": "a whole number, 1 or more",
    "bilm_training.carry_state": "true or false",
    "bilm_training.dropout": "a number, at least 0 and below 1",
    "bilm_training.samples": "a whole number, 0 or more",
    "bilm_training.grad_clip": "a number above 0",
    "bilm_training.precision": '"float32" or "bfloat16"',
    "bilm_training.softmax_share": "a number, at least 0 and below 1",
    "bilm_training.log_frequency": "a whole number, 1 or more",
    "bilm_training.eval_frequency": "a whole number, 1 or more",
    "bilm_training.eval_tokens": "a whole number, 0 or more",
    "bilm_training.checkpoint_minutes": "a number, 0 or more, and finite",
}
INFINITE, NOT_A_NUMBER = float("inf"), float("nan")
WRONG: dict[str, list[Any]] = {
    "a path": [1, None, True, ["a"]],
    "a text or null": [1, False, 0.5, {}],
    "a whole number, 0 or more": [1.5, 2.0, "1", None, True, [1], -1],
    "a whole number from 0 to 4294967294": [1.5, 2.0, "1", None, True, [1], -1, 2**32 - 1],
    "a whole number, 4 or more": [4.5, 5.0, "4", None, True, [4], -4, 3],
    "a whole number, 1 or more": [1.5, 2.0, "1", None, True, [1], -1, 0],
    "a number above 0": ["0.5", None, True, [0.5], 0.0, -1, NOT_A_NUMBER],
    "a number above 0, and finite": ["0.5", None, True, [0.5], 0, -0.5, INFINITE, NOT_A_NUMBER],
    "a number, 0 or more, and finite": ["0.5", None, True, [0.5], -0.5, INFINITE, NOT_A_NUMBER],
    "a number, at least 0 and below 1": ["0.5", None, True, [0.5], -0.1, 1, 1.0, INFINITE, NOT_A_NUMBER],
    "true or false": [0, 1, "true", None],
    '"float32" or "bfloat16"': ["float16", "", None, 32, True],
}


def test_types_are_those_of_all_keys() -> None:
    assert set(TYPES) == set(keys_of("corpus", "vocabulary", "bilm_training"))


@pytest.mark.parametrize(("name", "kind"), TYPES.items(), ids=TYPES.keys())
def test_values_that_are_wrong(name: str, kind: str) -> None:
    section, key = name.split(".")
    for value in WRONG[kind]:
        with pytest.raises(ValueError, match=rf"^\[{section}\] {key} must be {kind}, got ") as error:
            read({name: value})
        assert f"got {value!r}." in str(error.value)
        assert ("Give it with" in str(error.value)) == (value is None and section == "corpus")


def test_all_wrong_values_are_reported_at_once() -> None:
    message = (
        r"^\[bilm_training\] epochs must be a number above 0, and finite, got 0\. "
        r"\[bilm_training\] samples must be a whole number, 0 or more, got 'many'\.$"
    )
    with pytest.raises(ValueError, match=message):
        read({"bilm_training.epochs": 0, "bilm_training.samples": "many"})


@pytest.mark.parametrize("key", ["train", "dev"])
def test_missing_corpus_says_how_to_give_it(key: str) -> None:
    with pytest.raises(
        ValueError, match=rf"\[corpus\] {key} must be a path, got None\. Give it with: --paths\.{key} PATH"
    ):
        read_settings(load_run_config(TINY, {f"paths.{key}": None}))


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("projection", 0, "projection must be a whole number from 1"),
        ("filters", [], "filters must be a list"),
        ("activation", "gelu", "activation must be one of relu, tanh, got 'gelu'"),
        ("cell_clip", -1, "cell_clip must be a number above 0"),
        ("skip_connections", 1, "skip_connections must be true or false, got 1"),
    ],
)
def test_sizes_that_make_no_sense(key: str, value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=rf"^\[bilm\] {message}"):
        read({f"bilm.{key}": value})


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("bilm_training.optimizer.learn_rates", 1, "learn_rates"),
        ("bilm_training.optimizer.learn_rate", "fast", "learn_rate"),
        ("bilm_training.schedule.warmup", 3, "warmup"),
        ("bilm_training.logger.bar", True, "bar"),
    ],
)
def test_blocks_with_wrong_arguments(name: str, value: Any, message: str) -> None:
    with pytest.raises(ConfigValidationError, match=message):
        read({name: value})


def test_blocks_that_name_unregistered_functions() -> None:
    with pytest.raises(ValueError, match="spacy_elmo.Constant.v99"):
        read({"bilm_training.schedule": {"@schedules": "spacy_elmo.Constant.v99"}})
