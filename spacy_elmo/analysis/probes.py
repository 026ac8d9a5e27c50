"""Linear probes: how well a linear classifier predicts an attribute of tokens from their vectors in each layer alone.

A probe is one matrix, from a token's vector to the scores of the labels. The probe of all layers also learns a mix of
them, as a listener does. Each probe is trained for some epochs, and the epoch with the best accuracy on the dev data is
scored on the test data: on all tokens, and on those whose word is not in the training data.

Shape suffixes: L layer, N token, W width of a layer, K label.
"""

import copy
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import NamedTuple

import numpy
import torch
from spacy.language import Language
from spacy.tokens import Doc
from torch import Tensor, nn
from torch.nn import functional

from ..corpora.sentences import doc_sentences
from .vectors import doc_layers

BATCH_SIZE = 512
LEARN_RATE = 0.002


class LabelledTokens(NamedTuple):
    """The tokens of a corpus.

    texts (list[str]): Their texts.
    labels_N (Tensor): The id of each token's label.
    layers_LNW (Tensor): Their vectors in each layer.
    """

    texts: list[str]
    labels_N: Tensor
    layers_LNW: Tensor


class Accuracy(NamedTuple):
    """The accuracy on test data, from 0 to 1.

    overall (float): Of all tokens.
    new_words (float): Of tokens whose word is not in the training data; not a number if there are none.
    """

    overall: float
    new_words: float


class ProbeScore(NamedTuple):
    """The score of one layer, or of a learned mix of all layers.

    layers (list[int]): The layers that the probes read.
    accuracies (list[Accuracy]): The accuracy of each seed's probe.
    mix (list[float]): The weights of the layers that the last seed's probe learned. They add up to 1.
    """

    layers: list[int]
    accuracies: list[Accuracy]
    mix: list[float]


def embed_tokens(
    nlp: Language, docs: Iterable[Doc], labels: dict[str, int], *, attribute: str = "pos_"
) -> LabelledTokens:
    """Run a pipeline on the words of annotated docs, one sentence at a time.

    nlp (Language): The pipeline, with an `elmo` component that keeps its layers.
    docs (Iterable[Doc]): The annotated docs. Whitespace tokens are left out.
    labels (dict[str, int]): The ids of labels. New labels are added to it.
    attribute (str): The attribute of a token that is its label, such as "pos_", "tag_", "dep_", "ent_type_" or "_.name".
    RETURNS (LabelledTokens): The tokens, their labels and their vectors.
    """
    label_of = attrgetter(attribute)
    sentences = (
        (Doc(nlp.vocab, words=[token.text for token in tokens]), [str(label_of(token)) for token in tokens])
        for doc in docs
        for tokens in doc_sentences(doc)
    )
    texts: list[str] = []
    ids: list[int] = []
    layers = []
    for doc, names in nlp.pipe(sentences, as_tuples=True):
        texts.extend(token.text for token in doc)
        ids.extend(labels.setdefault(name, len(labels)) for name in names)
        layers.append(doc_layers(doc))
    if not layers:
        raise ValueError("The docs have no tokens to probe.")
    return LabelledTokens(texts, torch.tensor(ids), torch.from_numpy(numpy.concatenate(layers, axis=1)))


def probe_layers(
    train: LabelledTokens,
    dev: LabelledTokens,
    test: LabelledTokens,
    *,
    n_labels: int,
    n_epochs: int = 8,
    seeds: Sequence[int] = (0, 1, 2),
) -> Iterator[ProbeScore]:
    """Train and score probes of each layer, then of a mix of all layers.

    train, dev, test (LabelledTokens): The tokens to train on, to choose the best epoch by, and to score on.
    n_labels (int): The number of labels.
    n_epochs (int): The number of epochs.
    seeds (Sequence[int]): The seeds, with one probe for each.
    YIELDS (ProbeScore): The scores, the token layer first and the mix last.
    """
    n_layers = len(train.layers_LNW)
    is_new_N = new_words(train, test)
    for layers in [*([i] for i in range(n_layers)), list(range(n_layers))]:
        accuracies = []
        for seed in seeds:
            probe = train_probe(train, dev, layers, n_labels=n_labels, n_epochs=n_epochs, seed=seed)
            accuracies.append(_accuracy(probe.predict(test.layers_LNW[layers]), test, is_new_N))
        yield ProbeScore(layers, accuracies, probe.mix_L.tolist())


def score_most_frequent(train: LabelledTokens, test: LabelledTokens) -> Accuracy:
    """Score a baseline without vectors: the most frequent label of each word; for new words, of all words.

    train, test (LabelledTokens): The tokens to count labels in, and to score on.
    RETURNS (Accuracy): The accuracy.
    """
    counts: defaultdict[str, Counter[int]] = defaultdict(Counter)
    for text, label in zip(train.texts, train.labels_N.tolist(), strict=True):
        counts[text][label] += 1
    overall = Counter(train.labels_N.tolist())
    predicted_N = torch.tensor([(counts.get(text) or overall).most_common(1)[0][0] for text in test.texts])
    return _accuracy(predicted_N, test, new_words(train, test))


def new_words(train: LabelledTokens, test: LabelledTokens) -> Tensor:
    """RETURNS (Tensor): is_new_N, whether the word of each test token is not in the training data."""
    known = set(train.texts)
    return torch.tensor([text not in known for text in test.texts])


class Probe(nn.Module):
    """A linear classifier of a learned mix of layers.

    layers_LNW (Tensor): The training data, for the scale of each layer.
    n_labels (int): The number of labels.
    """

    scale_L11: Tensor

    def __init__(self, layers_LNW: Tensor, n_labels: int) -> None:
        super().__init__()
        self.register_buffer("scale_L11", layers_LNW.std(dim=(1, 2), keepdim=True))
        self.w_L = nn.Parameter(torch.zeros(len(layers_LNW)))
        self.output = nn.Linear(layers_LNW.shape[-1], n_labels)

    @property
    def mix_L(self) -> Tensor:
        """RETURNS (Tensor): The weight of each layer. The weights add up to 1."""
        return self.w_L.softmax(0)

    def forward(self, layers_LNW: Tensor) -> Tensor:
        """RETURNS (Tensor): scores_NK."""
        scores_NK: Tensor = self.output((self.mix_L[:, None, None] * (layers_LNW / self.scale_L11)).sum(0))
        return scores_NK

    @torch.no_grad()
    def predict(self, layers_LNW: Tensor) -> Tensor:
        """RETURNS (Tensor): labels_N, the label with the highest score for each token."""
        scores_NK: Tensor = self(layers_LNW)
        return scores_NK.argmax(1)


def train_probe(
    train: LabelledTokens, dev: LabelledTokens, layers: list[int], *, n_labels: int, n_epochs: int, seed: int
) -> Probe:
    """Train a probe.

    train, dev (LabelledTokens): The tokens to train on, and to choose the best epoch by.
    layers (list[int]): The layers to read.
    n_labels, n_epochs (int): The number of labels, and of epochs.
    seed (int): The seed of the initial weights and of the order of the tokens.
    RETURNS (Probe): The probe after its best epoch.
    """
    torch.manual_seed(seed)
    layers_LNW = train.layers_LNW[layers]
    probe = Probe(layers_LNW, n_labels)
    optimizer = torch.optim.Adam(probe.parameters(), lr=LEARN_RATE)
    best, best_accuracy = probe, 0.0
    for _ in range(n_epochs):
        for batch_B in torch.split(torch.randperm(len(train.texts)), BATCH_SIZE):
            optimizer.zero_grad()
            functional.cross_entropy(probe(layers_LNW[:, batch_B]), train.labels_N[batch_B]).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        accuracy = float((probe.predict(dev.layers_LNW[layers]) == dev.labels_N).float().mean())
        if accuracy > best_accuracy:
            best, best_accuracy = copy.deepcopy(probe), accuracy
    return best


def _accuracy(predicted_N: Tensor, test: LabelledTokens, is_new_N: Tensor) -> Accuracy:
    is_right_N = (predicted_N == test.labels_N).float()
    return Accuracy(float(is_right_N.mean()), float(is_right_N[is_new_N].mean()))
