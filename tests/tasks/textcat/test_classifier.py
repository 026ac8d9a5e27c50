"""The biattentive classifier in spaCy's text categorizers."""

from pathlib import Path
from typing import Any

import numpy
import pytest
import spacy
import torch
from numpy.testing import assert_allclose, assert_array_equal
from spacy.language import Language
from spacy.training import Example
from thinc.api import Adam, Config, Model, fix_random_seed

from spacy_elmo.bilm.weights import save_weights
from spacy_elmo.tasks.textcat.classifier import build_biattentive_classifier_v1
from spacy_elmo.tasks.textcat.network import Sizes

from ...helpers import random_bilm
from .networks import SIZES, Array, freeze
from .pipelines import EMBED, LISTENER, TEXTS, cats, gold, make_examples, make_nlp, network_of, update


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("weights") / "a"
    save_weights(random_bilm(1, cell_clip=3.0, projection_clip=3.0), path)
    return str(path)


@pytest.fixture(scope="module", params=["textcat", "textcat_multilabel"])
def trained(request: pytest.FixtureRequest, weights: str) -> Language:
    fix_random_seed(0)
    nlp = make_nlp(weights, request.param)
    losses = update(nlp, 25)
    assert losses["textcat"] < 0.01
    return nlp


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


def test_loaded_classifier_can_be_trained_further(trained: Language, tmp_path: Path) -> None:
    trained.to_disk(tmp_path)
    loaded = spacy.load(tmp_path)
    before = {name: parameter.detach().clone() for name, parameter in network_of(loaded).named_parameters()}
    optimizer = loaded.resume_training()
    for _ in range(3):
        loaded.update(make_examples(loaded), sgd=optimizer)
    after = dict(network_of(loaded).named_parameters())
    assert [name for name in after if torch.equal(after[name], before[name])] == []


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


def test_config_with_a_wrong_size_or_rate() -> None:
    with pytest.raises(ValueError, match="maxout_depth must be a whole number from 1 to 64, got 0"):
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
    config = Config().from_disk(Path(__file__).parents[3] / "configs" / "textcat.cfg", interpolate=False)
    model = config["components"]["textcat"]["model"]
    defaults = build_biattentive_classifier_v1.__kwdefaults__
    assert {name: defaults[name] for name in SIZES} == {name: model[name] for name in SIZES}


def test_initialize_without_docs() -> None:
    tok2vec: Model[Any, Any] = Model("nothing", lambda model, docs, is_train: ([], lambda d: []))
    model = build_biattentive_classifier_v1(tok2vec=tok2vec, exclusive_classes=True)
    with pytest.raises(ValueError, match="infers its widths from a sample of docs, but got none"):
        model.initialize()
