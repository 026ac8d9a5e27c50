"""Which component a listener listens to, and which listeners are refused."""

import pickle
from pathlib import Path

import numpy
import pytest
import spacy
from numpy.testing import assert_array_equal
from spacy.cli.train import train
from spacy.language import Language
from spacy.pipeline.tok2vec import Tok2VecListener
from spacy.pipeline.tok2vec import forward as spacy_forward
from spacy.tokens import DocBin

from spacy_elmo.bilm.weights import save_weights

from ..helpers import random_bilm
from ..listening import (
    LEARNED,
    NER,
    OWN,
    STOCK,
    TAGGER,
    entities,
    listener_of,
    make_examples,
    make_nlp,
    update,
)


@pytest.mark.parametrize("width", [96, 6])
def test_width_mismatch(weights: str, width: int) -> None:
    nlp = make_nlp(weights, {**STOCK, "width": width})
    with pytest.raises(ValueError, match=f"expects vectors of width {width}, but those of 'elmo' have a width of 12"):
        nlp.initialize(lambda: make_examples(nlp))


@pytest.mark.parametrize("sizes", [{"depth": 1}, {"projection": 5}])
def test_trained_listener_on_other_weights(trained: Language, sizes: dict[str, int], tmp_path: Path) -> None:
    save_weights(random_bilm(**sizes), tmp_path / "other")
    source = pickle.loads(pickle.dumps(trained))
    nlp = spacy.blank("en", vocab=source.vocab)
    nlp.add_pipe("elmo", config={"weights": str(tmp_path / "other")})
    nlp.add_pipe("ner", source=source)
    message = r"was trained with 3 layers of width 12, but the weights of 'elmo' have \d layers of width 1\d"
    with pytest.raises(ValueError, match=message):
        nlp("Ada wrote it")


def test_wildcard_listener_of_another_width_is_not_connected(weights: str) -> None:
    nlp = make_nlp(weights, {**STOCK, "width": 96, "upstream": "*"})
    nlp.get_pipe("elmo").load()
    nlp._link_components()
    assert nlp.get_pipe("elmo").listening_components == []


def test_wildcard_listener_without_an_upstream(weights: str) -> None:
    nlp = make_nlp(weights, {**STOCK, "width": 96, "upstream": "*"})
    with pytest.raises(ValueError, match="expects vectors of width 96, .* set its width to 12"):
        nlp.initialize(lambda: make_examples(nlp))


def test_wildcard_listener_of_the_same_width(weights: str) -> None:
    nlp = make_nlp(weights, {**STOCK, "upstream": "*"})
    update(nlp, 60)
    assert entities(nlp) == LEARNED
    assert nlp.get_pipe("elmo").listening_components == ["ner"]


@pytest.mark.parametrize("layers", ["mix", "concat"])
@pytest.mark.parametrize("is_loaded", [True, False])
def test_wildcard_in_an_elmo_listener(weights: str, layers: str, is_loaded: bool) -> None:
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
    message = (
        r"'\*' in \['tagger'\] listen to both 'elmo' and 'tok2vec'.*Set it by name, such as upstream = \"tok2vec\""
    )
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
def test_two_embedders_with_named_upstreams(weights: str, order: list[str], upstream: str, expected: list[str]) -> None:
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


def test_elmo_that_comes_too_late(weights: str) -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("ner", config={"model": {**NER, "tok2vec": STOCK}})
    nlp.add_pipe("elmo", config={"weights": weights})
    with pytest.raises(ValueError, match="'ner' listens to 'elmo', which comes after it. Put 'elmo' before 'ner'"):
        nlp.initialize(lambda: make_examples(nlp))


@pytest.mark.slow
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


def test_wildcard_listener_predicts_from_the_tok2vec_that_replaced_elmo(weights: str) -> None:
    nlp = make_nlp(weights, {**STOCK, "upstream": "*"})
    update(nlp, 1)
    removed = nlp.remove_pipe("elmo")  # still alive
    nlp.add_pipe("tok2vec", first=True, config={"model": {"width": 12}}).model.initialize()
    listener = next(node for node in nlp.get_pipe("ner").model.walk() if isinstance(node, Tok2VecListener))
    doc = nlp.get_pipe("tok2vec")(nlp.make_doc("Ada wrote it"))
    assert_array_equal(listener.predict([doc])[0], doc.tensor)
    assert doc._.elmo_layers is None
    assert removed[1].name == "elmo"
