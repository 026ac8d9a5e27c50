"""The component `crf_ner`: named entities by a conditional random field over BILUO tags."""

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any

import numpy
from numpy.typing import NDArray
from spacy.language import Language
from spacy.pipeline import TrainablePipe
from spacy.scorer import get_ner_prf
from spacy.tokens import Doc, Span
from spacy.training import Example, validate_examples, validate_get_examples
from spacy.vocab import Vocab
from thinc.api import Config, Model

from .masks import gold_tags, is_blocked, possible_tags
from .tagger import ChainScores
from .tags import Tags

Scorer = Callable[..., dict[str, Any]]

DEFAULT_CONFIG = """
[model]
@architectures = "spacy_elmo.CrfTagger.v1"
nO = null

[model.tok2vec]
@architectures = "spacy.HashEmbedCNN.v2"
pretrained_vectors = null
width = 96
depth = 4
embed_size = 2000
window_size = 1
maxout_pieces = 3
subword_features = true
"""

# Docs that the model is shown before training, to find out its sizes.
SAMPLE = 10


@Language.factory(
    "crf_ner",
    assigns=["doc.ents", "token.ent_iob", "token.ent_type"],
    default_config={
        "model": Config().from_str(DEFAULT_CONFIG)["model"],
        "scorer": {"@scorers": "spacy.ner_scorer.v1"},
    },
    default_score_weights={"ents_f": 1.0, "ents_p": 0.0, "ents_r": 0.0, "ents_per_type": None},
)
def make_crf_ner(nlp: Language, name: str, model: Model[list[Doc], ChainScores], scorer: Scorer | None) -> "CrfNer":
    """Make a `crf_ner` component.

    model (Model): A model of the architecture `spacy_elmo.CrfTagger.v1`.
    scorer (Callable | None): Scores the component's predictions.
    RETURNS (CrfNer): The component.
    """
    return CrfNer(nlp.vocab, model, name, scorer=scorer)


class CrfNer(TrainablePipe):  # type: ignore[misc]  # spaCy has no types for it
    """Finds named entities: the best of all sequences of tags, each scored as a whole (Lample et al. 2016).

    Entities that a doc has already are kept, as spaCy's `ner` keeps them, and so are blocked tokens: put an
    `entity_ruler` before. Any other token may become part of an entity, even if an earlier component said "O".
    """

    def __init__(
        self,
        vocab: Vocab,
        model: Model[list[Doc], ChainScores],
        name: str = "crf_ner",
        *,
        scorer: Scorer | None = get_ner_prf,
    ) -> None:
        """Initialize the component.

        vocab (Vocab): The shared vocabulary.
        model (Model): Docs to the scores of a chain, as `spacy_elmo.CrfTagger.v1` builds it.
        name (str): The component's name.
        scorer (Callable | None): Scores the component's predictions.
        """
        super().__init__(vocab, model, name, labels=[])
        self.scorer = scorer

    @property
    def labels(self) -> tuple[str, ...]:
        """RETURNS (tuple[str, ...]): The labels of entities, in the order of the model's scores."""
        return tuple(self.cfg["labels"])

    @property
    def label_data(self) -> tuple[str, ...]:
        """RETURNS (tuple[str, ...]): What `spacy init labels` writes, and `initialize` takes."""
        return self.labels

    def add_label(self, label: str) -> int:
        """Add a label, before the model is initialized.

        label (str): The label.
        RETURNS (int): 0 if it is there already, otherwise 1.
        """
        if not isinstance(label, str) or not label:
            raise ValueError(f"A label of '{self.name}' must be a string that is not empty, got {label!r}.")
        if label in self.labels:
            return 0
        nO = self.model.maybe_get_dim("nO")
        is_initialized = any(node.has_param(name) for node in self.model.walk() for name in node.param_names)
        if is_initialized and nO is not None and len(Tags([*self.labels, label])) > nO:
            raise ValueError(
                f"Cannot add the label {label!r} to '{self.name}': its model scores {nO} tags, which are those of "
                f"{list(self.labels)}. Add labels before the pipeline is initialized, or train a new component."
            )
        self.cfg["labels"].append(label)
        self.vocab.strings.add(label)
        return 1

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Language | None = None,
        labels: Iterable[str] | None = None,
    ) -> None:
        """Get ready for training: find the labels, and give the model its sizes.

        get_examples (Callable): Returns examples that have all labels, unless these are given.
        nlp (Language | None): The pipeline.
        labels (Iterable[str] | None): The labels, as `spacy init labels` writes them.
        """
        validate_get_examples(get_examples, "CrfNer.initialize")
        if isinstance(labels, str | dict):
            raise ValueError(
                f"The labels of '{self.name}' must be a list, got {labels!r:.80}. Those of spaCy's `ner` are of another form: write "
                f"a new file with `spacy init labels`, or leave [initialize.components.{self.name}.labels] out."
            )
        for label in sorted(_labels_of(get_examples())) if labels is None else labels:
            self.add_label(label)
        if not self.labels:
            raise ValueError(
                f"'{self.name}' has no labels: no example in the training data has an entity. Annotate doc.ents, give "
                f"[initialize.components.{self.name}.labels], or call add_label."
            )
        sample = list(islice((example for example in get_examples() if len(example.predicted)), SAMPLE))
        if not sample:
            raise ValueError(f"'{self.name}' cannot be initialized: all docs in the training data are empty.")
        self._check_labels(sample)
        n_tags = len(Tags(self.labels))
        nO = self.model.maybe_get_dim("nO")
        if nO not in (None, n_tags):
            raise ValueError(
                f"[components.{self.name}.model] nO is {nO}, but the tags of {list(self.labels)} are {n_tags}: 4 for "
                f"each label, and 1. Leave nO = null, and it will be that."
            )
        docs = [example.predicted for example in sample]
        self.model.initialize(X=docs, Y=[self.model.ops.alloc2f(len(doc), n_tags) for doc in docs])

    def predict(self, docs: Iterable[Doc]) -> list[NDArray[Any]]:
        """Find the best tags of docs, without modifying them.

        docs (Iterable[Doc]): The docs, of which any may be empty.
        RETURNS (list[NDArray]): For each doc the id of each token's tag.
        """
        # spaCy imports every plugin at every start; torch's part is imported by those who use it.
        from .inference import decode

        docs = list(docs)
        if not any(len(doc) for doc in docs):
            return [numpy.zeros(0, dtype="int64") for _ in docs]  # not every tok2vec can do without a single token
        tags = Tags(self.labels)
        scores = self.model.predict(docs)
        return decode(self.model.ops, scores, [possible_tags(doc, tags) for doc in docs], tags)

    def set_annotations(self, docs: Sequence[Doc], tag_ids: Sequence[NDArray[Any]]) -> None:
        """Put entities on docs, beside those that are there.

        docs (Sequence[Doc]): The docs.
        tag_ids (Sequence[NDArray]): What `predict` returned for them.
        """
        tags = Tags(self.labels)
        for doc, ids in zip(docs, tag_ids, strict=True):
            kept = list(doc.ents)
            taken = {i for ent in kept for i in range(ent.start, ent.end)}
            found = [Span(doc, *place) for place in tags.spans(ids.tolist()) if place[0] not in taken]
            blocked = [doc[token.i : token.i + 1] for token in doc if is_blocked(token)]
            doc.set_ents(kept + found, blocked=blocked, default="outside")

    def get_loss(self, examples: Iterable[Example], scores: ChainScores) -> tuple[float, ChainScores]:
        """Find the loss and its gradients.

        Both are summed over docs, as those of spaCy's own components are: so a batch may be split in parts
        ([training] accumulate_gradient), and a shared tok2vec hears each component equally loud.

        examples (Iterable[Example]): A batch of examples. Annotation may be missing, of all tokens or some.
        scores (ChainScores): What the model gave for their docs.
        RETURNS (tuple): The loss, and its gradients.
        """
        from .inference import loss_and_gradients

        examples = list(examples)
        validate_examples(examples, "CrfNer.get_loss")
        self._check_labels(examples)
        tags = Tags(self.labels)
        return loss_and_gradients(self.model.ops, scores, [gold_tags(example, tags) for example in examples], tags)

    def _check_labels(self, examples: Iterable[Example]) -> None:
        unknown = _labels_of(examples) - set(self.labels)
        if unknown:
            raise ValueError(
                f"The training data of '{self.name}' has entities with the labels {sorted(unknown)}, but it was "
                f"initialized with {list(self.labels)}. Write its file of labels anew with `spacy init labels`, or "
                f"leave out [initialize.components.{self.name}.labels]; if the component was trained before, train a "
                f"new one."
            )


def _labels_of(examples: Iterable[Example]) -> set[str]:
    return {ent.label_ for example in examples for ent in example.reference.ents}
