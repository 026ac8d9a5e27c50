"""Linear probes: how well a linear classifier predicts an attribute of tokens from their vectors (table 6 of the paper).

A probe is one matrix, from a token's vector to the scores of the labels. There is a probe of each layer, of the mean, of a
learned mix, as a listener learns it, and of all layers side by side. They train at the same time, so that each batch of
vectors is read once. The epoch with a probe's best accuracy on the dev data is scored on the test data: on all tokens, and
on those whose word is not in the training data.

Shape suffixes: L layer, N token, W width of a layer, V width of a combination of layers, K label.
"""

import copy
import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from .labelled_tokens import LabelledTokens, label_ids
from .vectors import Combine, layer_combinations

BATCH_SIZE = 512
LEARN_RATE = 0.01  # at first; it falls to 0 in equal steps

Probes = dict[str, "Probe"]  # by the name of the combination of layers


class Accuracy(NamedTuple):
    """The accuracy on test data, in per cent.

    overall (float): Of all tokens.
    unseen (float | None): Of tokens whose word is not in the training data; None if there are none.
    """

    overall: float
    unseen: float | None


class ProbeScore(NamedTuple):
    """The score of the probes of one combination of layers.

    name (str): Its name.
    layers (list[int]): The layers that the probes read.
    accuracies (list[Accuracy]): The accuracy of each seed's probe.
    weights (list[float] | None): The weights of the layers in a learned mix, averaged over the seeds. They add up to 1.
    """

    name: str
    layers: list[int]
    accuracies: list[Accuracy]
    weights: list[float] | None


@dataclass(frozen=True)
class ProbeResults:
    """The scores of all probes of an attribute.

    n_tokens (dict[str, int]): The number of tokens to train on ("train"), to choose epochs by ("dev") and to score ("test").
    n_unseen (int): The number of test tokens whose word is not in the training data.
    n_labels (int): The number of labels in the training data.
    labels_only_in_test (dict[str, int]): The other labels of the test data, with their numbers of tokens. No probe can be
        right there.
    seeds (list[int]): The seeds.
    n_epochs (int): The number of epochs.
    baselines (dict[str, Accuracy]): The accuracy of classifiers that see no vectors.
    probes (list[ProbeScore]): The scores.
    """

    n_tokens: dict[str, int]
    n_unseen: int
    n_labels: int
    labels_only_in_test: dict[str, int]
    seeds: list[int]
    n_epochs: int
    baselines: dict[str, Accuracy]
    probes: list[ProbeScore]

    def to_dict(self) -> dict[str, Any]:
        """RETURNS (dict): The results, to be written as JSON."""
        return {
            "tokens": self.n_tokens,
            "unseen": self.n_unseen,
            "labels": self.n_labels,
            "labels_only_in_test": self.labels_only_in_test,
            "seeds": self.seeds,
            "epochs": self.n_epochs,
            "baselines": [
                {"name": name, "all": accuracy.overall, "unseen": accuracy.unseen}
                for name, accuracy in self.baselines.items()
            ],
            "probes": [
                {
                    "name": score.name,
                    "layers": score.layers,
                    "all": summarize([accuracy.overall for accuracy in score.accuracies]),
                    "unseen": summarize([accuracy.unseen for accuracy in score.accuracies]),
                    "weights": score.weights,
                }
                for score in self.probes
            ],
        }


def summarize(values: Sequence[float | None]) -> dict[str, Any]:
    """RETURNS (dict): The mean of the seeds, their standard deviation if there are several, and their values."""
    known = [value for value in values if value is not None]
    return {
        "mean": statistics.fmean(known) if known else None,
        "deviation": statistics.stdev(known) if len(known) > 1 else None,
        "seeds": list(values),
    }


def run_probes(
    train: LabelledTokens,
    dev: LabelledTokens,
    test: LabelledTokens,
    *,
    n_epochs: int,
    seeds: Sequence[int],
    on_batch: Callable[[int], object] = lambda n: None,
) -> ProbeResults:
    """Train and score the probes of all combinations of layers, and the baselines.

    train, dev, test (LabelledTokens): The tokens to train on, to choose the best epoch by, and to score on.
    n_epochs (int): The number of epochs.
    seeds (Sequence[int]): The seeds, with one probe of each combination for each.
    on_batch (Callable): Called after each batch with its number of tokens.
    RETURNS (ProbeResults): The scores.
    """
    ids = {label: i for i, label in enumerate(dict.fromkeys(train.labels))}
    if len(ids) < 2:
        raise ValueError(f"All tokens to train on have the label {train.labels[0]!r}, so there is nothing to predict.")
    known = set(train.words)
    is_unseen_N = torch.tensor([word not in known for word in test.words])
    labels_N = label_ids(test.labels, ids)

    def accuracy(predicted_N: Tensor) -> Accuracy:
        is_right_N = 100 * (predicted_N == labels_N).double()
        unseen_N = is_right_N[is_unseen_N]
        return Accuracy(float(is_right_N.mean()), float(unseen_N.mean()) if len(unseen_N) else None)

    trained = [train_probes(train, dev, ids, n_epochs=n_epochs, seed=seed, on_batch=on_batch) for seed in seeds]
    predictions = [predict(probes, test) for probes in trained]
    return ProbeResults(
        n_tokens={"train": len(train.words), "dev": len(dev.words), "test": len(test.words)},
        n_unseen=int(is_unseen_N.sum()),
        n_labels=len(ids),
        labels_only_in_test=dict(Counter(label for label in test.labels if label not in ids)),
        seeds=list(seeds),
        n_epochs=n_epochs,
        baselines={name: accuracy(label_ids(found, ids)) for name, found in predict_baselines(train, test).items()},
        probes=[
            ProbeScore(
                name,
                probe.layers,
                [accuracy(predicted[name]) for predicted in predictions],
                _mean_weights([probes[name] for probes in trained]),
            )
            for name, probe in trained[0].items()
        ],
    )


def predict_baselines(train: LabelledTokens, test: LabelledTokens) -> dict[str, list[str]]:
    """Predict labels without vectors.

    train, test (LabelledTokens): The tokens to count labels in, and to predict.
    RETURNS (dict[str, list[str]]): By the name of the baseline, the label of each test token: the most frequent label, and
        the most frequent label of the token's word, if the word is known.
    """
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for word, label in zip(train.words, train.labels, strict=True):
        counts[word][label] += 1
    ((majority, _),) = Counter(train.labels).most_common(1)
    by_word = {word: counter.most_common(1)[0][0] for word, counter in counts.items()}
    return {
        "majority": [majority] * len(test.words),
        "each word's most frequent label": [by_word.get(word, majority) for word in test.words],
    }


class LearnedMix(nn.Module):
    """A weighted mean of layers, whose weights are learned.

    n_layers (int): The number of layers.
    """

    def __init__(self, n_layers: int) -> None:
        super().__init__()
        self.w_L = nn.Parameter(torch.zeros(n_layers))

    @property
    def weights_L(self) -> Tensor:
        """RETURNS (Tensor): The weight of each layer. The weights add up to 1."""
        return self.w_L.softmax(0)

    def forward(self, layers_LNW: Tensor) -> Tensor:
        """RETURNS (Tensor): mixed_NW."""
        mixed_NW: Tensor = torch.tensordot(self.weights_L, layers_LNW, dims=1)
        return mixed_NW


class Probe(nn.Module):
    """A linear classifier of a combination of layers.

    layers (list[int]): The layers that it reads.
    combine (Combine): Makes one vector of all layers of a token.
    width (int): The width of that vector.
    scale (float): The size of its values in the training data, by which it is divided: layers differ in size.
    n_labels (int): The number of labels.
    """

    def __init__(self, layers: list[int], combine: Combine, *, width: int, scale: float, n_labels: int) -> None:
        super().__init__()
        self.layers = layers
        self.combine = combine
        self.scale = scale
        self.output = nn.Linear(width, n_labels)

    def forward(self, layers_LNW: Tensor) -> Tensor:
        """RETURNS (Tensor): scores_NK."""
        # As if the vectors were divided: the weights are the smaller matrix.
        return functional.linear(self.combine(layers_LNW), self.output.weight / self.scale, self.output.bias)


def make_probes(train: LabelledTokens, n_labels: int) -> Probes:
    """Make a probe of each combination of layers, with random weights.

    train (LabelledTokens): The training data, for the sizes of the vectors.
    n_labels (int): The number of labels.
    RETURNS (Probes): The probes.
    """
    n_layers = len(train.vectors.read(slice(1)))
    combinations = layer_combinations(n_layers)
    combinations["learned mix"] = (list(range(n_layers)), LearnedMix(n_layers))
    widths: dict[str, int] = {}
    squares: defaultdict[str, float] = defaultdict(float)
    with torch.no_grad():
        for layers_LNW in train.vectors.read_all():
            for name, (_, combine) in combinations.items():
                combined_NV = combine(layers_LNW)
                widths[name] = combined_NV.shape[1]
                squares[name] += float(combined_NV.square().sum())
    return {
        name: Probe(
            layers,
            combine,
            width=widths[name],
            scale=math.sqrt(squares[name] / (len(train.words) * widths[name])) or 1.0,
            n_labels=n_labels,
        )
        for name, (layers, combine) in combinations.items()
    }


def train_probes(
    train: LabelledTokens,
    dev: LabelledTokens,
    ids: dict[str, int],
    *,
    n_epochs: int,
    seed: int,
    on_batch: Callable[[int], object],
) -> Probes:
    """Train a probe of each combination of layers.

    train, dev (LabelledTokens): The tokens to train on, and to choose each probe's best epoch by.
    ids (dict[str, int]): The ids of the labels.
    n_epochs (int): The number of epochs.
    seed (int): The seed of the initial weights and of the order of the tokens.
    on_batch (Callable): Called after each batch with its number of tokens.
    RETURNS (Probes): Each probe after its best epoch.
    """
    torch.manual_seed(seed)
    probes = make_probes(train, len(ids))
    optimizer = torch.optim.Adam((weight for probe in probes.values() for weight in probe.parameters()), lr=LEARN_RATE)
    n_steps = n_epochs * math.ceil(len(train.words) / BATCH_SIZE)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=1, end_factor=0, total_iters=n_steps)
    labels_N, dev_labels_N = label_ids(train.labels, ids), label_ids(dev.labels, ids)
    best: dict[str, tuple[float, Probe]] = {}
    for _ in range(n_epochs):
        for batch_B in torch.split(torch.randperm(len(train.words)), BATCH_SIZE):
            layers_LBW = train.vectors.read(batch_B)
            # No weight is in two probes, so the sum of their losses gives each its own gradient.
            losses = [functional.cross_entropy(probe(layers_LBW), labels_N[batch_B]) for probe in probes.values()]
            optimizer.zero_grad()
            torch.stack(losses).sum().backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
            on_batch(len(batch_B))
        for name, predicted_N in predict(probes, dev).items():
            accuracy = float((predicted_N == dev_labels_N).double().mean())
            if name not in best or accuracy > best[name][0]:
                best[name] = accuracy, copy.deepcopy(probes[name])
    return {name: probe for name, (_, probe) in best.items()}


@torch.no_grad()
def predict(probes: Probes, tokens: LabelledTokens) -> dict[str, Tensor]:
    """Predict labels.

    probes (Probes): The probes.
    tokens (LabelledTokens): The tokens.
    RETURNS (dict[str, Tensor]): labels_N by the name of the probe: the label with the highest score for each token.
    """
    chunks = [
        {name: probe(layers_LNW).argmax(1) for name, probe in probes.items()}
        for layers_LNW in tokens.vectors.read_all()
    ]
    return {name: torch.cat([chunk[name] for chunk in chunks]) for name in probes}


def _mean_weights(probes: Sequence[Probe]) -> list[float] | None:
    weights = [probe.combine.weights_L for probe in probes if isinstance(probe.combine, LearnedMix)]
    return torch.stack(weights).mean(0).tolist() if weights else None
