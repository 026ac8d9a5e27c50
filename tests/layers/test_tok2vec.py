"""A task's own embedding and encoder, with ELMo before it, after it, or both."""

import json
import re
from configparser import ConfigParser
from pathlib import Path
from typing import Any

import numpy
import pytest
import spacy
from numpy.testing import assert_allclose, assert_array_equal
from spacy.cli.init_config import init_config
from spacy.language import Language
from spacy.training import Example
from spacy.util import load_model_from_config, registry
from thinc.api import Config, Model, Optimizer, fix_random_seed

from spacy_elmo.layers.listener import ElmoListener

ROOT = Path(__file__).parents[2]

EMBED: dict[str, Any] = {"@architectures": "spacy.MultiHashEmbed.v2", "width": 8, "attrs": ["NORM"], "rows": [50]}
EMBED |= {"include_static_vectors": False}
CNN: dict[str, Any] = {"@architectures": "spacy.MaxoutWindowEncoder.v2", "width": 8, "depth": 1, "window_size": 1}
CNN |= {"maxout_pieces": 2}
LSTM: dict[str, Any] = {"@architectures": "spacy.TorchBiLSTMEncoder.v1", "width": 8, "depth": 1, "dropout": 0.0}
ELMO: dict[str, Any] = {"@architectures": "spacy_elmo.ElmoListener.v1", "dropout": 0.0}
WIDTH = 12  # of the biLM

EXAMPLES = [
    ("Ada wrote it", {"tags": ["N", "V", "P"]}),
    ("", {}),
    ("It is Turing", {"tags": ["P", "V", "N"]}),
    ("Paris is far", {"tags": ["N", "V", "A"]}),
]


def make_nlp(weights: str, **parts: Any) -> Language:
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"weights": weights, "gamma": 5.0})
    tok2vec = {"@architectures": "spacy_elmo.Tok2Vec.v1", "embed": EMBED, "encode": CNN, **parts}
    nlp.add_pipe("tagger", config={"model": {"@architectures": "spacy.Tagger.v2", "tok2vec": tok2vec}})
    return nlp


def make_examples(nlp: Language) -> list[Example]:
    return [Example.from_dict(nlp.make_doc(text), gold) for text, gold in EXAMPLES]


def initialize(nlp: Language, seed: int = 0) -> Model[Any, Any]:
    """Initialize a pipeline and give its tok2vec."""
    fix_random_seed(seed)
    nlp.initialize(lambda: make_examples(nlp))
    tok2vec: Model[Any, Any] = nlp.get_pipe("tagger").model.get_ref("tok2vec")
    return tok2vec


def learn(nlp: Language, steps: int = 60) -> None:
    fix_random_seed(0)
    optimizer = nlp.initialize(lambda: make_examples(nlp))
    optimizer.learn_rate = 0.02
    for _ in range(steps):
        nlp.update(make_examples(nlp), sgd=optimizer)


def tags(nlp: Language) -> list[list[str]]:
    return [[token.tag_ for token in doc] for doc in nlp.pipe(text for text, _ in EXAMPLES)]


PARTS: list[tuple[dict[str, Any], int, int]] = [
    # parts, width that is reduced, width that comes out
    ({"elmo_in": ELMO}, 8 + WIDTH, 8),
    ({"elmo_in": ELMO, "elmo_out": ELMO}, 8 + WIDTH, 8 + WIDTH),
    ({"elmo_out": ELMO}, 0, 8 + WIDTH),
    ({"elmo_in": ELMO, "embed": None}, WIDTH, 8),
    ({"elmo_in": ELMO, "encode": LSTM}, 8 + WIDTH, 8),
    ({}, 0, 8),
    ({"elmo_in": ELMO, "encode": None}, 0, 8 + WIDTH),
    ({"encode": None}, 0, 8),
]


@pytest.mark.parametrize(("parts", "reduced", "width"), PARTS)
def test_widths_follow_from_the_parts(weights: str, parts: dict[str, Any], reduced: int, width: int) -> None:
    nlp = make_nlp(weights, **parts)
    tok2vec = initialize(nlp)
    docs = [nlp.make_doc(text) for text, _ in EXAMPLES]
    assert [vectors.shape for vectors in tok2vec.predict(docs)] == [(3, width), (0, width), (3, width), (3, width)]
    assert tok2vec.get_dim("nO") == width
    maxouts = [node.get_dim("nI") for node in tok2vec.walk() if node.name == "maxout"]
    assert (reduced in maxouts) == bool(reduced)


def test_output_is_encoder_beside_elmo(weights: str) -> None:
    nlp = make_nlp(weights, elmo_in=ELMO, elmo_out=ELMO)
    tok2vec = initialize(nlp)
    (doc,) = nlp.pipe(["Ada wrote it"])
    (vectors_TO,) = tok2vec.predict([doc])
    # A listener starts as the mean of the layers.
    assert_allclose(vectors_TO[:, 8:], doc._.elmo_layers.mean(axis=0), atol=1e-6)
    (encoded_TO,) = tok2vec.layers[0].predict([doc])
    assert_array_equal(vectors_TO[:, :8], encoded_TO)


def test_without_elmo_it_is_spacys_own(weights: str) -> None:
    nlp, other = make_nlp(weights), make_nlp(weights)
    other.remove_pipe("tagger")
    stock = {"@architectures": "spacy.Tok2Vec.v2", "embed": EMBED, "encode": CNN}
    other.add_pipe("tagger", config={"model": {"@architectures": "spacy.Tagger.v2", "tok2vec": stock}})
    docs = [nlp.make_doc(text) for text, _ in EXAMPLES]
    for ours, theirs in zip(initialize(nlp).predict(docs), initialize(other).predict(docs), strict=True):
        assert_array_equal(ours, theirs)


@pytest.mark.slow
@pytest.mark.parametrize("parts", [parts for parts, _, _ in PARTS])
def test_learns_and_survives_the_disk(weights: str, parts: dict[str, Any], tmp_path: Path) -> None:
    nlp = make_nlp(weights, **parts)
    learn(nlp)
    assert tags(nlp) == [gold.get("tags", []) for _, gold in EXAMPLES]
    nlp.to_disk(tmp_path)
    other = make_nlp(weights, **parts)
    before = initialize(other, seed=1).predict([other.make_doc("Ada wrote it")])[0]
    expected = nlp.get_pipe("tagger").model.get_ref("tok2vec").predict([nlp.make_doc("Ada wrote it")])[0]
    assert not numpy.allclose(before, expected)
    other.from_disk(tmp_path)
    after = other.get_pipe("tagger").model.get_ref("tok2vec").predict([other.make_doc("Ada wrote it")])[0]
    assert_allclose(after, expected, atol=1e-5)
    assert tags(spacy.load(tmp_path)) == tags(nlp)


def test_each_listener_learns_its_own_mix(weights: str) -> None:
    nlp = make_nlp(weights, elmo_in=ELMO, elmo_out=ELMO)
    learn(nlp, steps=10)
    tok2vec = nlp.get_pipe("tagger").model.get_ref("tok2vec")
    mixes = [
        next(node for node in tok2vec.get_ref(name).walk() if node.has_param("w")) for name in ("elmo_in", "elmo_out")
    ]
    for mix in mixes:
        assert mix.get_param("w").any()
        assert mix.get_param("gamma")[0] != 1.0
    assert not numpy.allclose(mixes[0].get_param("w"), mixes[1].get_param("w"))


def test_listeners_of_one_component_can_be_replaced(weights: str) -> None:
    nlp = make_nlp(weights, elmo_in=ELMO, elmo_out=ELMO)
    learn(nlp)
    expected = tags(nlp)
    model = "model.tok2vec"
    nlp.replace_listeners("elmo", "tagger", [f"{model}.elmo_in", f"{model}.elmo_out"])
    assert nlp.get_pipe("elmo").listeners == []
    nlp.remove_pipe("elmo")
    assert not any(isinstance(node, ElmoListener) for node in nlp.get_pipe("tagger").model.walk())
    assert tags(nlp) == expected


@pytest.mark.parametrize(
    "settings",
    [
        {"layers": "top"},
        {"layers": [0.5, 0.2, 0.3]},
        {"layer_norm": True},
        {"gamma": 2.0, "dropout": 0.25, "l2": 0.125},
    ],
)
def test_replaced_listener_is_saved_with_its_own_settings(
    weights: str, settings: dict[str, Any], tmp_path: Path
) -> None:
    nlp = make_nlp(weights, elmo_in={**ELMO, **settings}, elmo_out={**ELMO, "gamma": 3.0})
    learn(nlp, steps=3)
    doc = nlp.make_doc("Ada wrote it")
    (expected,) = nlp.get_pipe("tagger").model.get_ref("tok2vec").predict([doc])
    nlp.replace_listeners("elmo", "tagger", ["model.tok2vec.elmo_in", "model.tok2vec.elmo_out"])
    nlp.remove_pipe("elmo")
    nlp.to_disk(tmp_path)
    loaded = spacy.load(tmp_path)
    (vectors,) = loaded.get_pipe("tagger").model.get_ref("tok2vec").predict([doc])
    assert_allclose(vectors, expected, atol=1e-5)
    config = loaded.config["components"]["tagger"]["model"]["tok2vec"]
    own = {"layers": "mix", "gamma": 1.0, "layer_norm": False, "dropout": 0.0, "l2": 0.001}
    for name, changes in (("elmo_in", settings), ("elmo_out", {"gamma": 3.0})):
        assert config[name]["@architectures"] == "spacy_elmo.Elmo.v1"
        assert {key: config[name][key] for key in own} == {**own, **changes}


def make_shared(weights: str) -> Language:
    """Make a pipeline whose tagger listens to a tok2vec that listens to elmo."""
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"weights": weights, "gamma": 5.0})
    tok2vec = {"@architectures": "spacy_elmo.Tok2Vec.v1", "embed": EMBED, "encode": CNN, "elmo_in": ELMO}
    nlp.add_pipe("tok2vec", config={"model": tok2vec})
    listener = {"@architectures": "spacy.Tok2VecListener.v1", "width": 8, "upstream": "tok2vec"}
    nlp.add_pipe("tagger", config={"model": {"@architectures": "spacy.Tagger.v2", "tok2vec": listener}})
    return nlp


def test_in_a_tok2vec_that_others_listen_to(weights: str, tmp_path: Path) -> None:
    nlp = make_shared(weights)
    learn(nlp)
    assert tags(nlp) == [gold.get("tags", []) for _, gold in EXAMPLES]
    mix = next(node for node in nlp.get_pipe("tok2vec").model.get_ref("elmo_in").walk() if node.has_param("w"))
    assert mix.get_param("w").any()
    nlp.to_disk(tmp_path)
    assert tags(spacy.load(tmp_path)) == tags(nlp)


def test_listener_leaves_the_tensor_to_others(weights: str) -> None:
    nlp = make_shared(weights)
    examples = make_examples(nlp)  # the same docs for all components: what one of them writes, the next one reads
    nlp.initialize(lambda: examples)
    doc = examples[0].predicted
    assert doc._.elmo_layers.shape == (3, 3, WIDTH)
    assert doc.tensor.size == 0


def test_replaced_tok2vec_still_listens(weights: str, tmp_path: Path) -> None:
    nlp = make_shared(weights)
    learn(nlp)
    expected = tags(nlp)
    nlp.replace_listeners("tok2vec", "tagger", ["model.tok2vec"])
    nlp.remove_pipe("tok2vec")
    assert tags(nlp) == expected
    assert nlp.get_pipe("elmo").listening_components == ["tagger"]
    nlp.to_disk(tmp_path)
    assert tags(spacy.load(tmp_path)) == expected
    mix = next(node for node in nlp.get_pipe("tagger").model.walk() if node.name == "scalar_mix")
    before = mix.get_param("w").copy()
    optimizer = nlp.resume_training()
    optimizer.learn_rate = 0.02
    nlp.update(make_examples(nlp), sgd=optimizer)
    assert not numpy.array_equal(mix.get_param("w"), before)


def test_nothing_to_encode() -> None:
    encode = registry.resolve({"encode": CNN})["encode"]
    build = registry.architectures.get("spacy_elmo.Tok2Vec.v1")
    with pytest.raises(ValueError, match="nothing to encode: both embed and elmo_in are null.*Give at least one"):
        build(embed=None, encode=encode)


def test_encoder_without_a_width(weights: str) -> None:
    with pytest.raises(ValueError, match="does not say how wide its input is.*depth of 1 or more"):
        make_nlp(weights, elmo_in=ELMO, encode={**LSTM, "depth": 0})


@pytest.mark.parametrize("order", [{}, {"before": "elmo"}])
def test_no_upstream_before_it(weights: str, order: dict[str, str]) -> None:
    nlp = make_nlp(weights, elmo_in=ELMO)
    config = nlp.get_pipe_config("tagger")
    nlp.remove_pipe("tagger")
    if not order:
        nlp.remove_pipe("elmo")
    nlp.add_pipe("tagger", config={"model": config["model"]}, **order)
    with pytest.raises(ValueError, match=r"upstream = 'elmo', but no 'elmo' component of that name comes before it"):
        nlp.initialize(lambda: make_examples(nlp))


def change_config(config: Config, page: str, heading: str) -> Config:
    """Make the changes to a config that a page of the documentation shows."""
    text = (ROOT / page).read_text(encoding="utf8")
    (recipe,) = re.findall(rf"## {heading}\n(?:(?!\n## ).)*?```ini\n(.*?)```", text, flags=re.DOTALL)
    changes = ConfigParser()
    changes.read_string(recipe)
    for name, section in changes.items():
        block = config
        for part in name.split(".") if section else []:
            block = block.setdefault(part, {})
        block.update({key: json.loads(value) for key, value in section.items()})
    return config


def start(config: Config) -> tuple[Language, list[Example], Optimizer]:
    nlp = load_model_from_config(config, auto_fill=True)
    examples = [Example.from_dict(nlp.make_doc("Ada wrote it"), {"entities": [(0, 3, "PERSON")]})]
    return nlp, examples, nlp.initialize(lambda: examples)


@pytest.mark.parametrize("optimize", ["efficiency", "accuracy"])
def test_the_least_that_a_config_needs(optimize: str) -> None:
    config = init_config(lang="en", pipeline=["ner"], optimize=optimize, silent=True)
    config["paths"]["vectors"] = None
    config["components"]["ner"]["model"]["tok2vec"] = {}
    nlp, examples, optimizer = start(change_config(config, "README.md", "Train on it"))
    assert nlp.pipe_names == ["elmo", "ner"]
    assert nlp.get_pipe("elmo").listening_components == ["ner"]
    for _ in range(20):
        nlp.update(examples, sgd=optimizer)
    assert [(ent.text, ent.label_) for ent in nlp("Ada wrote it").ents] == [("Ada", "PERSON")]


@pytest.mark.parametrize("optimize", ["efficiency", "accuracy"])
def test_recipe_for_an_existing_config(optimize: str) -> None:
    config = init_config(lang="en", pipeline=["ner"], optimize=optimize, silent=True)
    config["paths"]["vectors"] = None
    config["components"]["tok2vec"]["model"]["embed"]["include_static_vectors"] = False
    nlp, examples, optimizer = start(change_config(config, "docs/tasks.md", "Add ELMo to an existing config"))
    assert nlp.get_pipe("elmo").listening_components == ["tok2vec"]
    assert nlp.get_pipe("tok2vec").listening_components == ["ner"]
    encode = nlp.get_pipe("tok2vec").model.get_ref("encode")
    before = encode.to_bytes()
    for _ in range(3):  # the output layer starts at zero, so that nothing below it learns in the first step
        nlp.update(examples, sgd=optimizer)
    assert encode.to_bytes() != before
    doc = nlp("Ada wrote it")
    assert doc.tensor.shape == (3, 96 if optimize == "efficiency" else 256)  # the tok2vec's
    assert_allclose(doc.vector, doc._.elmo_layers.mean(axis=(0, 1)), atol=1e-5)


def test_listener_of_a_tok2vec_cannot_be_replaced(weights: str) -> None:
    nlp = make_shared(weights)
    with pytest.raises(ValueError, match="cannot replace the listeners of 'tok2vec', which is itself a tok2vec"):
        nlp.replace_listeners("elmo", "tok2vec", ["model.elmo_in"])
    nlp.replace_listeners("tok2vec", "tagger", ["model.tok2vec"])  # what the message recommends
    assert nlp.get_pipe("elmo").listening_components == ["tok2vec"]
    nlp.remove_pipe("tok2vec")
    learn(nlp)
    assert tags(nlp) == [gold.get("tags", []) for _, gold in EXAMPLES]
