"""Components that listen to `elmo`: what they learn, and what the biLM learns from them."""

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest
import spacy
from numpy.testing import assert_allclose, assert_array_equal
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.training.initialize import init_nlp
from spacy.training.loop import train
from thinc.api import Config

from spacy_elmo.layers.encoder import get_bilm
from spacy_elmo.layers.listener import ElmoListener

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
    update,
)


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
def test_concatenated_layers(
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


@pytest.mark.slow
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


@pytest.mark.parametrize("frozen", [True, False])
def test_initialize_starts_from_scratch(weights: str, frozen: bool) -> None:
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


def test_batches_of_components_that_are_not_trained_are_dropped(weights: str) -> None:
    nlp = make_nlp(weights, OWN, STOCK)
    update(nlp, 1)
    for name in ("ner", "tagger"):
        nlp.update(make_examples(nlp), exclude=[name])
        assert listener_of(nlp, name)._outputs is not None
        nlp("Ada wrote it")
        assert listener_of(nlp, name)._outputs is None
        pickle.dumps(nlp)


def test_bilm_does_not_run_in_training_without_listeners(weights: str, monkeypatch: pytest.MonkeyPatch) -> None:
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
def test_bilm_runs_once_per_batch_and_not_at_all_if_cached(
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


@pytest.mark.slow
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
def test_bilm_runs_once_for_all_listeners(weights: str, keep_layers: bool, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_retokenized_docs_are_embedded_again(trained: Language) -> None:
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


@pytest.mark.slow
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
