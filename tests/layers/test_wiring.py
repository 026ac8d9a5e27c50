"""Who listens to which `elmo`: after copying, saving, sourcing and replacing, and where there are several."""

import copy
import pickle
import shutil
from pathlib import Path
from typing import Any

import numpy
import pytest
import spacy
from numpy.testing import assert_allclose, assert_array_equal
from spacy.cli.train import train
from spacy.language import Language
from spacy.pipeline.tok2vec import Tok2VecListener
from spacy.pipeline.tok2vec import forward as spacy_forward
from spacy.tokens import DocBin
from spacy.util import load_model_from_config
from thinc.api import Adam, Config, fix_random_seed

from spacy_elmo.bilm.weights import save_weights
from spacy_elmo.layers.listener import ElmoListener
from spacy_elmo.layers.similarity import accept_unsaved_hooks

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


def test_saved_pipeline_does_not_look_at_where_its_weights_were(trained: Language, tmp_path: Path) -> None:
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
    (heard,) = listener_of(copied, "ner").predict([doc])
    assert_allclose(heard, doc.tensor, atol=1e-6)
    assert not numpy.allclose(nlp("Ada wrote it").tensor, doc.tensor, atol=1e-3)


def test_listener_asks_a_disabled_upstream(trained: Language) -> None:
    with trained.select_pipes(enable=["ner"]):
        assert entities(trained) == LEARNED


def test_several_processes(trained: Language) -> None:
    accept_unsaved_hooks()  # pytest has thrown its filter away
    docs = list(trained.pipe([text for text, _ in TRAINING], n_process=2, batch_size=1))
    assert [[(ent.text, ent.label_) for ent in doc.ents] for doc in docs] == LEARNED


@pytest.mark.parametrize("width", [96, 6])
def test_width_mismatch(weights: str, width: int) -> None:
    nlp = make_nlp(weights, {**STOCK, "width": width})
    with pytest.raises(
        ValueError, match=f"expects 3 layers and vectors of width {width}, but .* for vectors of width 12"
    ):
        nlp.initialize(lambda: make_examples(nlp))


@pytest.mark.parametrize("sizes", [{"depth": 1}, {"projection": 5}])
def test_trained_listener_on_other_weights(trained: Language, sizes: dict[str, int], tmp_path: Path) -> None:
    save_weights(random_bilm(**sizes), tmp_path / "other")
    source = pickle.loads(pickle.dumps(trained))
    nlp = spacy.blank("en", vocab=source.vocab)
    nlp.add_pipe("elmo", config={"weights": str(tmp_path / "other")})
    nlp.add_pipe("ner", source=source)
    message = (
        r"expects 3 layers and vectors of width 12, but the weights of 'elmo' have \d layers, for vectors of width 1"
    )
    with pytest.raises(ValueError, match=message):
        nlp("Ada wrote it")


def test_wildcard_listener_of_another_width_is_another_s(weights: str) -> None:
    nlp = make_nlp(weights, {**STOCK, "width": 96, "upstream": "*"})
    nlp.get_pipe("elmo").load()
    nlp._link_components()
    assert nlp.get_pipe("elmo").listening_components == []


def test_wildcard_listener_that_nobody_feeds(weights: str) -> None:
    nlp = make_nlp(weights, {**STOCK, "width": 96, "upstream": "*"})
    with pytest.raises(ValueError, match="expects 3 layers and vectors of width 96, .* set its width to 12"):
        nlp.initialize(lambda: make_examples(nlp))


def test_wildcard_listener_of_the_same_width(weights: str) -> None:
    nlp = make_nlp(weights, {**STOCK, "upstream": "*"})
    update(nlp, 60)
    assert entities(nlp) == LEARNED
    assert nlp.get_pipe("elmo").listening_components == ["ner"]


@pytest.mark.parametrize("layers", ["mix", "concat"])
@pytest.mark.parametrize("is_loaded", [True, False])
def test_wildcard_listener_of_our_own(weights: str, layers: str, is_loaded: bool) -> None:
    nlp = make_nlp(weights, frozen=False)
    if is_loaded:
        nlp("Ada wrote it")
    nlp.add_pipe("ner", config={"model": {**NER, "tok2vec": {**OWN, "upstream": "*", "layers": layers}}})
    before = {name: tensor.clone() for name, tensor in nlp.get_pipe("elmo").load().state_dict().items()}
    update(nlp, 3)
    assert nlp.get_pipe("elmo").listening_components == ["ner"]
    after = nlp.get_pipe("elmo").load().state_dict()
    assert not any(numpy.array_equal(before[name].numpy(), after[name].numpy()) for name in before)


def make_two_embedders(weights: str, order: list[str], upstream: str) -> Language:
    nlp = spacy.blank("en")
    configs = {"tok2vec": {"model": {"width": 12}}, "elmo": {"weights": weights}}
    configs["tagger"] = {"model": {**TAGGER, "tok2vec": {**STOCK, "upstream": upstream}}}
    for name in order:
        nlp.add_pipe(name, config=configs[name])
    return nlp


@pytest.mark.parametrize("order", [["tok2vec", "elmo", "tagger"], ["elmo", "tok2vec", "tagger"]])
def test_two_embedders_and_a_wildcard(weights: str, order: list[str]) -> None:
    nlp = make_two_embedders(weights, order, "*")
    message = r"'\*' in \['tagger'\] listen to both 'elmo' and 'tok2vec'.*such as upstream = \"tok2vec\""
    with pytest.raises(ValueError, match=message):
        nlp.initialize(lambda: make_examples(nlp))


@pytest.mark.parametrize(
    ("order", "upstream", "expected"),
    [
        (["elmo", "tok2vec", "tagger"], "tok2vec", []),
        (["elmo", "tok2vec", "tagger"], "elmo", ["tagger"]),
        (["elmo", "tagger", "tok2vec"], "*", ["tagger"]),  # nobody listens to what comes later
    ],
)
def test_two_embedders_that_are_told_apart(weights: str, order: list[str], upstream: str, expected: list[str]) -> None:
    nlp = make_two_embedders(weights, order, upstream)
    update(nlp, 1)
    assert nlp.get_pipe("elmo").listening_components == expected


@pytest.mark.parametrize("order", [["ner"], ["ner", "elmo"]])
def test_listener_without_upstream(weights: str, order: list[str]) -> None:
    nlp = spacy.blank("en")
    for name in order:
        nlp.add_pipe(name, config={"weights": weights} if name == "elmo" else {"model": {**NER, "tok2vec": OWN}})
    with pytest.raises(ValueError, match="no 'elmo' component of that name comes before it"):
        nlp.initialize(lambda: make_examples(nlp))


def test_model_of_one_s_own(weights: str) -> None:
    model = {"@architectures": "spacy_elmo.Elmo.v1", "weights": weights, "layers": "top"}
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"model": model})
    doc = nlp("Ada wrote it")
    assert_allclose(doc.tensor, doc._.elmo_layers[2], atol=1e-6)


def test_elmo_that_comes_too_late(weights: str) -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("ner", config={"model": {**NER, "tok2vec": STOCK}})
    nlp.add_pipe("elmo", config={"weights": weights})
    with pytest.raises(ValueError, match="'ner' listens to 'elmo', which comes after it. Put 'elmo' before 'ner'"):
        nlp.initialize(lambda: make_examples(nlp))


@pytest.mark.parametrize("keeps_elmo", [False, True])
@pytest.mark.parametrize(("upstream", "name"), [("*", "tok2vec"), ("elmo", "elmo")])
def test_stock_listener_can_listen_to_another_tok2vec(weights: str, upstream: str, name: str, keeps_elmo: bool) -> None:
    nlp = make_nlp(weights, {**STOCK, "upstream": upstream})
    update(nlp, 1)
    assert nlp.get_pipe("elmo").listening_components == ["ner"]
    removed = nlp.remove_pipe("elmo") if keeps_elmo else None
    if not keeps_elmo:
        nlp.remove_pipe("elmo")
    nlp.add_pipe("tok2vec", name=name, first=True, config={"model": {"width": 12}})
    update(nlp, 60)
    assert entities(nlp) == LEARNED
    assert nlp("Ada wrote it")._.elmo_layers is None
    assert removed is None or removed[1].name == "elmo"


def test_stock_listener_is_spacys_again_when_it_is_removed(weights: str) -> None:
    nlp = make_nlp(weights, STOCK)
    listener = listener_of(nlp, "ner")
    assert listener._func is not spacy_forward
    assert nlp.get_pipe("elmo").remove_listener(listener, "ner")
    assert listener._func is spacy_forward
    assert not nlp.get_pipe("elmo").remove_listener(listener, "ner")


def test_component_that_uses_the_elmo_of_another_pipeline(trained: Language) -> None:
    source = load_model_from_config(trained.config).from_bytes(trained.to_bytes())
    nlp = spacy.blank("en")
    nlp.add_pipe("ner", source=source)
    with pytest.warns(UserWarning, match="the 'elmo' of another pipeline, as if it was sourced without it"):
        assert [ent.text for ent in nlp("Ada wrote it").ents] == ["Ada"]
    assert [ent.text for ent in nlp("Paris is far").ents] == ["Paris"]  # said once


def test_training_shows_an_error_without_a_traceback(
    weights: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nlp = make_nlp(weights, {**STOCK, "width": 96})
    DocBin(docs=[example.reference for example in make_examples(nlp)]).to_disk(tmp_path / "docs.spacy")
    config = nlp.config
    config["paths"] |= {"train": str(tmp_path / "docs.spacy"), "dev": str(tmp_path / "docs.spacy")}
    config.to_disk(tmp_path / "config.cfg")
    with pytest.raises(SystemExit):
        train(tmp_path / "config.cfg")
    assert "set its width to 12" in capsys.readouterr().out
