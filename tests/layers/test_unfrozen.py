"""A biLM that is trained with the task."""

from typing import Any, cast

import numpy
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from spacy.training import Example
from thinc.api import Adam

from spacy_elmo.layers.encoder import get_bilm
from spacy_elmo.layers.listener import ElmoListener
from spacy_elmo.pipeline import Elmo

from ..helpers import random_bilm
from ..listening import (
    LEARNED,
    OWN,
    STOCK,
    entities,
    make_examples,
    make_nlp,
    update,
)


@pytest.mark.slow
@pytest.mark.parametrize("listener", [STOCK, OWN])
def test_unfrozen_bilm_learns_beside_empty_docs(weights: str, listener: dict[str, Any]) -> None:
    nlp = make_nlp(weights, listener, frozen=False)
    examples = make_examples(nlp, with_empty=True)
    examples.insert(1, Example.from_dict(nlp.make_doc("  \n "), {}))
    update(nlp, 100, examples)
    assert entities(nlp) == LEARNED


@pytest.mark.slow
def test_frozen_bilm_stays_and_unfrozen_one_learns(weights: str) -> None:
    for frozen in (True, False):
        for listener in (STOCK, OWN):
            nlp = make_nlp(weights, listener, frozen=frozen)
            nlp.get_pipe("elmo").load()
            before = {k: v.clone() for k, v in get_bilm(nlp.get_pipe("elmo").encoder).state_dict().items()}
            update(nlp, 3)
            after = get_bilm(nlp.get_pipe("elmo").encoder).state_dict()
            moved = {name for name in before if not numpy.array_equal(before[name].numpy(), after[name].numpy())}
            assert moved == (set() if frozen else set(before))


def test_averages_reach_an_unfrozen_bilm(weights: str) -> None:
    nlp = make_nlp(weights, OWN, frozen=False)
    nlp.initialize(lambda: make_examples(nlp))
    optimizer = Adam(0.01, use_averages=True)
    for _ in range(5):
        nlp.update(make_examples(nlp), sgd=optimizer)
    before = {name: parameter.detach() for name, parameter in random_bilm(1).named_parameters()}
    bilm, vectors = get_bilm(nlp.get_pipe("elmo").encoder), nlp("Ada wrote it .").tensor
    raw = {name: parameter.detach().clone() for name, parameter in bilm.named_parameters()}
    with nlp.use_params(optimizer.averages):
        averages = {name: parameter.detach().clone() for name, parameter in bilm.named_parameters()}
        assert [name for name, values in averages.items() if torch.equal(values, raw[name])] == []
        # Between where it was and where it is, not on the way from zero.
        for name, values in averages.items():
            assert (values - before[name]).norm() < (raw[name] - before[name]).norm() + 1e-6, name
        assert not numpy.allclose(nlp("Ada wrote it .").tensor, vectors, atol=1e-5)
    assert_array_equal(nlp("Ada wrote it .").tensor, vectors)


@pytest.mark.parametrize("share", [1.0, 0.1, 0.003])
def test_unfrozen_bilm_has_its_own_learning_rate(weights: str, share: float) -> None:
    nlp = make_nlp(weights, OWN, frozen=False, learn_rate_share=share)
    update(nlp, 2)  # the task's last layer starts from zero, and no gradient comes through it at first
    bilm, listener = get_bilm(nlp.get_pipe("elmo").encoder), nlp.get_pipe("ner").model.get_ref("tok2vec")
    gamma = next(node for node in listener.walk() if node.has_param("gamma"))
    gamma_before = float(gamma.get_param("gamma")[0])
    before = {name: parameter.detach().clone() for name, parameter in bilm.named_parameters()}
    nlp.update(make_examples(nlp), sgd=Adam(0.02, L2=0.0, grad_clip=0.0))
    # Adam's first step is as long as the learning rate, whatever the gradient, unless that is next to nothing.
    moved = {
        name: float((parameter.detach() - before[name]).abs().max()) for name, parameter in bilm.named_parameters()
    }
    assert moved.keys() == before.keys()
    assert list(moved.values()) == pytest.approx([0.02 * share] * len(moved), rel=0.02)
    assert abs(gamma.get_param("gamma")[0] - gamma_before) == pytest.approx(0.02, rel=0.02)


def test_unfrozen_bilm_sums_the_gradients_of_its_listeners(weights: str) -> None:
    def gradient(*listeners: dict[str, Any]) -> Any:
        nlp = make_nlp(weights, frozen=False)
        elmo = cast(Elmo, nlp.get_pipe("elmo"))
        examples = make_examples(nlp)
        own = [ElmoListener("elmo", elmo.mix) for _ in listeners]
        for listener in own:
            elmo.add_listener(listener, "x")
        elmo.update(examples)
        for listener in own:
            vectors, backprop = listener.begin_update([example.predicted for example in examples])
            backprop([numpy.ones_like(vectors_TW) for vectors_TW in vectors])
        return get_bilm(elmo.encoder).char_cnn.embedding.weight.grad.numpy()  # type: ignore[union-attr]

    assert_allclose(gradient(OWN, OWN), 2 * gradient(OWN), atol=1e-4)
