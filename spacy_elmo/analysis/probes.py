"""Linear probes: classifiers that predict an attribute of tokens from their vectors alone.

A probe is one matrix, from a token's vector to the scores of the labels. There is a probe of each layer, of the mean, of all
layers side by side, and of a learned mix, as a listener learns it. They train at the same time, so that each batch of vectors
is read once. Each probe is kept as it was after the epoch with its best accuracy on the dev data.

Shape suffixes: L layer, N token, B token of a batch, W width of a layer, V width of a combination of layers, K label.
"""

import copy
import math
from collections import defaultdict
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from .labelled_tokens import LabelledTokens, label_ids
from .vectors import Combine, layer_combinations

BATCH_SIZE = 512
LEARN_RATE = 0.01  # at first; it falls to 0 in equal steps

Probes = dict[str, "Probe"]  # by the name of the combination of layers


class WeightedMean(nn.Module):
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
    combinations["learned mix"] = (list(range(n_layers)), WeightedMean(n_layers))
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
