"""Pipelines whose components listen to `elmo`, small enough to train in a test."""

from pathlib import Path
from typing import Any

import spacy
from spacy.language import Language
from spacy.training import Example
from thinc.api import fix_random_seed

from spacy_elmo.bilm.weights import save_weights

from .helpers import random_bilm

STOCK: dict[str, Any] = {"@architectures": "spacy.Tok2VecListener.v1", "width": 12, "upstream": "elmo"}
OWN: dict[str, Any] = {"@architectures": "spacy_elmo.ElmoListener.v1", "upstream": "elmo", "dropout": 0.0, "gamma": 5.0}
NER: dict[str, Any] = {"@architectures": "spacy.TransitionBasedParser.v2", "state_type": "ner", "hidden_width": 16}
NER |= {"extra_state_tokens": False, "maxout_pieces": 2, "use_upper": True}
TAGGER: dict[str, Any] = {"@architectures": "spacy.Tagger.v2"}

TRAINING = [
    ("Ada wrote it", {"entities": [(0, 3, "PERSON")], "tags": ["N", "V", "P"], "cats": {"A": 1.0, "B": 0.0}}),
    ("It is Turing", {"entities": [(6, 12, "PERSON")], "tags": ["P", "V", "N"], "cats": {"A": 0.0, "B": 1.0}}),
    ("Paris is far", {"entities": [(0, 5, "PLACE")], "tags": ["N", "V", "A"], "cats": {"A": 0.0, "B": 1.0}}),
]


def make_nlp(weights: str, *listeners: dict[str, Any], **config: Any) -> Language:
    """Make a pipeline of elmo and one component for each listener, ner first."""
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"weights": weights, "gamma": 5.0, **config})
    for (name, model), listener in zip({"ner": NER, "tagger": TAGGER}.items(), listeners, strict=False):
        nlp.add_pipe(name, config={"model": {**model, "tok2vec": listener}})
    return nlp


def make_examples(nlp: Language, *, with_empty: bool = False) -> list[Example]:
    examples = [Example.from_dict(nlp.make_doc(text), gold) for text, gold in TRAINING]
    if with_empty:
        for position in (0, 2, len(examples) + 2):
            examples.insert(position, Example.from_dict(nlp.make_doc(""), {}))
    return examples


def update(nlp: Language, steps: int, examples: list[Example] | None = None, **kwargs: Any) -> dict[str, float]:
    optimizer = nlp.initialize(lambda: make_examples(nlp))
    optimizer.learn_rate = 0.02
    losses: dict[str, float] = {}
    for _ in range(steps):
        losses = nlp.update(examples or make_examples(nlp), sgd=optimizer, **kwargs)
    return losses


def entities(nlp: Language) -> list[list[tuple[str, str]]]:
    return [[(ent.text, ent.label_) for ent in doc.ents] for doc in nlp.pipe(text for text, _ in TRAINING)]


LEARNED = [[("Ada", "PERSON")], [("Turing", "PERSON")], [("Paris", "PLACE")]]


def same_entities(one: Language, other: Language) -> None:
    assert entities(one) == entities(other) == LEARNED


def listener_of(nlp: Language, name: str) -> Any:
    return nlp.get_pipe("elmo").listener_map[name][0]


def mix_weights(model: Any) -> Any:
    """The learned weights of the first scalar mix in a model."""
    return next(node.get_param("w") for node in model.walk() if node.name == "scalar_mix")


def save_random_weights(directory: Path) -> str:
    """Write the weights that the listeners listen to."""
    save_weights(random_bilm(1, cell_clip=3.0, projection_clip=3.0), directory)
    return str(directory)


def train_both(weights: str) -> Language:
    """Make two components that have learned: ner with a mix of its own, tagger with the component's."""
    fix_random_seed(0)
    nlp = make_nlp(weights, OWN, STOCK)
    update(nlp, 60)
    assert entities(nlp) == LEARNED
    return nlp
