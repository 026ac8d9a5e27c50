"""The language of a pretrained model, and texts that are in another one."""

from pathlib import Path
from typing import Any

import pytest

from spacy_elmo.bilm.weights import load_config, save_weights
from spacy_elmo.pretraining.pretrain import pretrain

from .. import command_line as cli
from ..helpers import random_bilm
from ..many_langs import make_model, write_model
from .runs import FINETUNE, TINY, command_line, resume_run, stop_run

GERMAN = "Das ist der Hund , und die Katze sieht ihn nicht , aber sie hat auch keine Maus .\n" * 40


def pretrain_with_warnings(config: Path, output: Path, overrides: dict[str, Any]) -> list[str]:
    warnings: list[str] = []
    pretrain(config, output, overrides=overrides, warn=warnings.append)
    return warnings


def test_the_language_is_stored_with_the_weights(tmp_path: Path, overrides: dict[str, Any]) -> None:
    assert pretrain_with_warnings(TINY, tmp_path / "tokenized", overrides) == []
    assert load_config(tmp_path / "tokenized" / "model-best").lang is None
    stop_run(4, TINY, tmp_path / "out", {**overrides, "corpus.lang": "en"})
    resume_run(TINY, tmp_path / "out")
    for name in ("model-best", "model-last"):
        assert load_config(tmp_path / "out" / name).lang == "en"


def test_the_language_of_tokenized_text_can_be_given(tmp_path: Path, overrides: dict[str, Any]) -> None:
    Path(overrides["paths.train"]).write_text(GERMAN, encoding="utf8")
    assert pretrain_with_warnings(TINY, tmp_path / "out", {**overrides, "bilm.lang": "de"}) == []
    assert load_config(tmp_path / "out" / "model-best").lang == "de"


@pytest.mark.slow  # reads the stop words of all languages
def test_text_in_another_language_is_reported(tmp_path: Path, overrides: dict[str, Any]) -> None:
    Path(overrides["paths.train"]).write_text(GERMAN, encoding="utf8")
    [warning] = pretrain_with_warnings(TINY, tmp_path / "out", {**overrides, "corpus.lang": "en"})
    assert warning.startswith("The text does not look like 'en': ")
    assert warning.endswith("stop words of 'de'. Is [corpus] lang right? It also decides how the text is tokenized.")
    out = cli.run("pretrain", TINY, tmp_path / "again", *command_line({**overrides, "corpus.lang": "en"}))
    assert "The text does not look like 'en'" in out
    assert out.index("does not look like 'en'") < out.index("The best model is")


@pytest.mark.slow  # reads the stop words of all languages
def test_weights_of_another_language_are_reported(tmp_path: Path, finetuning: dict[str, Any]) -> None:
    save_weights(random_bilm(lang="nl"), tmp_path / "dutch")
    settings = {**finetuning, "paths.weights": str(tmp_path / "dutch"), "corpus.lang": "en"}
    [warning] = pretrain_with_warnings(FINETUNE, tmp_path / "out", settings)
    assert warning == "[corpus] lang is 'en', but the weights are of 'nl'. They keep that language."
    assert load_config(tmp_path / "out" / "model-best").lang == "nl"


def test_models_of_elmoformanylangs_can_be_trained_further(tmp_path: Path, finetuning: dict[str, Any]) -> None:
    cli.run("convert", write_model(tmp_path / "theirs", make_model()), tmp_path / "ours", "--lang", "en")
    settings = {**finetuning, "paths.weights": str(tmp_path / "ours")}
    stop_run(4, FINETUNE, tmp_path / "out", settings)
    resume_run(FINETUNE, tmp_path / "out")
    assert load_config(tmp_path / "out" / "model-best") == load_config(tmp_path / "ours")
