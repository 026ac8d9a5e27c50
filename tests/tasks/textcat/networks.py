"""Random networks, and the formulas of McCann et al. (2017) in NumPy."""

from typing import Any

import numpy
import torch

from spacy_elmo.tasks.textcat.network import BiattentiveNetwork, Sizes, Standardize

Array = Any  # NumPy's arrays, which are not thinc's to a type checker

SIZES: dict[str, Any] = {
    "feedforward_width": 5,
    "encoder_width": 3,
    "integrator_width": 4,
    "maxout_width": 6,
    "maxout_depth": 2,
    "maxout_pieces": 3,
}


def random_network(input_width: int = 4, output_width: int = 0, **changes: Any) -> BiattentiveNetwork:
    """Make a network whose weights are large enough that all its parts matter."""
    torch.manual_seed(1)
    network = BiattentiveNetwork(Sizes(**{**SIZES, **changes}), input_width, output_width)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.normal_(std=0.7)
        network.standardize.mean.normal_()
        network.standardize.square.copy_(network.standardize.mean**2 + 0.5)
    return network


def random_vectors(*lengths: int, width: int = 4, seed: int = 0) -> list[Array]:
    random = numpy.random.RandomState(seed)
    return [random.standard_normal((length, width)).astype("float32") for length in lengths]


class Frozen(Standardize):
    """Learns nothing more about what is usual, so that training does not change what follows."""

    def forward(self, x_BP: torch.Tensor, *, is_train: bool = False) -> torch.Tensor:
        return super().forward(x_BP)


def freeze(network: BiattentiveNetwork) -> None:
    frozen = Frozen(len(network.standardize.mean))
    frozen.load_state_dict(network.standardize.state_dict())
    network.standardize = frozen


def reference(network: BiattentiveNetwork, x: Array, output: Array | None = None) -> Array:
    """Compute the vector of one doc."""
    arrays = {name: tensor.double().numpy() for name, tensor in network.state_dict().items()}
    read = [numpy.maximum(linear(arrays, "feedforward", vector), 0.0) for vector in x.astype("float64")]
    read = reference_bilstm(arrays, "encoder", read)
    integrated = []
    for vector in read:
        attention = softmax([vector @ other for other in read])
        context = sum(attention[s] * read[s] for s in range(len(read)))
        integrated.append(numpy.concatenate([vector, vector - context, vector * context]))
    integrated = reference_bilstm(arrays, "integrator", integrated)
    if output is not None:
        integrated = [numpy.concatenate(pair) for pair in zip(integrated, output, strict=True)]
    attention = softmax([linear(arrays, "attention", vector)[0] for vector in integrated])
    attended = sum(attention[t] * integrated[t] for t in range(len(integrated)))
    largest, mean, smallest = (f(integrated, axis=0) for f in (numpy.max, numpy.mean, numpy.min))
    usual = arrays["standardize.mean"]
    deviation = numpy.sqrt(arrays["standardize.square"] - usual**2 + 1e-5)
    vector = (numpy.concatenate([largest, mean, smallest, attended]) - usual) / deviation
    for i in range(network.sizes.maxout_depth):
        candidates = linear(arrays, f"maxouts.{i}", vector)
        groups = candidates.reshape(-1, network.sizes.maxout_pieces)
        vector = numpy.asarray([max(group) for group in groups])
    return vector


def reference_bilstm(arrays: dict[str, Array], name: str, inputs: list[Array]) -> list[Array]:
    """Read forwards and backwards, with torch's layout of the gates: input, forget, new, output."""
    directions = []
    for suffix, order in (("l0", inputs), ("l0_reverse", inputs[::-1])):
        ih, hh, b_ih, b_hh = (
            arrays[f"{name}.{kind}_{suffix}"] for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        )
        h = c = numpy.zeros(hh.shape[1])
        outputs = []
        for x in order:
            i, f, g, o = numpy.split(ih @ x + b_ih + hh @ h + b_hh, 4)
            c = sigmoid(f) * c + sigmoid(i) * numpy.tanh(g)
            h = sigmoid(o) * numpy.tanh(c)
            outputs.append(h)
        directions.append(outputs if suffix == "l0" else outputs[::-1])
    return [numpy.concatenate(pair) for pair in zip(*directions, strict=True)]


def linear(arrays: dict[str, Array], name: str, x: Array) -> Array:
    return arrays[f"{name}.weight"] @ x + arrays[f"{name}.bias"]


def softmax(values: list[Array]) -> Array:
    powers = numpy.exp(numpy.asarray(values) - max(values))
    return powers / powers.sum()


def sigmoid(x: Array) -> Array:
    return 1 / (1 + numpy.exp(-x))
