"""Small pipelines with a `crf_ner` component."""

from typing import Any

import spacy
from spacy.language import Language
from spacy.training import Example
from thinc.api import Config, fix_random_seed

TRAINING = [
    ("Ada Byron wrote it in London .", [(0, 9, "PERSON"), (22, 28, "PLACE")]),
    ("They met Babbage there .", [(9, 16, "PERSON")]),
    ("Nobody was in Paris or New York City .", [(14, 19, "PLACE"), (23, 36, "PLACE")]),
]

LEARNED = [
    [("Ada Byron", "PERSON"), ("London", "PLACE")],
    [("Babbage", "PERSON")],
    [("Paris", "PLACE"), ("New York City", "PLACE")],
]

TEXTS = [text for text, _ in TRAINING]

LABELS = ("PERSON", "PLACE")

SMALL = """
[model]
@architectures = "spacy_elmo.CrfTagger.v1"

[model.tok2vec]
@architectures = "spacy.HashEmbedCNN.v2"
pretrained_vectors = null
width = 16
depth = 1
embed_size = 200
window_size = 1
maxout_pieces = 2
subword_features = true
"""

BILSTM = """
[model]
@architectures = "spacy_elmo.CrfTagger.v1"

[model.tok2vec]
@architectures = "spacy.Tok2Vec.v2"

[model.tok2vec.embed]
@architectures = "spacy.MultiHashEmbed.v2"
width = 16
attrs = ["NORM", "SHAPE"]
rows = [200, 100]
include_static_vectors = false

[model.tok2vec.encode]
@architectures = "spacy.TorchBiLSTMEncoder.v1"
width = 16
depth = 1
dropout = 0.0
"""

LISTENER = """
[model]
@architectures = "spacy_elmo.CrfTagger.v1"

[model.tok2vec]
@architectures = "spacy.Tok2VecListener.v1"
width = 96
"""

ELMO_LISTENER = """
[model]
@architectures = "spacy_elmo.CrfTagger.v1"

[model.tok2vec]
@architectures = "spacy_elmo.ElmoListener.v1"
dropout = 0.0
"""


def model_config(text: str) -> Any:
    return Config().from_str(text)


def make_nlp(config: str = SMALL) -> Language:
    nlp = spacy.blank("en")
    nlp.add_pipe("crf_ner", config=model_config(config))
    return nlp


def make_examples(nlp: Language, training: Any = TRAINING) -> list[Example]:
    return [Example.from_dict(nlp.make_doc(text), {"entities": entities}) for text, entities in training]


def learn(nlp: Language, steps: int = 25, seed: int = 0, examples: list[Example] | None = None) -> list[float]:
    """Train a pipeline, and give the losses of all steps."""
    fix_random_seed(seed)
    examples = make_examples(nlp) if examples is None else examples
    optimizer = nlp.initialize(lambda: examples)
    optimizer.learn_rate = 0.01
    return [nlp.update(examples, sgd=optimizer)["crf_ner"] for _ in range(steps)]


def entities(nlp: Language, texts: list[str] = TEXTS) -> list[list[tuple[str, str]]]:
    return [[(ent.text, ent.label_) for ent in doc.ents] for doc in nlp.pipe(texts)]


def other_nlp() -> Language:
    """Make a pipeline of the same sizes and other weights: one that loads nothing would be found out."""
    nlp = make_nlp()
    learn(nlp, steps=0, seed=1)
    assert entities(nlp) != LEARNED
    return nlp
