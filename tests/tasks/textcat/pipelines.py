"""Small pipelines with a biattentive classifier."""

from typing import Any

import numpy
import spacy
from spacy.language import Language
from spacy.training import Example

from spacy_elmo.tasks.textcat.network import BiattentiveNetwork

from .networks import SIZES, Array

EMBED: dict[str, Any] = {"@architectures": "spacy.MultiHashEmbed.v2", "width": 8, "rows": [200, 200]}

EMBED |= {"attrs": ["NORM", "SHAPE"], "include_static_vectors": False}

LISTENER: dict[str, Any] = {"@architectures": "spacy_elmo.ElmoListener.v1", "gamma": 5.0, "dropout": 0.0}

TRAINING = [
    ("this is a good film", "GOOD"),
    ("a bad , bad plot", "BAD"),
    ("superb", "GOOD"),
    ("i do not like it at all", "BAD"),
]

TEXTS = [text for text, _ in TRAINING]


def make_nlp(weights: str | None, factory: str = "textcat", **settings: Any) -> Language:
    """Make a pipeline whose classifier reads an embedding, and ELMo beside the integrator if there are weights."""
    nlp = spacy.blank("en")
    model = {"@architectures": "spacy_elmo.BiattentiveClassifier.v1", "exclusive_classes": factory == "textcat"}
    model |= {**SIZES, "tok2vec": EMBED}
    if weights is not None:
        nlp.add_pipe("elmo", config={"weights": weights})
        model |= {"output": LISTENER}
    nlp.add_pipe(factory, name="textcat", config={"model": {**model, **settings}})
    return nlp


def make_examples(nlp: Language, *, labels: tuple[str, ...] = ("GOOD", "BAD")) -> list[Example]:
    """Make an example of each text. A class of its own, for those with many, is whether a text has a comma."""
    multi = nlp.get_pipe_meta("textcat").factory == "textcat_multilabel"
    examples = []
    for text, label in TRAINING:
        cats = {name: float(name == label) for name in labels}
        if multi:
            cats["COMMA"] = float("," in text)
        examples.append(Example.from_dict(nlp.make_doc(text), {"cats": cats}))
    return examples


def update(nlp: Language, steps: int, drop: float = 0.0, **kwargs: Any) -> dict[str, float]:
    optimizer = nlp.initialize(lambda: make_examples(nlp))
    optimizer.learn_rate = 0.01
    losses: dict[str, float] = {}
    for _ in range(steps):
        losses = nlp.update(make_examples(nlp), sgd=optimizer, drop=drop, **kwargs)
    return losses


def cats(nlp: Language, texts: list[str] = TEXTS) -> Array:
    """The scores of texts, one row for each, in the labels' order."""
    labels = nlp.get_pipe("textcat").labels
    return numpy.asarray([[doc.cats[label] for label in labels] for doc in nlp.pipe(texts)])


def network_of(nlp: Language) -> BiattentiveNetwork:
    network: BiattentiveNetwork = next(
        shim._model for node in nlp.get_pipe("textcat").model.walk() for shim in node.shims
    )
    return network


def gold(nlp: Language) -> Array:
    labels = nlp.get_pipe("textcat").labels
    return numpy.asarray([[example.reference.cats[label] for label in labels] for example in make_examples(nlp)])
