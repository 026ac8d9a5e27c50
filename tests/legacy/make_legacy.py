"""Make the files in tests/legacy/0.1.0: what spacy-elmo 0.1.0 saved, and what it computed from it.

Run this with the release whose files are to be kept, never with the code under test:

    git worktree add ../released 299561e && pip install ../released
    python tests/legacy/make_legacy.py tests/legacy/0.1.0

tests/legacy/test_legacy.py loads the files with the current code and expects the same vectors, predictions and weights.
"""

import json
import os
import random
import shutil
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy
import spacy
import torch
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from thinc.api import fix_random_seed

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.bilm.weights import save_weights
from spacy_elmo.pretraining.checkpoint import Checkpoint
from spacy_elmo.pretraining.pretrain import pretrain

PRETRAINING_CONFIG = Path(__file__).parents[2] / "configs" / "pretrain_tiny.cfg"

SIZES: dict[str, Any] = {
    "char_dim": 4,
    "filters": [[1, 4], [2, 6], [3, 8]],
    "highways": 1,
    "activation": "relu",
    "max_chars": 20,
    "projection": 6,
    "cells": 10,
    "depth": 2,
    "cell_clip": 3.0,
    "projection_clip": 3.0,
    "skip_connections": True,
}
WIDTH = 2 * SIZES["projection"]

TEXTS = [
    "Ada wrote it",
    "It is Turing",
    "Paris is far",
    "naïve 日本 " + "x" * 60,
    "Ada saw Paris . It was far .",
    "It",
    "",
]
TRAINING: list[tuple[str, dict[str, Any]]] = [
    ("Ada wrote it", {"entities": [(0, 3, "PERSON")], "tags": ["N", "V", "P"], "cats": {"A": 1.0, "B": 0.0}}),
    ("It is Turing", {"entities": [(6, 12, "PERSON")], "tags": ["P", "V", "N"], "cats": {"A": 0.0, "B": 1.0}}),
    ("Paris is far", {"entities": [(0, 5, "PLACE")], "tags": ["N", "V", "A"], "cats": {"A": 0.0, "B": 1.0}}),
]

# Settings of `elmo`, by the names that their vectors have in arrays.npz.
VECTORS: dict[str, dict[str, Any]] = {
    "mix": {"layers": "mix"},
    "top": {"layers": "top", "initial_state": "zero"},
    "concat": {"layers": "concat", "layer_norm": True},
}

STOCK_LISTENER = {"@architectures": "spacy.Tok2VecListener.v1", "width": WIDTH, "upstream": "elmo"}
OWN_LISTENER = {"@architectures": "spacy_elmo.ElmoListener.v1", "upstream": "elmo", "dropout": 0.0, "gamma": 5.0}
NER = {
    "@architectures": "spacy.TransitionBasedParser.v2",
    "state_type": "ner",
    "extra_state_tokens": False,
    "hidden_width": 16,
    "maxout_pieces": 2,
    "use_upper": True,
    "tok2vec": OWN_LISTENER,
}
EMBED = {
    "@architectures": "spacy.MultiHashEmbed.v2",
    "width": 4,
    "attrs": ["NORM"],
    "rows": [20],
    "include_static_vectors": False,
}
CRF_NER = {
    "@architectures": "spacy_elmo.CrfTagger.v1",
    "tok2vec": {
        "@architectures": "spacy_elmo.Tok2Vec.v1",
        "embed": EMBED,
        "encode": None,
        "elmo_in": {**OWN_LISTENER, "layer_norm": True},
    },
}
TEXTCAT = {
    "@architectures": "spacy_elmo.BiattentiveClassifier.v1",
    "exclusive_classes": True,
    "feedforward_width": 4,
    "encoder_width": 4,
    "integrator_width": 4,
    "maxout_width": 4,
    "maxout_depth": 1,
    "maxout_pieces": 2,
    "tok2vec": {**OWN_LISTENER, "layers": "concat"},
}


def make_weights(directory: Path) -> dict[str, Any]:
    """Write a weights directory, and compute the vectors that it gives in several ways."""
    bilm = BiLM(BiLMConfig(**SIZES)).initialize(1)
    generator = torch.Generator().manual_seed(2)
    bilm.initial_hidden = torch.rand(SIZES["depth"], 2, SIZES["projection"], generator=generator)
    bilm.initial_cell = torch.rand(SIZES["depth"], 2, SIZES["cells"], generator=generator)
    save_weights(bilm, directory)
    arrays: dict[str, Any] = {}
    for name, config in VECTORS.items():
        nlp = spacy.blank("en")
        nlp.add_pipe("elmo", config={"weights": str(directory), **config})
        arrays |= {f"weights.{name}.{i}": doc.tensor for i, doc in enumerate(nlp.pipe(TEXTS))}
    return arrays


def make_blank() -> Language:
    """Make a pipeline that splits at spaces: the rules of English take more room than all other files."""
    nlp = spacy.blank("en")
    tokenizer_class: Any = type(nlp.tokenizer)
    nlp.tokenizer = tokenizer_class(nlp.vocab)
    return nlp


def train(nlp: Language, n_steps: int) -> None:
    """Train a pipeline until its mixes are far from the mean of the layers."""
    examples = [Example.from_dict(nlp.make_doc(text), gold) for text, gold in TRAINING]
    optimizer = nlp.initialize(lambda: examples)
    optimizer.learn_rate = 0.02
    for _ in range(n_steps):
        nlp.update(examples, sgd=optimizer)


def make_pipelines(directory: Path, weights: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Write two trained pipelines, and list what they predict."""
    fix_random_seed(0)
    listeners = make_blank()
    listeners.add_pipe("elmo", config={"weights": weights, "gamma": 5.0})
    listeners.add_pipe("ner", config={"model": NER})
    listeners.add_pipe("tagger", config={"model": {"@architectures": "spacy.Tagger.v2", "tok2vec": STOCK_LISTENER}})
    tasks = make_blank()
    tasks.add_pipe("elmo", config={"weights": weights, "layers": "mean"})
    tasks.add_pipe("crf_ner", config={"model": CRF_NER})
    tasks.add_pipe("textcat", config={"model": TEXTCAT})
    annotations: dict[str, Any] = {}
    arrays: dict[str, Any] = {}
    directory.mkdir()
    for name, nlp, n_steps in (("listeners", listeners, 60), ("tasks", tasks, 10)):
        train(nlp, n_steps)
        nlp.to_disk(directory / name)
        docs = list(nlp.pipe(TEXTS))
        annotations[name] = [list_annotations(doc) for doc in docs]
        arrays |= {f"{name}.{key}": array for key, array in list_arrays(nlp, docs).items()}
    mixes = [
        node.get_param("w").tolist()
        for nlp in (listeners, tasks)
        for _, component in nlp.pipeline
        for node in component.model.walk()
        if node.name == "scalar_mix"
    ]
    assert len(mixes) == 3
    assert all(max(mix) - min(mix) > 0.05 for mix in mixes), mixes
    return annotations, arrays


def list_annotations(doc: Doc) -> dict[str, Any]:
    """List all but the vectors that the components of these pipelines write to a doc."""
    entities = [[ent.start, ent.end, ent.label_] for ent in doc.ents]
    return {"entities": entities, "tags": [token.tag_ for token in doc], "cats": doc.cats}


def list_arrays(nlp: Language, docs: list[Doc]) -> dict[str, Any]:
    """List the vectors of docs, those that each component reads, and the scores of a tagger."""
    models: dict[str, Any] = {name: component.model for name, component in nlp.pipeline}
    listed = {"tensor": [doc.tensor for doc in docs]}
    listed |= {
        f"{name}.tok2vec": model.get_ref("tok2vec").predict(docs)
        for name, model in models.items()
        if model.has_ref("tok2vec")
    }
    if "tagger" in models:
        listed["tagger.scores"] = models["tagger"].predict(docs)
    return {f"{key}.{i}": array for key, arrays in listed.items() for i, array in enumerate(arrays)}


def make_text(path: Path, n_sentences: int, seed: int) -> None:
    """Write sentences in which a word says much about the next one."""
    choose = random.Random(seed).choice
    people, verbs = ["the cat", "the dog", "a bird"], ["sees", "eats", "likes"]
    objects, ends = ["a fish", "the mouse", "an apple", "us"], ["today .", "now .", "."]
    lines = [f"{choose(people)} {choose(verbs)} {choose(objects)} {choose(ends)}" for _ in range(n_sentences)]
    path.write_text("\n".join(lines) + "\n", encoding="utf8")


def make_runs(directory: Path) -> None:
    """Pretrain once to the end, and once until just after the first checkpoint."""
    make_text(directory / "train.txt", 120, seed=0)
    make_text(directory / "dev.txt", 30, seed=1)
    overrides = {
        "paths.train": "train.txt",
        "paths.dev": "dev.txt",
        "corpus.lang": None,
        **{f"bilm.{name}": value for name, value in SIZES.items()},
        "bilm_training.max_steps": 8,
        "bilm_training.batch_size": 4,
        "bilm_training.unroll": 5,
        "bilm_training.carry_state": True,
        "bilm_training.dropout": 0.2,
        "bilm_training.samples": 5,
        "bilm_training.log_frequency": 1,
        "bilm_training.eval_frequency": 3,
        "bilm_training.logger.progress_bar": False,
    }
    os.chdir(directory)  # so that the files name no directory of this machine
    pretrain(PRETRAINING_CONFIG, Path("whole"), overrides=overrides)
    write = Checkpoint.to_disk

    def write_and_stop(checkpoint: Checkpoint, path: Path) -> None:
        write(checkpoint, path)
        raise KeyboardInterrupt

    with patch.object(Checkpoint, "to_disk", write_and_stop), suppress(KeyboardInterrupt):
        pretrain(PRETRAINING_CONFIG, Path("stopped"), overrides=overrides)
    # Tokenized corpora have absolute paths in them, and can be made again. Of the whole run, the results are enough.
    for name in ("stopped/corpora", "whole/corpora", "whole/model-best"):
        shutil.rmtree(name)
    for name in ("stopped/learning-curve.svg", "whole/learning-curve.svg", "whole/checkpoint.safetensors"):
        Path(name).unlink()


def make_legacy(output: Path) -> None:
    """Make all files.

    output (Path): The directory, which must not exist.
    """
    torch.set_num_threads(1)
    output.mkdir()
    output = output.resolve()
    os.chdir(output)
    vectors = make_weights(Path("weights"))
    annotations, arrays = make_pipelines(Path("pipelines"), "weights")
    numpy.savez_compressed("arrays.npz", **vectors, **arrays)
    Path("annotations.json").write_text(json.dumps({"texts": TEXTS, **annotations}) + "\n", encoding="utf8")
    Path("pretraining").mkdir()
    make_runs(output / "pretraining")


if __name__ == "__main__":
    make_legacy(Path(sys.argv[1]))
