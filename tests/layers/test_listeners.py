"""Components that listen to `elmo`: what they learn, and what the biLM learns from them."""

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import numpy
import pytest
import spacy
import torch
from numpy.testing import assert_allclose, assert_array_equal
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.training.initialize import init_nlp
from spacy.training.loop import train
from thinc.api import Adam, Config, fix_random_seed

from spacy_elmo.layers.encoder import get_bilm
from spacy_elmo.layers.listener import ElmoListener
from spacy_elmo.pipeline import Elmo

from ..helpers import random_bilm
from ..listening import (
    LEARNED,
    NER,
    OWN,
    STOCK,
    TAGGER,
    TRAINING,
    entities,
    listener_of,
    make_examples,
    make_nlp,
    mix_weights,
    same_entities,
    save_random_weights,
    train_both,
    update,
)


@pytest.fixture(autouse=True)
def seed() -> None:
    fix_random_seed(0)


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> str:
    return save_random_weights(tmp_path_factory.mktemp("weights") / "a")


@pytest.fixture(scope="module")
def trained(weights: str) -> Language:
    return train_both(weights)


def test_each_listener_learns_its_own_mix(trained: Language) -> None:
    of_ner = mix_weights(listener_of(trained, "ner"))
    of_component = mix_weights(trained.get_pipe("elmo").model)
    assert numpy.abs(of_ner).max() > 1e-3
    assert numpy.abs(of_component).max() > 1e-3
    assert not numpy.allclose(of_ner, of_component, atol=1e-3)


def test_only_own_listeners_leave_the_component_s_mix_alone(weights: str) -> None:
    nlp = make_nlp(weights, OWN, OWN)
    update(nlp, 5)
    assert_array_equal(mix_weights(nlp.get_pipe("elmo").model), 0)
    one, other = (mix_weights(listener_of(nlp, name)) for name in ("ner", "tagger"))
    assert numpy.abs(one).max() > 1e-4
    assert not numpy.allclose(one, other)


def test_listener_infers_width_and_depth(weights: str) -> None:
    nlp = make_nlp(weights, OWN)
    nlp.initialize(lambda: make_examples(nlp))
    listener = listener_of(nlp, "ner")
    assert isinstance(listener, ElmoListener)
    assert listener.get_dim("nO") == 12
    assert mix_weights(listener).shape == (3,)


@pytest.mark.parametrize(
    ("listener", "config"), [({**OWN, "layers": "concat"}, {}), ({**STOCK, "width": 36}, {"layers": "concat"})]
)
@pytest.mark.parametrize("frozen", [True, False])
def test_layers_side_by_side(
    weights: str, listener: dict[str, Any], config: dict[str, Any], frozen: bool, tmp_path: Path
) -> None:
    nlp = make_nlp(weights, listener, **config, frozen=frozen)
    update(nlp, 40, make_examples(nlp, with_empty=True))
    assert entities(nlp) == LEARNED
    assert listener_of(nlp, "ner").get_dim("nO") == 36
    nlp.to_disk(tmp_path / "pipe")
    loaded = spacy.load(tmp_path / "pipe")
    same_entities(loaded, nlp)
    loaded.replace_listeners("elmo", "ner", ["model.tok2vec"])
    loaded.to_disk(tmp_path / "replaced")
    same_entities(spacy.load(tmp_path / "replaced", exclude=["elmo"]), nlp)


@pytest.mark.parametrize("listener", [STOCK, OWN])
@pytest.mark.parametrize(
    "kwargs", [{}, {"annotates": ["elmo"]}, {"exclude": ["elmo"]}, {"exclude": ["elmo"], "annotates": ["elmo"]}]
)
def test_ner_learns_with_empty_docs_frozen_or_not(
    weights: str, listener: dict[str, Any], kwargs: dict[str, Any]
) -> None:
    nlp = make_nlp(weights, listener)
    update(nlp, 60, make_examples(nlp, with_empty=True), **kwargs)
    assert entities(nlp) == LEARNED
    moved = numpy.abs(mix_weights(nlp.get_pipe("elmo").model)).max() > 1e-4
    assert moved == (listener is STOCK and "exclude" not in kwargs)


@pytest.mark.parametrize("listener", [STOCK, OWN])
def test_unfrozen_bilm_learns_beside_empty_docs(weights: str, listener: dict[str, Any]) -> None:
    nlp = make_nlp(weights, listener, frozen=False)
    examples = make_examples(nlp, with_empty=True)
    examples.insert(1, Example.from_dict(nlp.make_doc("  \n "), {}))
    update(nlp, 100, examples)
    assert entities(nlp) == LEARNED


@pytest.mark.parametrize("frozen", [True, False])
def test_initialize_starts_anew(weights: str, frozen: bool) -> None:
    nlp = make_nlp(weights, OWN, STOCK, frozen=frozen)
    update(nlp, 5)
    bilm = nlp.get_pipe("elmo").load()
    assert numpy.abs(mix_weights(listener_of(nlp, "ner"))).max() > 0
    nlp.initialize(lambda: make_examples(nlp))
    assert_array_equal(mix_weights(listener_of(nlp, "ner")), 0)
    assert_array_equal(mix_weights(nlp.get_pipe("elmo").model), 0)
    weight = nlp.get_pipe("elmo").load().char_cnn.embedding.weight
    assert_array_equal(weight.detach(), random_bilm(1).char_cnn.embedding.weight.detach())
    assert (weight is bilm.char_cnn.embedding.weight) == frozen


def test_batches_do_not_outlive_their_step(weights: str) -> None:
    nlp = make_nlp(weights, OWN, STOCK)
    update(nlp, 1)
    for name in ("ner", "tagger"):
        assert listener_of(nlp, name)._outputs is None
    pickle.dumps(nlp.get_pipe("ner"))
    nlp.get_pipe("elmo").update(make_examples(nlp))
    reordered = [example.predicted for example in reversed(make_examples(nlp))]
    expected = listener_of(nlp, "tagger").predict(reordered)
    for one, other in zip(listener_of(nlp, "tagger").begin_update(reordered)[0], expected, strict=True):
        assert_allclose(one, other, atol=1e-6)


def test_what_a_component_that_is_not_trained_was_sent_is_dropped(weights: str) -> None:
    nlp = make_nlp(weights, OWN, STOCK)
    update(nlp, 1)
    for name in ("ner", "tagger"):
        nlp.update(make_examples(nlp), exclude=[name])
        assert listener_of(nlp, name)._outputs is not None
        nlp("Ada wrote it")
        assert listener_of(nlp, name)._outputs is None
        pickle.dumps(nlp)


def test_bilm_does_not_run_in_training_if_nobody_listens(weights: str, monkeypatch: pytest.MonkeyPatch) -> None:
    nlp = make_nlp(weights)
    nlp.add_pipe("tagger")
    nlp.initialize(lambda: make_examples(nlp))
    monkeypatch.setattr(nlp.get_pipe("elmo").load(), "forward", None)
    assert nlp.update(make_examples(nlp))["elmo"] == 0.0


def test_whitespace_does_not_swell_the_loss(weights: str) -> None:
    nlp = make_nlp(weights, {**OWN, "layer_norm": True})
    update(nlp, 1)
    losses = [
        nlp.update([Example.from_dict(nlp.make_doc(text), {"entities": [(0, 3, "PERSON")]})], sgd=False)["elmo"]
        for text in ("Ada wrote it", "Ada wrote \n\n it")
    ]
    assert 0 < losses[1] < 100 * losses[0]


def test_private_elmo(weights: str, tmp_path: Path) -> None:
    nlp = spacy.blank("en")
    private = {"@architectures": "spacy_elmo.Elmo.v1", "weights": weights, "gamma": 5.0}
    nlp.add_pipe("ner", config={"model": {**NER, "tok2vec": private}})
    nlp.get_pipe("ner").model.to_bytes()  # not even initialized
    update(nlp, 60)
    nlp.to_disk(tmp_path / "pipe")
    assert entities(spacy.load(tmp_path / "pipe")) == LEARNED


@pytest.mark.parametrize("listener", [STOCK, OWN])
def test_batch_of_empty_docs(weights: str, listener: dict[str, Any]) -> None:
    nlp = make_nlp(weights, listener, listener)
    empty = [Example.from_dict(nlp.make_doc(""), {}) for _ in range(3)]
    losses = update(nlp, 1, empty)
    assert losses["elmo"] == 0.0
    assert [doc.tensor.shape for doc in nlp.pipe(["", ""])] == [(0, 12), (0, 12)]


@pytest.mark.parametrize("kwargs", [{}, {"exclude": ["elmo"]}])
@pytest.mark.parametrize(("settings", "expected"), [({"cache_mb": 0}, 1), ({"frozen": False}, 1), ({}, 0)])
def test_bilm_runs_once_a_batch_and_not_at_all_when_it_is_remembered(
    weights: str, kwargs: dict[str, Any], settings: dict[str, Any], expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    nlp = make_nlp(weights, OWN, STOCK, **settings)
    update(nlp, 2, **kwargs)
    calls: list[int] = []
    bilm = get_bilm(nlp.get_pipe("elmo").encoder)
    forward = bilm.forward

    def count(*args: Any) -> Any:
        calls.append(1)
        return forward(*args)

    monkeypatch.setattr(bilm, "forward", count)
    nlp.update(make_examples(nlp), **kwargs)
    assert len(calls) == expected


@pytest.mark.parametrize(
    ("factory", "model"),
    [
        ("textcat", {"@architectures": "spacy.TextCatReduce.v1", "exclusive_classes": True}),
        (
            "textcat",
            {
                "@architectures": "spacy.TextCatEnsemble.v2",
                "linear_model": {
                    "@architectures": "spacy.TextCatBOW.v3",
                    "exclusive_classes": True,
                    "ngram_size": 1,
                    "no_output_layer": False,
                    "length": 1000,
                },
            },
        ),
        ("tagger", TAGGER),
    ],
)
@pytest.mark.parametrize("listener", [STOCK, OWN])
def test_other_components(weights: str, factory: str, model: dict[str, Any], listener: dict[str, Any]) -> None:
    if "TextCatReduce" in model["@architectures"]:
        model = {
            **model,
            "use_reduce_first": False,
            "use_reduce_last": False,
            "use_reduce_max": True,
            "use_reduce_mean": True,
        }
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"weights": weights, "gamma": 5.0})
    nlp.add_pipe(factory, config={"model": {**model, "tok2vec": listener}})
    update(nlp, 200 if factory == "tagger" else 40)
    docs = list(nlp.pipe(text for text, _ in TRAINING))
    if factory == "tagger":
        assert [[token.tag_ for token in doc] for doc in docs] == [gold["tags"] for _, gold in TRAINING]
    elif factory == "textcat":
        assert [max(doc.cats, key=doc.cats.__getitem__) for doc in docs] == ["A", "B", "B"]


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
def test_unfrozen_bilm_has_a_learning_rate_of_its_own(weights: str, share: float) -> None:
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


@pytest.mark.parametrize("share", [0.0, -1.0])
def test_learning_rate_that_is_none(weights: str, share: float) -> None:
    with pytest.raises(ValueError, match=f"learn_rate_share must be above 0, got {share}.*set frozen = true"):
        make_nlp(weights, frozen=False, learn_rate_share=share)


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


def test_dropout_of_the_listener_is_not_that_of_training(weights: str) -> None:
    nlp = make_nlp(weights, {**OWN, "dropout": 0.9})
    examples = make_examples(nlp)
    update(nlp, 1, examples, drop=0.0)
    listener = listener_of(nlp, "ner")
    docs = [example.predicted for example in examples]
    nlp.get_pipe("elmo").update(examples)
    vectors, _ = listener.begin_update(docs)
    assert (vectors[0] == 0).mean() > 0.75
    assert not (listener.predict(docs)[0] == 0).any()


@pytest.mark.parametrize("keep_layers", [True, False])
def test_bilm_runs_once_for_all_that_listen(weights: str, keep_layers: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    nlp = make_nlp(weights, OWN, STOCK, keep_layers=keep_layers)
    update(nlp, 1)
    bilm = nlp.get_pipe("elmo").load()
    calls, forward = [], bilm.forward

    def count(*args: Any) -> Any:
        calls.append(args)
        return forward(*args)

    monkeypatch.setattr(bilm, "forward", count)
    nlp("A sentence that was never read before .")
    assert len(calls) == 1


def test_docs_that_were_retokenized(trained: Language) -> None:
    elmo, ner = trained.get_pipe("elmo"), trained.get_pipe("ner")
    doc = elmo(trained.make_doc("Ada wrote it"))
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[1:3])
    assert ner(doc)._.elmo_layers.shape == (3, 2, 12)


CONFIG = """
[components]

[corpora]

[nlp]
lang = "en"
pipeline = ["elmo", "ner"]

[components.elmo]
factory = "elmo"
gamma = 5.0

[components.ner]
factory = "ner"

[components.ner.model]
@architectures = "spacy.TransitionBasedParser.v2"
state_type = "ner"
extra_state_tokens = false
hidden_width = 16
maxout_pieces = 2
use_upper = true

[components.ner.model.tok2vec]
@architectures = "spacy_elmo.ElmoListener.v1"
gamma = 5.0
dropout = 0.0

[corpora.train]
@readers = "elmo_test_corpus.v1"

[corpora.dev]
@readers = "elmo_test_corpus.v1"

[training]
dropout = 0.1
max_steps = 120
eval_frequency = 20
frozen_components = []
annotating_components = []

[training.optimizer]
@optimizers = "Adam.v1"
learn_rate = 0.02
"""


@spacy.registry.readers("elmo_test_corpus.v1")
def read_test_corpus() -> Any:
    def read(nlp: Language) -> Iterator[Example]:
        yield from make_examples(nlp, with_empty=True)

    return read


@pytest.mark.parametrize("frozen", [[], ["elmo"]])
@pytest.mark.parametrize("annotating", [[], ["elmo"]])
def test_spacy_train(weights: str, frozen: list[str], annotating: list[str], tmp_path: Path) -> None:
    overrides = {"components.elmo.weights": weights, "training.frozen_components": frozen}
    overrides["training.annotating_components"] = annotating
    defaults = Config(spacy.blank("en").config)
    nlp = init_nlp(defaults.merge(Config().from_str(CONFIG, overrides=overrides, interpolate=False)))
    (tmp_path / "out").mkdir()
    with (tmp_path / "log").open("w") as log:
        train(nlp, tmp_path / "out", stdout=log, stderr=log)
    assert entities(spacy.load(tmp_path / "out" / "model-best")) == LEARNED


def test_doc_cleaner_drops_layers(weights: str) -> None:
    nlp = make_nlp(weights)
    nlp.add_pipe("doc_cleaner", config={"attrs": {"tensor": None, "_.elmo_layers": None}})
    doc: Doc = nlp("Ada wrote it")
    assert doc._.elmo_layers is None
