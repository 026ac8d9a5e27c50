"""The biattentive classifier: the network against its formulas, and in spaCy's text categorizers."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy
import pytest
import spacy
import srsly
import torch
from numpy.testing import assert_allclose, assert_array_equal
from safetensors.torch import save
from spacy.language import Language
from spacy.training import Example
from thinc.api import Adam, Config, Model, fix_random_seed, set_dropout_rate

from spacy_elmo.bilm.weights import save_weights
from spacy_elmo.tasks.textcat.classifier import build_biattentive_classifier_v1
from spacy_elmo.tasks.textcat.layer import biattention
from spacy_elmo.tasks.textcat.network import BiattentiveNetwork, Sizes, Standardize
from spacy_elmo.tasks.textcat.weights import from_bytes, to_bytes

from ..helpers import random_bilm

pytestmark = pytest.mark.usefixtures("one_thread")

Array = Any  # NumPy's arrays, which are not thinc's to a type checker

SIZES: dict[str, Any] = {
    "feedforward_width": 5,
    "encoder_width": 3,
    "integrator_width": 4,
    "maxout_width": 6,
    "maxout_depth": 2,
    "maxout_pieces": 3,
}
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


@pytest.fixture(autouse=True)
def seed() -> None:
    fix_random_seed(0)


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("weights") / "a"
    save_weights(random_bilm(1, cell_clip=3.0, projection_clip=3.0), path)
    return str(path)


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


def random_network(input_width: int = 4, output_width: int = 0, **changes: Any) -> BiattentiveNetwork:
    """Make a network whose weights are large enough that all its parts matter."""
    torch.manual_seed(1)
    network = BiattentiveNetwork(Sizes(**{**SIZES, **changes}), input_width, output_width)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.normal_(std=0.7)
        network.standardize.mean.normal_()
        network.standardize.square.copy_(network.standardize.mean**2 + 0.5)
    return network.eval()


def random_vectors(*lengths: int, width: int = 4, seed: int = 0) -> list[Array]:
    random = numpy.random.RandomState(seed)
    return [random.standard_normal((length, width)).astype("float32") for length in lengths]


# The formulas of McCann et al. 2017, section 5, one doc and one token at a time, in double precision.


def reference(network: BiattentiveNetwork, x: Array, output: Array | None = None) -> Array:
    """Compute the vector of one doc."""
    arrays = {name: tensor.double().numpy() for name, tensor in network.state_dict().items()}
    read = [numpy.maximum(linear(arrays, "feedforward", vector), 0.0) for vector in x.astype("float64")]
    read = reference_bilstm(arrays, "encoder", read)
    integrated = []
    for vector in read:
        share = softmax([vector @ other for other in read])
        context = sum(share[s] * read[s] for s in range(len(read)))
        integrated.append(numpy.concatenate([vector, vector - context, vector * context]))
    integrated = reference_bilstm(arrays, "integrator", integrated)
    if output is not None:
        integrated = [numpy.concatenate(pair) for pair in zip(integrated, output, strict=True)]
    share = softmax([linear(arrays, "attention", vector)[0] for vector in integrated])
    attended = sum(share[t] * integrated[t] for t in range(len(integrated)))
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


@pytest.mark.parametrize("output_width", [0, 2])
@pytest.mark.parametrize("depth", [1, 2])
def test_network_is_its_formulas(output_width: int, depth: int) -> None:
    network = random_network(4, output_width, maxout_depth=depth)
    lengths = [3, 1, 6, 2]
    docs, outputs = random_vectors(*lengths), random_vectors(*lengths, width=output_width or 1, seed=1)
    # Values in the padding that would show if anything read them.
    x_BTI, output_BTE = torch.full((4, 8, 4), 50.0), torch.full((4, 8, output_width or 1), -50.0)
    for i, (x, output) in enumerate(zip(docs, outputs, strict=True)):
        x_BTI[i, : len(x)], output_BTE[i, : len(x)] = torch.as_tensor(x), torch.as_tensor(output)
    with torch.no_grad():
        found = network(x_BTI, torch.as_tensor(lengths), output_BTE if output_width else None)
    expected = [reference(network, x, y if output_width else None) for x, y in zip(docs, outputs, strict=True)]
    assert_allclose(found, expected, atol=1e-4, rtol=1e-4)


def make_layer(*widths: int, dropout: float | None = None) -> Model[Any, Any]:
    """Make the Thinc layer around a random network."""
    layer = biattention(Sizes(**SIZES), dropout=dropout)
    layer.initialize([random_vectors(1, width=width) for width in widths])
    layer.shims[0]._model = random_network(*widths)
    return layer


@pytest.mark.parametrize("widths", [(4,), (4, 2)])
def test_layer_gradients(widths: tuple[int, ...]) -> None:
    layer = make_layer(*widths)
    sources = [random_vectors(2, 1, 4, 3, 2, width=width, seed=width) for width in widths]
    expected = [reference(network_in(layer), *docs) for docs in zip(*sources, strict=True)]
    assert_allclose(layer.predict(sources), expected, atol=1e-4, rtol=1e-4)
    freeze(network_in(layer))
    vectors, backprop = layer.begin_update(sources)
    assert_allclose(vectors, expected, atol=1e-4, rtol=1e-4)
    d_vectors = random_vectors(5, width=6, seed=5)[0]
    for docs, d_docs in zip(sources, backprop(d_vectors), strict=True):
        for x, d_x in zip(docs, d_docs, strict=True):
            assert d_x.shape == x.shape
            for index in numpy.ndindex(x.shape):
                old, values = x[index], []
                for x[index] in (old + 1e-3, old - 1e-3):
                    values.append(float((layer.predict(sources) * d_vectors).sum()))
                x[index] = old
                assert_allclose(d_x[index], (values[0] - values[1]) / 2e-3, atol=5e-2, rtol=5e-2)


class Frozen(Standardize):
    """Learns nothing more about what is usual, so that training does not change what follows."""

    def train(self, mode: bool = True) -> "Frozen":
        return super().train(False)


def freeze(network: BiattentiveNetwork) -> None:
    frozen = Frozen(len(network.standardize.mean))
    frozen.load_state_dict(network.standardize.state_dict())
    network.standardize = frozen.eval()


def test_standardize_is_by_all_that_was_seen() -> None:
    standardize = Standardize(3)
    batches = [torch.as_tensor(2 * x + 5) for x in random_vectors(1, 8, 8, width=3)]
    assert_allclose(standardize(batches[0]), 0, atol=1e-6)
    outputs = [standardize(batch) for batch in batches[1:]]
    mean = torch.stack([batch.mean(dim=0) for batch in batches]).mean(dim=0)
    square = torch.stack([batch.square().mean(dim=0) for batch in batches]).mean(dim=0)
    expected = (batches[2] - mean) / (square - mean**2).sqrt()
    assert_allclose(outputs[1], expected, atol=1e-4)
    # Now as in training, alone as in a batch, and without learning.
    assert_allclose(standardize.eval()(batches[2]), expected, atol=1e-4)
    assert_allclose(standardize(batches[2][:1]), expected[:1], atol=1e-4)


def test_standardize_forgets_the_start() -> None:
    standardize = Standardize(1)
    for value in [0.0] * 100 + [3.0, 5.0] * 200:
        standardize(torch.as_tensor([[value]]))
    assert_allclose(standardize.mean, 4.0, atol=0.05)
    assert_allclose(standardize.eval()(torch.as_tensor([[5.0]])), 1.0, atol=0.05)


def network_in(layer: Model[Any, Any]) -> BiattentiveNetwork:
    network: BiattentiveNetwork = layer.shims[0]._model
    return network


def test_dropout_is_that_of_the_training() -> None:
    layer, sources = make_layer(4), [random_vectors(3)]
    freeze(network_in(layer))
    predicted = layer.predict(sources)
    assert_allclose(layer.begin_update(sources)[0], predicted, atol=1e-5)
    set_dropout_rate(layer, 0.5)
    dropped = layer.begin_update(sources)[0]
    assert not numpy.allclose(dropped, predicted)
    assert not numpy.allclose(dropped, layer.begin_update(sources)[0])
    assert_array_equal(layer.predict(sources), predicted)


def test_dropout_of_its_own() -> None:
    layer, sources = make_layer(4, dropout=0.5), [random_vectors(3)]
    freeze(network_in(layer))
    set_dropout_rate(layer, 0.0)
    assert not numpy.allclose(layer.begin_update(sources)[0], layer.predict(sources))
    set_dropout_rate(layer := make_layer(4, dropout=0.0), 0.5)
    freeze(network_in(layer))
    assert_allclose(layer.begin_update(sources)[0], layer.predict(sources), atol=1e-5)


def test_dropout_has_three_places() -> None:
    network, x_BTI = random_network(4), torch.as_tensor(random_vectors(7)[0]).unsqueeze(0)
    counts: list[tuple[int, ...]] = []

    def count(x: torch.Tensor, p: float, training: bool) -> torch.Tensor:
        assert (p, training) == (0.3, True)
        counts.append(tuple(x.shape))
        return x

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.nn.functional, "dropout", count)
        network.train()(x_BTI, torch.as_tensor([7]), dropout=0.3)
    assert counts == [(1, 7, 5), (1, 32), (1, 6)]


@pytest.fixture(scope="module", params=["textcat", "textcat_multilabel"])
def trained(request: pytest.FixtureRequest, weights: str) -> Language:
    fix_random_seed(0)
    nlp = make_nlp(weights, request.param)
    losses = update(nlp, 25)
    assert losses["textcat"] < 0.01
    return nlp


def gold(nlp: Language) -> Array:
    labels = nlp.get_pipe("textcat").labels
    return numpy.asarray([[example.reference.cats[label] for label in labels] for example in make_examples(nlp)])


def test_classifier_overfits(trained: Language) -> None:
    assert_allclose(cats(trained), gold(trained), atol=0.2)
    multi_label = "COMMA" in trained.get_pipe("textcat").labels
    assert trained.get_pipe("textcat").model.attrs["multi_label"] == multi_label
    sums = cats(trained, ["some film", "no plot at all"]).sum(axis=1)
    assert numpy.allclose(sums, 1.0, atol=1e-6) != multi_label


def test_scores_do_not_depend_on_the_batch(trained: Language) -> None:
    texts = [*TEXTS, "good", "it is a very long plot with a film in it , and another , and so on", "bad film"]
    expected = numpy.concatenate([cats(trained, [text]) for text in texts])
    assert not numpy.allclose(expected[0], expected[1], atol=0.1)
    assert_allclose(cats(trained, texts), expected, atol=1e-6)
    assert_allclose(cats(trained, texts[::-1])[::-1], expected, atol=1e-6)


def test_empty_docs_have_no_scores_and_change_none(trained: Language) -> None:
    expected, nothing = cats(trained), 0 * cats(trained, ["good"])
    assert_array_equal(cats(trained, ["", ""]), numpy.concatenate([nothing, nothing]))
    for position in range(len(TEXTS) + 1):
        found = cats(trained, [*TEXTS[:position], "", *TEXTS[position:]])
        assert_allclose(found, numpy.insert(expected, position, nothing, axis=0), atol=1e-6)
    model = trained.get_pipe("textcat").model
    assert_array_equal(model.predict([trained.make_doc("")]), nothing)


def test_gradients_do_not_depend_on_empty_docs(weights: str) -> None:
    nlp = make_nlp(weights)
    update(nlp, 2)
    model = nlp.get_pipe("textcat").model
    freeze(network_of(nlp))

    def gradients(texts: list[str]) -> list[Array]:
        docs = [nlp.make_doc(text) for text in texts]
        scores, backprop = model.begin_update(docs)
        d_scores = numpy.asarray([[len(doc), -1.0] for doc in docs], dtype="float32")
        backprop(d_scores)
        network = network_of(nlp)
        found = [parameter.grad.clone().numpy() for parameter in network.parameters() if parameter.grad is not None]
        found += [node.get_grad(name).copy() for node in model.walk() for name in node.grad_names]
        network.zero_grad(set_to_none=False)
        for node in model.walk():
            for name in node.grad_names:
                node.set_grad(name, 0 * node.get_grad(name))
        return found

    expected = gradients(TEXTS)
    assert all(numpy.abs(gradient).max() > 0 for gradient in expected)
    for found, value in zip(gradients(["", *TEXTS[:2], "", *TEXTS[2:], ""]), expected, strict=True):
        assert_allclose(found, value, atol=1e-5, rtol=1e-3)
    assert all(numpy.abs(gradient).max() == 0 for gradient in gradients(["", ""]))


def test_gradients_reach_everything(weights: str) -> None:
    nlp = make_nlp(weights, tok2vec={**EMBED, "rows": [50, 50]})
    before = None
    for steps in (2, 3):  # the softmax starts from zeros, and lets nothing through in the first step
        fix_random_seed(0)
        update(nlp, steps)
        model = nlp.get_pipe("textcat").model
        after = {name: tensor.detach().clone().numpy() for name, tensor in network_of(nlp).named_parameters()}
        after |= {
            f"{node.name} {i} {name}": node.get_param(name).copy()
            for i, node in enumerate(model.walk())
            for name in node.param_names
        }
        if before is not None:
            assert {"scalar_mix", "hashembed", "softmax"} <= {key.split(" ")[0] for key in after}
            assert [key for key in after if numpy.array_equal(before[key], after[key])] == []
        before = after


def test_two_listeners_have_two_mixes(weights: str) -> None:
    nlp = make_nlp(weights, tok2vec=LISTENER)
    update(nlp, 5)
    assert_allclose(cats(nlp, ["", "good"])[0], 0)
    one, other = (node.get_param("w") for node in nlp.get_pipe("textcat").model.walk() if node.name == "scalar_mix")
    assert min(numpy.abs(one).max(), numpy.abs(other).max()) > 1e-4
    assert not numpy.allclose(one, other)
    assert network_of(nlp).input_width == network_of(nlp).output_width == 12
    expected = cats(nlp)
    with pytest.warns(UserWarning, match="does not say where .* set layers, gamma, layer_norm, dropout, l2"):
        nlp.replace_listeners("elmo", "textcat", ["model.tok2vec", "model.output"])
    nlp.remove_pipe("elmo")
    assert_allclose(cats(nlp), expected, atol=1e-6)


def test_io_keeps_predictions(trained: Language, weights: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected, factory = cats(trained), trained.get_pipe_meta("textcat").factory

    def refuse(*args: Any, **kwargs: Any) -> None:
        raise AssertionError("pickle")

    monkeypatch.setattr(torch, "save", refuse)
    monkeypatch.setattr(torch, "load", refuse)
    trained.to_disk(tmp_path / "pipe")
    assert_array_equal(cats(spacy.load(tmp_path / "pipe")), expected)
    other = make_nlp(weights, factory, encoder_width=2)
    fix_random_seed(1)
    update(other, 1)
    assert not numpy.allclose(cats(other), expected, atol=0.1)
    other.get_pipe("textcat").from_bytes(trained.get_pipe("textcat").to_bytes())
    assert_array_equal(cats(other), expected)


def test_loaded_classifier_goes_on_learning(trained: Language, tmp_path: Path) -> None:
    trained.to_disk(tmp_path)
    loaded = spacy.load(tmp_path)
    before = {name: parameter.detach().clone() for name, parameter in network_of(loaded).named_parameters()}
    optimizer = loaded.resume_training()
    for _ in range(3):
        loaded.update(make_examples(loaded), sgd=optimizer)
    after = dict(network_of(loaded).named_parameters())
    assert [name for name in after if torch.equal(after[name], before[name])] == []


def test_loading_draws_no_random_numbers() -> None:
    data, state = to_bytes(random_network(4, 2)), torch.get_rng_state()
    from_bytes(data)
    assert torch.equal(torch.get_rng_state(), state)


def test_uninitialized_classifier_is_saved_as_such(tmp_path: Path) -> None:
    make_nlp(None).to_disk(tmp_path)
    loaded = spacy.load(tmp_path)
    update(loaded, 1)
    assert cats(loaded).shape == (4, 2)


def test_training_is_repeatable() -> None:
    runs = []
    for seed in (0, 0, 1):
        fix_random_seed(seed)
        nlp = make_nlp(None)
        update(nlp, 3, drop=0.5)
        runs.append(cats(nlp))
    assert_array_equal(runs[0], runs[1])
    assert not numpy.allclose(runs[0], runs[2], atol=1e-4)


@pytest.mark.parametrize("factory", ["textcat", "textcat_multilabel"])
def test_label_added_after_training(factory: str, tmp_path: Path) -> None:
    nlp = make_nlp(None, factory)
    update(nlp, 15)
    before = cats(nlp)
    textcat: Any = nlp.get_pipe("textcat")
    copied = textcat.model.copy()
    textcat.add_label("NEW")
    after = cats(nlp)
    assert_allclose(after[:, :-1], before, atol=1e-6)
    assert_allclose(after[:, -1], 0.0 if factory == "textcat" else 0.5, atol=1e-6)
    assert copied.predict([nlp.make_doc("good")]).shape == (1, before.shape[1]), "the copy was resized, too"
    optimizer = Adam(0.02)
    examples = make_examples(nlp, labels=("GOOD", "BAD", "NEW"))
    doc = nlp.make_doc("something new")
    examples.append(Example.from_dict(doc, {"cats": {**examples[0].reference.cats, "GOOD": 0.0, "NEW": 1.0}}))
    for _ in range(50):
        nlp.update(examples, sgd=optimizer)
    assert nlp("something new").cats["NEW"] > 0.8
    assert nlp("superb").cats["NEW"] < 0.2
    nlp.to_disk(tmp_path)
    assert_array_equal(cats(spacy.load(tmp_path)), cats(nlp))


def test_initialize_again_with_another_label() -> None:
    nlp = make_nlp(None)
    update(nlp, 2)
    nlp.get_pipe("textcat").add_label("NEW")
    update(nlp, 2)
    assert cats(nlp).shape == (4, 3)
    assert cats(nlp)[:, 2].min() > 0.01, "the new class does not start as one that was added later"


def test_first_docs_may_be_empty() -> None:
    nlp = make_nlp(None)
    empty = Example.from_dict(nlp.make_doc(""), {"cats": {"GOOD": 1.0, "BAD": 0.0}})
    nlp.initialize(lambda: [empty])
    nlp.update([empty, *make_examples(nlp)])
    assert_allclose(cats(nlp).sum(axis=1), 1.0, atol=1e-6)


def test_averages_reach_the_network() -> None:
    nlp = make_nlp(None)
    nlp.initialize(lambda: make_examples(nlp))
    optimizer = Adam(0.01, use_averages=True)
    for _ in range(5):
        nlp.update(make_examples(nlp), sgd=optimizer)
    before, network = cats(nlp), network_of(nlp)
    raw = {name: parameter.detach().clone() for name, parameter in network.named_parameters()}
    with nlp.use_params(optimizer.averages):
        assert not numpy.allclose(cats(nlp), before, atol=1e-4)
        assert [name for name, parameter in network.named_parameters() if torch.equal(parameter, raw[name])] == []
    assert_array_equal(cats(nlp), before)
    with nlp.use_params({}):
        assert_array_equal(cats(nlp), before)


@pytest.mark.parametrize("name", list(SIZES))
@pytest.mark.parametrize("value", [0, -1, True, 2.0])
def test_sizes_that_make_no_sense(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"{name} must be a whole number of 1 or more, got {value}"):
        Sizes(**{**SIZES, name: value})


def test_config_with_a_wrong_size_or_rate() -> None:
    with pytest.raises(ValueError, match="maxout_depth must be a whole number of 1 or more, got 0"):
        make_nlp(None, maxout_depth=0)
    with pytest.raises(ValueError, match=r"dropout must be from 0 to below 1, or null .* got 1.0"):
        make_nlp(None, dropout=1.0)


def test_config_sets_every_size(weights: str) -> None:
    sizes = {name: i + 2 for i, name in enumerate(SIZES)}
    nlp = make_nlp(weights, **sizes)
    update(nlp, 0)
    network = network_of(nlp)
    assert network.sizes == Sizes(**sizes)
    assert (network.input_width, network.output_width) == (8, 12)
    assert [tuple(layer.weight.shape) for layer in network.maxouts] == [(35, 4 * 20), *[(35, 5)] * 5]


def test_default_sizes_are_those_of_the_configs() -> None:
    config = Config().from_disk(Path(__file__).parents[2] / "configs" / "textcat.cfg", interpolate=False)
    model = config["components"]["textcat"]["model"]
    defaults = build_biattentive_classifier_v1.__kwdefaults__
    assert {name: defaults[name] for name in SIZES} == {name: model[name] for name in SIZES}


def test_initialize_without_docs() -> None:
    tok2vec: Model[Any, Any] = Model("nothing", lambda model, docs, is_train: ([], lambda d: []))
    model = build_biattentive_classifier_v1(tok2vec=tok2vec, exclusive_classes=True)
    with pytest.raises(ValueError, match="finds its widths in a sample of docs"):
        model.initialize()


def test_layer_without_weights() -> None:
    with pytest.raises(ValueError, match=r"no weights yet. Call nlp.initialize\(\)"):
        biattention(Sizes(**SIZES), dropout=None).predict([random_vectors(1)])


def test_vectors_of_another_width() -> None:
    with pytest.raises(ValueError, match=r"trained on vectors of width \[4, 2\] .* got \[4, 3\]"):
        make_layer(4, 2).predict([random_vectors(1), random_vectors(1, width=3)])
    with pytest.raises(ValueError, match=r"trained on vectors of width \[4\] .* got \[4, 3\]"):
        make_layer(4).predict([random_vectors(1), random_vectors(1, width=3)])


def test_damaged_weights() -> None:
    network = random_network(4)
    message = srsly.msgpack_loads(to_bytes(network))
    tensors = {name: tensor.detach() for name, tensor in network.state_dict().items()}
    with pytest.raises(ValueError, match="not the serialized classifier, or incomplete"):
        from_bytes(srsly.msgpack_dumps({**message, "tensors": message["tensors"][:-1]}))
    with pytest.raises(ValueError, match="not the serialized classifier, or incomplete.*input_width"):
        from_bytes(srsly.msgpack_dumps({name: part for name, part in message.items() if name != "input_width"}))
    with pytest.raises(ValueError, match=r"feedforward.weight is \(5, 4\), expected \(5, 3\)"):
        from_bytes(srsly.msgpack_dumps({**message, "input_width": 3}))
    broken = {**tensors, "attention.bias": torch.full((1,), torch.nan)}
    with pytest.raises(ValueError, match=r"not a number, in \['attention.bias'\]"):
        from_bytes(srsly.msgpack_dumps({**message, "tensors": save(broken)}))
    del tensors["attention.bias"]
    with pytest.raises(ValueError, match=r"missing \['attention.bias'\]"):
        from_bytes(srsly.msgpack_dumps({**message, "tensors": save(tensors)}))


def test_forked_processes_do_not_wait_for_threads() -> None:
    code = (
        "import os, sys, torch, spacy_elmo.tasks.textcat.layer\n"
        "assert 'spacy_elmo.layers.encoder' not in sys.modules\n"
        "torch.set_num_threads(2)\n"
        "child = os.fork()\n"
        "if child == 0: os._exit(40 + torch.get_num_threads())\n"
        "sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    assert subprocess.run([sys.executable, "-W", "ignore", "-c", code]).returncode == 41
