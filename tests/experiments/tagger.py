"""A tagger that trains in a moment, and trials of it."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from spacy.language import Language
from spacy.util import registry

from spacy_elmo.bilm.weights import save_weights
from spacy_elmo.experiments.trial_id import TRIAL_METRICS
from spacy_elmo.experiments.trials import Trials

from ..helpers import random_bilm

TAGS = ["DET", "NOUN", "VERB"]

TAGGER_CONFIG = """
[paths]
train = null
dev = null

[system]
gpu_allocator = null

[nlp]
lang = "xx"
pipeline = ["tagger"]

[components]

[components.tagger]
factory = "tagger"

[components.tagger.model]
@architectures = "spacy.Tagger.v2"

[components.tagger.model.tok2vec]
@architectures = "spacy.HashEmbedCNN.v2"
pretrained_vectors = null
width = 8
depth = 1
embed_size = 50
window_size = 1
maxout_pieces = 2
subword_features = false

[training]
gpu_allocator = ${system.gpu_allocator}
max_steps = 2
eval_frequency = 1

[training.before_update]
@callbacks = "spacy_elmo.tests.before_update"
"""


before_update: list[Callable[[], None]] = []


@registry.callbacks("spacy_elmo.tests.before_update")
def make_before_update() -> Callable[[Any, dict[str, Any]], None]:
    """Let a test act in the middle of a training."""

    def act(nlp: Language, arguments: dict[str, Any]) -> None:
        for action in before_update if arguments["step"] == 1 else ():
            action()

    return act


def make_trials(corpus: Path, *, fractions: Sequence[float] = (100.0,), seeds: int = 1, **options: Any) -> Trials:
    overrides = {"paths.train": str(corpus / "train.spacy"), "paths.dev": str(corpus / "dev.spacy")}
    settings = {"output": corpus / "out", "test_path": corpus / "test.spacy", **options}
    settings["overrides"] = {**overrides, **options.get("overrides", {})}
    return Trials(config_path=corpus / "tagger.cfg", seeds=range(seeds), fractions=fractions, **settings)


def expect_refusal(trials: Trials, message: str) -> None:
    """Expect that the existing trials are not those of this config."""
    with pytest.raises(ValueError, match=message):
        trials.find_unfinished()


def run_all(trials: Trials) -> list[dict[str, Any]]:
    return [trials.run(trial_id) for trial_id in trials.find_unfinished()]


def write_elmo_config(corpus: Path) -> Path:
    """Give the tagger an ELMo with random weights. Returns their directory."""
    save_weights(random_bilm(1), corpus / "weights")
    before, after = TAGGER_CONFIG.split("[components.tagger.model.tok2vec]")
    text = before.replace('["tagger"]', '["elmo", "tagger"]').replace(
        "[components]\n", '[components]\n\n[components.elmo]\nfactory = "elmo"\n'
    )
    text += '[components.tagger.model.tok2vec]\n@architectures = "spacy_elmo.ElmoListener.v1"\n\n'
    (corpus / "tagger.cfg").write_text(text + after[after.index("[training]") :], encoding="utf8")
    return corpus / "weights"


def mark_as_finished(trials: Trials) -> Path:
    """Write metrics that make the first trial a finished one. Returns their path."""
    path = trials.trial_ids[0].directory(trials.output) / TRIAL_METRICS
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"identity": trials.identity}), encoding="utf8")
    assert replace(trials).find_unfinished() == []
    return path
