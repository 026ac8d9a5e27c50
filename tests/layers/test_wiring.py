"""Listeners after copying, saving, sourcing and replacing."""

import copy
import pickle
import shutil
from pathlib import Path
from typing import Any

import numpy
import pytest
import spacy
from numpy.testing import assert_allclose, assert_array_equal
from spacy.language import Language
from spacy.pipeline.tok2vec import Tok2VecListener
from spacy.training import Example
from spacy.util import load_model_from_config
from thinc.api import Adam, Config

from spacy_elmo.bilm.weights import save_weights
from spacy_elmo.layers.doc_layers import computed_layers
from spacy_elmo.layers.listener import ElmoListener
from spacy_elmo.layers.similarity import ignore_unsaved_hooks_warning

from ..helpers import random_bilm
from ..listening import (
    LEARNED,
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


def test_copied_models_listen_to_the_same_elmo(trained: Language) -> None:
    trained.resume_training()  # copies every model, deeply
    for name in ("ner", "tagger"):
        copied = copy.deepcopy(trained.get_pipe(name).model)
        (listener,) = (node for node in copied.walk() if isinstance(node, Tok2VecListener))
        link: Any = listener.link if isinstance(listener, ElmoListener) else listener._func.keywords["link"]
        assert link.upstream is trained.get_pipe("elmo")
        if not isinstance(listener, ElmoListener):
            assert listener.init.keywords["link"].upstream is trained.get_pipe("elmo")


def test_two_elmos_do_not_mix_up_their_listeners(weights: str, tmp_path: Path) -> None:
    save_weights(random_bilm(7), tmp_path / "second")
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"weights": weights})
    nlp.add_pipe("elmo", "second", config={"weights": str(tmp_path / "second")})
    nlp.add_pipe("tok2vec", config={"model": {"width": 12}})
    nlp.add_pipe("tagger", config={"model": {**TAGGER, "tok2vec": STOCK}})
    nlp.initialize(lambda: make_examples(nlp))
    doc = nlp("Ada wrote it")
    alone = spacy.blank("en")
    alone.add_pipe("elmo", config={"weights": weights})
    (vectors,) = listener_of(nlp, "tagger").predict([doc])
    assert_allclose(vectors, alone("Ada wrote it").tensor, atol=1e-6)


def test_roundtrip_of_a_trained_pipeline(trained: Language, tmp_path: Path) -> None:
    trained.to_disk(tmp_path / "pipe")
    loaded = spacy.load(tmp_path / "pipe")
    same_entities(loaded, trained)
    assert_array_equal(mix_weights(listener_of(loaded, "ner")), mix_weights(listener_of(trained, "ner")))
    same_entities(spacy.blank("en").from_config(trained.config).from_bytes(trained.to_bytes()), trained)


@pytest.mark.parametrize("name", ["ner", "tagger"])
def test_replaced_listener_predicts_the_same(trained: Language, name: str, tmp_path: Path) -> None:
    trained.to_disk(tmp_path / "before")
    nlp = spacy.load(tmp_path / "before")
    nlp.replace_listeners("elmo", name, ["model.tok2vec"])
    assert name not in nlp.get_pipe("elmo").listening_components
    nlp.to_disk(tmp_path / "after")
    loaded = spacy.load(tmp_path / "after", exclude=["elmo"] if name == "ner" else [])
    same_entities(loaded, trained)
    if name == "tagger":
        for text, _ in TRAINING:
            assert [token.tag_ for token in loaded(text)] == [token.tag_ for token in trained(text)]


def test_saved_pipeline_does_not_need_its_weights_directory(trained: Language, tmp_path: Path) -> None:
    trained.to_disk(tmp_path / "pipe")
    config = Config().from_disk(tmp_path / "pipe" / "config.cfg", interpolate=False)
    config["components"]["elmo"]["weights"] = str(tmp_path / "weights")
    config.to_disk(tmp_path / "pipe" / "config.cfg")
    save_weights(random_bilm(5, depth=1, projection=5), tmp_path / "weights")  # another model is there now
    same_entities(spacy.load(tmp_path / "pipe"), trained)
    shutil.rmtree(tmp_path / "weights")
    same_entities(spacy.load(tmp_path / "pipe"), trained)


def test_replaced_listener_of_an_elmo_that_was_not_used(weights: str) -> None:
    nlp = make_nlp(weights, OWN)
    nlp.replace_listeners("elmo", "ner", ["model.tok2vec"])
    nlp.remove_pipe("elmo")
    update(nlp, 60)
    assert entities(nlp) == LEARNED
    assert nlp.config["components"]["ner"]["model"]["tok2vec"]["gamma"] == 5.0


def test_sourced_components(trained: Language) -> None:
    source = pickle.loads(pickle.dumps(trained))  # what is sourced listens to another elmo from now on
    nlp = spacy.blank("en", vocab=source.vocab)
    nlp.add_pipe("elmo", source=source)
    nlp.add_pipe("ner", source=source)
    same_entities(nlp, trained)


@pytest.mark.parametrize("name", ["ner", "tagger"])
def test_component_sourced_without_its_elmo(trained: Language, name: str) -> None:
    source = load_model_from_config(trained.config).from_bytes(trained.to_bytes())
    nlp = spacy.blank("en", vocab=source.vocab)
    nlp.add_pipe(name, source=source)
    del source
    with pytest.raises(ValueError, match="no 'elmo' component of that name .* source 'elmo' with it"):
        nlp("Ada wrote it")


def test_deep_copy_listens_to_its_own_elmo(weights: str) -> None:
    nlp = make_nlp(weights, STOCK)
    update(nlp, 2)
    copied = copy.deepcopy(nlp)
    optimizer = Adam(0.05)
    for _ in range(5):
        copied.update(make_examples(copied), sgd=optimizer)
    doc = copied("Ada wrote it")
    (received,) = listener_of(copied, "ner").predict([doc])
    assert_allclose(received, doc.tensor, atol=1e-6)
    assert not numpy.allclose(nlp("Ada wrote it").tensor, doc.tensor, atol=1e-3)


def test_listener_asks_a_disabled_upstream(trained: Language) -> None:
    with trained.select_pipes(enable=["ner"]):
        assert entities(trained) == LEARNED


def test_several_processes(trained: Language) -> None:
    ignore_unsaved_hooks_warning()  # pytest has thrown its filter away
    docs = list(trained.pipe([text for text, _ in TRAINING], n_process=2, batch_size=1))
    assert [[(ent.text, ent.label_) for ent in doc.ents] for doc in docs] == LEARNED


def test_model_block(weights: str) -> None:
    model = {"@architectures": "spacy_elmo.Elmo.v1", "weights": weights, "layers": "top"}
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"model": model})
    doc = nlp("Ada wrote it")
    assert_allclose(doc.tensor, doc._.elmo_layers[2], atol=1e-6)


def test_component_that_uses_the_elmo_of_another_pipeline(trained: Language) -> None:
    source = load_model_from_config(trained.config).from_bytes(trained.to_bytes())
    nlp = spacy.blank("en")
    nlp.add_pipe("ner", source=source)
    with pytest.warns(UserWarning, match="the 'elmo' of another pipeline, as if it was sourced without it"):
        assert [ent.text for ent in nlp("Ada wrote it").ents] == ["Ada"]
    assert [ent.text for ent in nlp("Paris is far").ents] == ["Paris"]  # said once


def test_renamed_elmo_is_an_error_at_once(trained: Language) -> None:
    nlp = pickle.loads(pickle.dumps(trained))
    nlp.rename_pipe("elmo", "other")
    nlp._link_components()
    with pytest.raises(ValueError, match="no 'elmo' component of that name"):
        nlp("Ada wrote it")


def test_pickled_listener_without_its_elmo(weights: str) -> None:
    nlp = make_nlp(weights, OWN)
    ner = nlp.get_pipe("ner")
    nlp.remove_pipe("elmo")
    restored = pickle.loads(pickle.dumps(ner))
    with pytest.raises(ValueError, match="no 'elmo' component of that name"):
        restored.predict([nlp.make_doc("Ada wrote it")])


def test_elmo_added_to_a_trained_pipeline(weights: str) -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("ner")
    examples = [Example.from_dict(nlp.make_doc(text), gold) for text, gold in TRAINING]
    nlp.initialize(lambda: examples)
    nlp.add_pipe("elmo", config={"weights": weights}, first=True)
    losses = nlp.update(make_examples(nlp), sgd=nlp.resume_training())
    assert losses["ner"] > 0


def test_two_elmos_keep_their_layers_apart(weights: str, tmp_path: Path) -> None:
    save_weights(random_bilm(2, projection=5), tmp_path / "other")
    nlp = make_nlp(weights, OWN)
    nlp.add_pipe("elmo", name="narrow", config={"weights": str(tmp_path / "other")}, before="ner")
    update(nlp, 2)
    doc = nlp("Ada wrote it")
    assert doc._.elmo_layers.shape == (3, 3, 10)
    assert_allclose(doc.tensor, doc._.elmo_layers.mean(axis=0), atol=1e-6)
    layers_LTW = computed_layers(doc, "elmo")
    assert layers_LTW is not None
    assert layers_LTW.shape == (3, 3, 12)


def test_layers_of_another_pipeline_are_not_used(weights: str, tmp_path: Path) -> None:
    save_weights(random_bilm(2, projection=5), tmp_path / "other")
    nlp, other = make_nlp(weights, OWN), make_nlp(str(tmp_path / "other"))
    update(nlp, 2)
    doc = other.get_pipe("elmo")(nlp.make_doc("Ada wrote it"))
    assert nlp.get_pipe("elmo").provide_layers([doc], is_train=False)[0].shape == (3, 3, 12)


def test_settings_without_the_model_can_be_read(weights: str) -> None:
    nlp = make_nlp(weights, STOCK)
    update(nlp, 10)
    elmo = nlp.get_pipe("elmo")
    before = mix_weights(elmo.mix).copy()
    assert before.any()
    elmo.from_bytes(elmo.to_bytes(exclude=["model"]), exclude=["model"])
    assert_array_equal(mix_weights(elmo.mix), before)
