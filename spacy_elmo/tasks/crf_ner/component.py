"""The component `crf_ner`: named entities by a conditional random field over BILUO tags."""

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from pathlib import Path
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

from ...files.damage import refuse_damaged
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

# The number of docs that the model is initialized with, to infer its sizes.
SAMPLE_SIZE = 10


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
    """Finds named entities by the sequence of tags with the highest score as a whole (Lample et al. 2016).

    As with spaCy's `ner`, existing entities and blocked tokens are kept, so an `entity_ruler` can come before. Any other
    token may become part of an entity, even if an earlier component set it to "O".
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
        model (Model): Docs to the scores of tags and transitions, as `spacy_elmo.CrfTagger.v1` builds it.
        name (str): The component's name.
        scorer (Callable | None): Scores the component's predictions.
        """
        super().__init__(vocab, model, name, labels=[])
        self.scorer = scorer

    def from_bytes(self, bytes_data: bytes, *, exclude: Iterable[str] = ()) -> "CrfNer":
        """Read what `to_bytes` returned.

        bytes_data (bytes): The component.
        exclude (Iterable[str]): Fields to leave out.
        RETURNS (CrfNer): The component itself.
        """
        with refuse_damaged("The data", f"a serialized component `{self.name}`"):
            super().from_bytes(bytes_data, exclude=exclude)
        return self

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> "CrfNer":
        """Read what `to_disk` wrote.

        path (str | Path): The directory.
        exclude (Iterable[str]): Fields to leave out.
        RETURNS (CrfNer): The component itself.
        """
        with refuse_damaged(path, f"a saved component `{self.name}`"):
            super().from_disk(path, exclude=exclude)
        return self

    @property
    def labels(self) -> tuple[str, ...]:
        """RETURNS (tuple[str, ...]): The entity labels, in the order of the model's scores."""
        return tuple(self.cfg["labels"])

    @property
    def label_data(self) -> tuple[str, ...]:
        """RETURNS (tuple[str, ...]): The labels as `spacy init labels` writes them and `initialize` reads them."""
        return self.labels

    def add_label(self, label: str) -> int:
        """Add a label, before the model is initialized.

        label (str): The label.
        RETURNS (int): 0 if the label exists already, otherwise 1.
        """
        if not isinstance(label, str) or not label:
            raise ValueError(f"A label of '{self.name}' must be a non-empty string, got {label!r}.")
        if label in self.labels:
            return 0
        nO = self.model.maybe_get_dim("nO")
        is_initialized = any(node.has_param(name) for node in self.model.walk() for name in node.param_names)
        if is_initialized and nO is not None and len(Tags([*self.labels, label])) > nO:
            raise ValueError(
                f"Cannot add the label {label!r} to '{self.name}': its model is initialized with {nO} tags for the labels "
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
        """Initialize the component for training: collect the labels and infer the sizes of the model.

        get_examples (Callable): Returns examples. They must have all labels, unless `labels` is given.
        nlp (Language | None): The pipeline.
        labels (Iterable[str] | None): The labels, as `spacy init labels` writes them.
        """
        validate_get_examples(get_examples, "CrfNer.initialize")
        if isinstance(labels, str | dict):
            raise ValueError(
                f"The labels of '{self.name}' must be a list, got {labels!r:.80}. The labels file of spaCy's `ner` has another "
                f"format: write a new file with `spacy init labels`, or remove [initialize.components.{self.name}.labels]."
            )
        for label in sorted(_labels_of(get_examples())) if labels is None else labels:
            self.add_label(label)
        if not self.labels:
            raise ValueError(
                f"'{self.name}' has no labels: no example in the training data has an entity. Annotate doc.ents, set "
                f"[initialize.components.{self.name}.labels], or call add_label."
            )
        sample = list(islice((example for example in get_examples() if len(example.predicted)), SAMPLE_SIZE))
        if not sample:
            raise ValueError(f"'{self.name}' cannot be initialized: all docs in the training data are empty.")
        self._check_labels(sample)
        n_tags = len(Tags(self.labels))
        nO = self.model.maybe_get_dim("nO")
        if nO not in (None, n_tags):
            raise ValueError(
                f"[components.{self.name}.model] nO is {nO}, but the labels {list(self.labels)} need {n_tags} tags: 4 for "
                f"each label, and 1. Set nO = null to infer it."
            )
        docs = [example.predicted for example in sample]
        self.model.initialize(X=docs, Y=[self.model.ops.alloc2f(len(doc), n_tags) for doc in docs])

    def predict(self, docs: Iterable[Doc]) -> list[NDArray[Any]]:
        """Predict the tags of docs, without modifying the docs.

        docs (Iterable[Doc]): The docs. Any of them may be empty.
        RETURNS (list[NDArray]): For each doc, the id of each token's tag.
        """
        # spaCy imports every plugin at every start, so the torch modules are imported only where they are used.
        from .inference import decode

        docs = list(docs)
        if not any(len(doc) for doc in docs):
            return [numpy.zeros(0, dtype="int64") for _ in docs]  # not every tok2vec accepts docs without any token
        tags = Tags(self.labels)
        scores = self.model.predict(docs)
        return decode(self.model.ops, scores, [possible_tags(doc, tags) for doc in docs], tags)

    def set_annotations(self, docs: Sequence[Doc], tag_ids: Sequence[NDArray[Any]]) -> None:
        """Set the predicted entities of docs, in addition to their existing entities.

        docs (Sequence[Doc]): The docs.
        tag_ids (Sequence[NDArray]): The tags that `predict` returned for them.
        """
        tags = Tags(self.labels)
        for doc, ids in zip(docs, tag_ids, strict=True):
            kept = list(doc.ents)
            taken = {i for ent in kept for i in range(ent.start, ent.end)}
            found = [Span(doc, *span) for span in tags.spans(ids.tolist()) if span[0] not in taken]
            blocked = [doc[token.i : token.i + 1] for token in doc if is_blocked(token)]
            doc.set_ents(kept + found, blocked=blocked, default="outside")

    def get_loss(self, examples: Iterable[Example], scores: ChainScores) -> tuple[float, ChainScores]:
        """Compute the loss and its gradients.

        Both are sums over docs, as in spaCy's own components. So a batch may be split ([training] accumulate_gradient),
        and all components have the same influence on a shared tok2vec.

        examples (Iterable[Example]): A batch of examples. The annotation of some or all tokens may be missing.
        scores (ChainScores): The model's output for their docs.
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
                f"initialized with {list(self.labels)}. Write a new labels file with `spacy init labels`, or remove "
                f"[initialize.components.{self.name}.labels]. If the component was trained before, train a new one."
            )


def _labels_of(examples: Iterable[Example]) -> set[str]:
    return {ent.label_ for example in examples for ent in example.reference.ents}
