"""What linear probes can predict (table 6 of the paper): their accuracy on test data, beside that of classifiers without vectors.

All tokens are scored, and those whose word is not in the training data: there, the word itself does not give the label away.

Shape suffixes: N token.
"""

import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .labelled_tokens import LabelledTokens, label_ids
from .probes import Probe, WeightedMean, predict, train_probes


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


def _mean_weights(probes: Sequence[Probe]) -> list[float] | None:
    weights = [probe.combine.weights_L for probe in probes if isinstance(probe.combine, WeightedMean)]
    return torch.stack(weights).mean(0).tolist() if weights else None
