"""The component: what lands on a Doc, and that it is a pure function of the sentence."""

import json
import multiprocessing
import pickle
import re
import shutil
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy
import pytest
import spacy
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from spacy.language import Language
from spacy.tokens import Doc

from spacy_elmo.bilm.characters import Mark
from spacy_elmo.bilm.embed import embed_sentences
from spacy_elmo.bilm.initial_state import find_initial_state
from spacy_elmo.bilm.weights import save_weights
from spacy_elmo.layers.encoder import get_bilm

from .helpers import make_elmo_nlp, random_bilm

TEXT = "They play a play on Broadway ."
ODD_WORDS = [" ", "\n\n", "x" * 10_000, "🙂", "👩‍👩‍👧", "日本語", "naïve", "<S>", "</S>", "e\u0301", "\u200b", "a"]


@pytest.fixture(scope="module")
def other_weights(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("weights") / "b"
    save_weights(random_bilm(2), path)
    return str(path)


@pytest.fixture(scope="module")
def nlp(weights: str) -> Language:
    return make_elmo_nlp(weights)


@pytest.fixture(scope="module")
def own_nlp(weights: str) -> Language:
    """For the test that changes its settings."""
    return make_elmo_nlp(weights)


def test_elmo_is_the_mean_of_the_bilm_s_layers(nlp: Language) -> None:
    doc = nlp(TEXT)
    (layers,) = embed_sentences(random_bilm(1), [TEXT.split()], max_batch_items=100)
    assert doc.tensor.shape == (7, 12)
    assert doc.tensor.dtype == doc._.elmo_layers.dtype == "float32"
    assert isinstance(doc.tensor, numpy.ndarray)
    assert_allclose(doc._.elmo_layers, layers.detach().numpy(), atol=1e-6)
    assert_allclose(doc.tensor, layers.detach().numpy().mean(axis=0), atol=1e-6)
    assert_allclose(doc.vector, doc.tensor.mean(axis=0), atol=1e-6)
    assert_array_equal(doc[1].vector, doc.tensor[1])


@pytest.mark.parametrize(
    ("config", "weights_of_layers"),
    [
        ({"layers": "top"}, [0, 0, 1]),
        ({"layers": "mean"}, [1 / 3, 1 / 3, 1 / 3]),
        ({"layers": 1}, [0, 1, 0]),
        ({"layers": [0.2, 0.3, 0.5], "gamma": 2.0}, [0.4, 0.6, 1.0]),
        ({"gamma": 3.0}, [1, 1, 1]),
    ],
)
def test_layers_setting(weights: str, config: dict[str, Any], weights_of_layers: list[float]) -> None:
    doc = make_elmo_nlp(weights, **config)(TEXT)
    assert_allclose(doc.tensor, numpy.tensordot(weights_of_layers, doc._.elmo_layers, axes=1), atol=1e-6)


def test_layers_side_by_side(weights: str) -> None:
    doc = make_elmo_nlp(weights, layers="concat", gamma=2.0)(TEXT)
    assert_array_equal(doc.tensor, 2.0 * numpy.concatenate(list(doc._.elmo_layers), axis=1))


def test_layer_norm_setting(weights: str) -> None:
    nlp = make_elmo_nlp(weights, layer_norm=True, layers="top")
    alone = nlp(TEXT).tensor
    assert_allclose(alone.mean(axis=-1), 0, atol=1e-6)
    in_company = list(nlp.pipe(["A completely different neighbour .", TEXT]))[1].tensor
    assert_allclose(in_company, alone, atol=1e-5)


def test_keep_layers_false_keeps_none(weights: str, nlp: Language) -> None:
    doc = make_elmo_nlp(weights, keep_layers=False)(TEXT)
    assert doc._.elmo_layers is None
    assert_array_equal(doc.tensor, nlp(TEXT).tensor)


@pytest.mark.parametrize("words", [[], ["a"], [" "], [" ", "\n"], ["x" * 60], ODD_WORDS, *([w] for w in ODD_WORDS)])
def test_odd_docs(nlp: Language, words: list[str]) -> None:
    elmo = nlp.get_pipe("elmo")
    doc = elmo(Doc(nlp.vocab, words=words))
    assert doc.tensor.shape == (len(words), 12)
    assert doc._.elmo_layers.shape == (3, len(words), 12)
    spaces = [word.isspace() for word in words]
    assert not doc.tensor[spaces].any()
    real_words = [word for word in words if not word.isspace()]
    expected = embed_sentences(random_bilm(1), [real_words], max_batch_items=100)[0].detach().numpy()
    assert_allclose(doc._.elmo_layers[:, numpy.logical_not(spaces)], expected, atol=1e-5)


def test_spaces_do_not_disturb_their_neighbours(nlp: Language) -> None:
    one, two = nlp("Ada wrote it ."), nlp("Ada  wrote \n\n it .")
    assert_allclose([token.vector for token in two if not token.is_space], one.tensor, atol=1e-5)


def test_a_literal_mark_is_a_word_of_three_letters(nlp: Language) -> None:
    elmo = nlp.get_pipe("elmo")
    literal = elmo(Doc(nlp.vocab, words=["a", "<S>"]))._.elmo_layers[0, 1]
    bilm = elmo.load()
    mark, word = bilm.encode_words([Mark.BEGIN_SENTENCE, "<S>"]).detach().numpy()
    assert_allclose(literal[: len(word)], word, atol=1e-6)
    assert not numpy.allclose(mark, word, atol=1e-4)


def test_sentences_are_independent_where_set(nlp: Language) -> None:
    elmo = nlp.get_pipe("elmo")
    doc = elmo(Doc(nlp.vocab, words=["a", "b", "c", "d"], sent_starts=[True, False, True, False]))
    assert_allclose(doc.tensor[:2], elmo(Doc(nlp.vocab, words=["a", "b"])).tensor, atol=1e-5)
    assert_allclose(doc.tensor[2:], elmo(Doc(nlp.vocab, words=["c", "d"])).tensor, atol=1e-5)
    whole = elmo(Doc(nlp.vocab, words=["a", "b", "c", "d"]))
    assert not numpy.allclose(whole.tensor, doc.tensor, atol=1e-4)


def test_a_cut_is_hardly_felt(weights: str) -> None:
    words = [f"word{i % 17}" for i in range(150)]
    whole = make_elmo_nlp(weights, window=1000)
    expected = whole.get_pipe("elmo")(Doc(whole.vocab, words=words)).tensor
    cut = make_elmo_nlp(weights, window=100, overlap=32)
    error = numpy.abs(cut.get_pipe("elmo")(Doc(cut.vocab, words=words)).tensor - expected).max()
    no_context = make_elmo_nlp(weights, window=36, overlap=0)
    worse = numpy.abs(no_context.get_pipe("elmo")(Doc(no_context.vocab, words=words)).tensor - expected).max()
    assert error < 1e-4 < worse


word = st.one_of(st.sampled_from(ODD_WORDS), st.text(min_size=1, max_size=12).filter(lambda w: _encodable(w)))
docs_of_words = st.lists(st.lists(word, max_size=12), min_size=1, max_size=8)


def _encodable(text: str) -> bool:
    return not any(0xD800 <= ord(character) < 0xE000 for character in text)


@settings(deadline=None, max_examples=100)
@given(docs=docs_of_words, order=st.randoms(use_true_random=False), max_batch_items=st.integers(1, 60))
def test_vectors_do_not_depend_on_company_order_or_calls_before(
    own_nlp: Language, docs: list[list[str]], order: Any, max_batch_items: int
) -> None:
    nlp, elmo = own_nlp, own_nlp.get_pipe("elmo")
    elmo.encoder.attrs["settings"] = replace(elmo.encoder.attrs["settings"], max_batch_items=max_batch_items)
    alone = [elmo(Doc(nlp.vocab, words=words))._.elmo_layers for words in docs]
    indices = list(range(len(docs)))
    order.shuffle(indices)
    batched = list(elmo.pipe([Doc(nlp.vocab, words=docs[i]) for i in indices], batch_size=3))
    for i, doc in zip(indices, batched, strict=True):
        assert_allclose(doc._.elmo_layers, alone[i], atol=1e-5)
    again = [elmo(Doc(nlp.vocab, words=words))._.elmo_layers for words in docs]
    for before, after in zip(alone, again, strict=True):
        assert_allclose(after, before, atol=1e-5)


@pytest.mark.parametrize("position", [0, 1, 2])
def test_empty_doc_at_every_position(nlp: Language, position: int) -> None:
    texts = ["One .", "Two words ."]
    texts.insert(position, "")
    docs = list(nlp.pipe(texts))
    assert [len(doc.tensor) for doc in docs] == [len(doc) for doc in docs]
    assert docs[position].tensor.shape == (0, 12)


def test_pipe_bounds_what_it_reads_ahead(weights: str) -> None:
    nlp = make_elmo_nlp(weights, max_batch_items=10)
    n_read = 0

    def stream() -> Any:
        nonlocal n_read
        for _ in range(100):
            n_read += 1
            yield Doc(nlp.vocab, words=["word"] * 20)

    next(nlp.get_pipe("elmo").pipe(stream(), batch_size=100))
    assert n_read == 2  # two docs of 20 tokens fill 4 batches of 10


def test_roundtrip_to_disk_needs_nothing_else(weights: str, other_weights: str, nlp: Language, tmp_path: Path) -> None:
    before = nlp(TEXT).tensor
    assert not numpy.allclose(make_elmo_nlp(other_weights)(TEXT).tensor, before, atol=1e-3)
    moved = tmp_path / "weights"
    shutil.copytree(weights, moved)
    make_elmo_nlp(str(moved)).to_disk(tmp_path / "pipe")  # not even used before
    shutil.rmtree(moved)
    assert_allclose(spacy.load(tmp_path / "pipe")(TEXT).tensor, before, atol=1e-6)


def test_roundtrip_to_bytes_from_other_weights(weights: str, other_weights: str, nlp: Language) -> None:
    other = make_elmo_nlp(other_weights)
    assert not numpy.allclose(other(TEXT).tensor, nlp(TEXT).tensor, atol=1e-3)
    other.from_bytes(nlp.to_bytes())
    assert_allclose(other(TEXT).tensor, nlp(TEXT).tensor, atol=1e-6)


def test_weights_of_another_size_can_be_deserialized(nlp: Language, tmp_path: Path) -> None:
    save_weights(random_bilm(3, projection=5, depth=1), tmp_path / "narrow")
    fresh = make_elmo_nlp(str(tmp_path / "narrow"))
    assert_allclose(fresh.from_bytes(nlp.to_bytes())(TEXT).tensor, nlp(TEXT).tensor, atol=1e-6)


def test_other_sizes_into_a_component_that_has_run(nlp: Language, tmp_path: Path) -> None:
    save_weights(random_bilm(3, projection=5, depth=1), tmp_path / "narrow")
    used = make_elmo_nlp(str(tmp_path / "narrow"))
    assert used(TEXT).tensor.shape == (7, 10)
    used.get_pipe("elmo").from_bytes(nlp.get_pipe("elmo").to_bytes())
    assert_allclose(used(TEXT).tensor, nlp(TEXT).tensor, atol=1e-6)


def test_loaded_pipeline_goes_by_its_config(weights: str, nlp: Language, tmp_path: Path) -> None:
    nlp.to_disk(tmp_path / "pipe")
    changes = {"frozen": False, "max_batch_items": 7, "initial_state": "zero", "window": 50, "overlap": 5}
    loaded = spacy.load(tmp_path / "pipe", config={"components": {"elmo": changes}})
    settings = loaded.get_pipe("elmo").encoder.attrs["settings"]
    assert {name: getattr(settings, name) for name in changes} == changes
    assert all(parameter.requires_grad for parameter in loaded.get_pipe("elmo").load().parameters())
    assert weights.encode() not in (tmp_path / "pipe" / "elmo" / "model").read_bytes()


def test_first_use_in_inference_mode(weights: str, nlp: Language) -> None:
    fresh = make_elmo_nlp(weights)
    with torch.inference_mode():
        assert_allclose(fresh(TEXT).tensor, nlp(TEXT).tensor, atol=1e-6)
    assert_allclose(fresh("Other words").tensor, nlp("Other words").tensor, atol=1e-6)


def test_model_that_is_no_elmo() -> None:
    with pytest.raises(ValueError, match="must be built by spacy_elmo.Elmo.v1"):
        spacy.blank("en").add_pipe("elmo", config={"model": {"@architectures": "spacy.HashEmbedCNN.v2", **HASH_EMBED}})


HASH_EMBED: dict[str, Any] = {"width": 8, "depth": 1, "embed_size": 10, "window_size": 1, "maxout_pieces": 2}
HASH_EMBED |= {"subword_features": False, "pretrained_vectors": None}


def test_pickled_component(nlp: Language) -> None:
    elmo = pickle.loads(pickle.dumps(nlp.get_pipe("elmo")))
    assert_allclose(elmo(nlp.make_doc(TEXT)).tensor, nlp(TEXT).tensor, atol=1e-6)


@pytest.mark.parametrize("precision", ["float32", "int8"])
@pytest.mark.parametrize("method", ["fork", pytest.param("spawn", marks=pytest.mark.slow)])
def test_several_processes(weights: str, method: str, precision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    nlp = make_elmo_nlp(weights, precision=precision)
    expected = nlp(TEXT)  # torch has run in this process: forked ones must not wait for its threads
    context = multiprocessing.get_context(method)
    monkeypatch.setattr("spacy.language.mp", context)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python warns of forks beside threads
        docs = list(nlp.pipe([TEXT, "", TEXT], n_process=2, batch_size=1))
    for doc in (docs[0], docs[2]):
        assert_allclose(doc.tensor, expected.tensor, atol=1e-5)
        assert_allclose(doc._.elmo_layers, expected._.elmo_layers, atol=1e-5)


def test_initial_state_setting(weights: str, nlp: Language, tmp_path: Path) -> None:
    bilm = random_bilm(1)
    find_initial_state(bilm, [TEXT.split()] * 20)
    save_weights(bilm, tmp_path / "warm")
    warm = str(tmp_path / "warm")
    assert not numpy.allclose(make_elmo_nlp(warm)(TEXT).tensor, nlp(TEXT).tensor, atol=1e-3)
    assert_allclose(make_elmo_nlp(warm, initial_state="zero")(TEXT).tensor, nlp(TEXT).tensor, atol=1e-6)


def test_default_weights_are_read_when_they_are_first_used() -> None:
    nlp = spacy.blank("en")
    elmo = nlp.add_pipe("elmo")
    assert elmo.encoder.shims[0]._model is None
    doc = nlp(TEXT)
    assert doc.tensor.shape == (7, 384)
    other = spacy.blank("en")
    other.add_pipe("elmo", config={"weights": "en_elmo_sm"})
    assert_allclose(other(TEXT).tensor, doc.tensor, atol=1e-6)


def test_default_weights_tell_senses_apart() -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo")
    verb, other_verb, noun, other_noun = (
        next(token for token in nlp(text) if token.text == "play")
        for text in (
            "The children play in the garden every afternoon .",
            "They play chess with their neighbours on Sundays .",
            "She wrote a play about two rival kings .",
            "The theatre is rehearsing a new play this month .",
        )
    )
    across = max(a.similarity(b) for a in (verb, other_verb) for b in (noun, other_noun))
    assert verb.similarity(other_verb) > across
    assert noun.similarity(other_noun) > across


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            {"weights": "no/such/directory"},
            "no weights directory at no/such/directory.*: en_elmo_sm.*pretrain.*convert",
        ),
        ({"weights": "en_elmo_small"}, "no weights directory at en_elmo_small .* Did you mean 'en_elmo_sm'"),
        ({"weights": __file__}, "is a file"),
        ({"weights": ""}, "weights must be a directory, .* got an empty text"),
        ({"model": {"@architectures": "spacy_elmo.Elmo.v1", "weights": "nowhere"}}, "no weights directory at nowhere"),
        ({"layers": 7}, "index from 0 .* got 7"),
        ({"layers": "maen"}, "one of 'mix', 'mean', 'top', 'concat', .* got 'maen'"),
        ({"layers": [0.5, 0.5]}, "2 weights, but this biLM has 3 layers"),
        ({"max_batch_items": 0}, "max_batch_items must be 1 or more, got 0"),
        ({"window": 10, "overlap": 5}, "window = 10 and overlap = 5"),
        ({"overlap": -1}, "overlap must be 0 or more, got -1"),
        ({"initial_state": "warm"}, "initial_state"),
        ({"wieghts": "x"}, "wieghts"),
    ],
)
def test_mistakes_are_errors_at_add_pipe(weights: str, config: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_elmo_nlp(**{"weights": weights, **config})


def test_weights_of_a_saved_pipeline_need_not_exist(weights: str, nlp: Language, tmp_path: Path) -> None:
    shutil.copytree(weights, tmp_path / "moved")
    moved = make_elmo_nlp(str(tmp_path / "moved"))
    expected, data = moved(TEXT).tensor, moved.to_bytes()
    moved.to_disk(tmp_path / "pipe")
    shutil.rmtree(tmp_path / "moved")
    assert_allclose(spacy.load(tmp_path / "pipe")(TEXT).tensor, expected, atol=1e-6)
    fresh = spacy.blank("en").from_config(moved.config)
    with pytest.raises(ValueError, match="no weights directory at"):
        fresh(TEXT)
    assert_allclose(fresh.from_bytes(data)(TEXT).tensor, expected, atol=1e-6)


@pytest.mark.parametrize("name", ["null", '"en_elmo_sm"'])
def test_a_saved_pipeline_keeps_its_weights_when_the_bundled_model_changes(
    name: str, nlp: Language, tmp_path: Path
) -> None:
    """A pipeline that was trained on the first edition of en_elmo_sm has other weights than those of that name today."""
    nlp.to_disk(tmp_path)
    path = tmp_path / "config.cfg"
    path.write_text(re.sub(r"^weights = .*$", f"weights = {name}", path.read_text(encoding="utf8"), flags=re.M))
    loaded = spacy.load(tmp_path)
    assert loaded.config["components"]["elmo"]["weights"] == json.loads(name)
    assert_allclose(loaded(TEXT).tensor, nlp(TEXT).tensor, atol=1e-6)


def test_frozen_setting(weights: str) -> None:
    for frozen in (True, False):
        nlp = make_elmo_nlp(weights, frozen=frozen)
        parameters = list(get_bilm(nlp.get_pipe("elmo").encoder).parameters())
        assert all(parameter.requires_grad is not frozen for parameter in parameters)
        nlp.from_bytes(nlp.to_bytes())
        parameters = list(get_bilm(nlp.get_pipe("elmo").encoder).parameters())
        assert all(parameter.requires_grad is not frozen for parameter in parameters)


def test_select_pipes(nlp: Language) -> None:
    doc = nlp(TEXT)
    with nlp.select_pipes(disable=["elmo"]):
        assert nlp(TEXT).tensor.size == 0
    assert_allclose(nlp(TEXT).tensor, doc.tensor, atol=1e-6)
