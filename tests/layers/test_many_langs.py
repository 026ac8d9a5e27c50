"""Converted models of ELMoForManyLangs in pipelines: they are like any other weights."""

import shutil
from pathlib import Path
from typing import Any

import numpy
import pytest
import spacy
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from thinc.api import fix_random_seed

from spacy_elmo.bilm.weights import load_weights, save_weights
from spacy_elmo.formats import elmoformanylangs
from spacy_elmo.layers.encoder import get_bilm

from ..command_line import run
from ..embedding.corpora import embed, read_vectors
from ..listening import OWN, make_examples, make_nlp, update
from ..many_langs import make_model, run_sentence, write_model

HALVES: dict[str, dict[str, Any]] = {"both": {}, "characters": {"word_dim": 0}, "words": {"char_dim": 0}}
TEXT = "the house is Zauberhaft . the Straße , 你好 house ."

words = st.sampled_from(["the", "house", "Zauberhaft", "Zauberhaftigkeit", "你好", "qqq", "ein", " "])


def convert(directory: Path, seed: int, **changes: Any) -> str:
    save_weights(
        elmoformanylangs.read([write_model(directory / "theirs", make_model(seed, **changes))]), directory / "ours"
    )
    return str(directory / "ours")


@pytest.fixture(scope="module", params=HALVES)
def models(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Two weights directories of the same sizes."""
    return [convert(tmp_path_factory.mktemp("model"), seed, **HALVES[request.param]) for seed in (11, 12)]


def make_doc(nlp: Language, text: str = TEXT) -> Doc:
    return Doc(nlp.vocab, words=text.split(" "))


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_pipelines_survive_the_round_trip(models: list[str], tmp_path: Path, precision: str) -> None:
    weights = shutil.copytree(models[0], tmp_path / "weights")
    nlp = make_nlp(str(weights), precision=precision)
    expected = nlp(make_doc(nlp))._.elmo_layers
    nlp.to_disk(tmp_path / "pipeline")
    shutil.rmtree(weights)
    loaded = spacy.load(tmp_path / "pipeline")
    assert_array_equal(loaded(make_doc(loaded))._.elmo_layers, expected)
    assert loaded.get_pipe("elmo").load().config == load_weights(Path(models[0])).config
    other = make_nlp(models[1], precision=precision)
    assert not numpy.allclose(other(make_doc(other))._.elmo_layers, expected)
    other.from_bytes(nlp.to_bytes())
    assert_array_equal(other(make_doc(other))._.elmo_layers, expected)


@pytest.fixture(scope="module")
def windowed(tmp_path_factory: pytest.TempPathFactory) -> Language:
    """A pipeline that reads five words at once."""
    return make_nlp(convert(tmp_path_factory.mktemp("windows"), 13), window=5, overlap=1, max_batch_items=7)


@settings(max_examples=15)
@given(texts=st.lists(st.lists(words, max_size=12), min_size=1, max_size=5))
def test_batches_caches_and_windows_do_not_matter(windowed: Language, texts: list[list[str]]) -> None:
    nlp = windowed
    docs = [Doc(nlp.vocab, words=text) for text in texts]
    for doc in [*nlp.pipe(docs), nlp(docs[0])]:
        read = [i for i, token in enumerate(doc) if not token.is_space]
        assert_array_equal(numpy.delete(doc._.elmo_layers, read, axis=1), 0)
        if len(read) <= 5:
            expected = run_sentence(make_model(13), [doc[i].text for i in read])
            assert_allclose(doc._.elmo_layers[:, read], expected, rtol=0, atol=5e-6)
        else:
            first = run_sentence(make_model(13), [doc[i].text for i in read[:5]])  # four, and one of context
            assert_allclose(doc._.elmo_layers[:, read[:4]], first[:, :4], rtol=0, atol=5e-6)


@pytest.mark.slow
def test_listeners_learn_and_survive_the_round_trip(models: list[str], tmp_path: Path) -> None:
    fix_random_seed(0)
    nlp = make_nlp(models[0], OWN)
    gold = {"house the": "house", "the 你好": "你好"}  # words that all models know
    examples = [
        Example.from_dict(nlp.make_doc(text), {"entities": [(text.index(word), text.index(word) + len(word), "A")]})
        for text, word in gold.items()
    ]
    optimizer = nlp.initialize(lambda: examples)
    optimizer.learn_rate = 0.02
    for _ in range(150):
        nlp.update(examples, sgd=optimizer)
    nlp.to_disk(tmp_path / "pipeline")
    loaded = spacy.load(tmp_path / "pipeline")
    nlp.replace_listeners("elmo", "ner", ["model.tok2vec"])
    for pipeline in (loaded, nlp):
        assert {doc.text: str(*doc.ents) for doc in pipeline.pipe(gold)} == gold


def test_unfrozen_models_are_trained(models: list[str]) -> None:
    nlp = make_nlp(models[0], OWN, frozen=False)
    update(nlp, 2, make_examples(nlp))
    before = load_weights(Path(models[0])).state_dict()
    for name, after in get_bilm(nlp.get_pipe("elmo").encoder).state_dict().items():
        assert not numpy.array_equal(before[name].numpy(), after.detach().numpy()), name


def test_embed(models: list[str], tmp_path: Path) -> None:
    (tmp_path / "corpus.txt").write_text(f"{TEXT}\nthe house\n", encoding="utf8")
    found = []
    for i, weights in enumerate(models):
        embed(
            tmp_path / "corpus.txt", tmp_path / f"out{i}", weights=weights, unit="token", layers="all", tokenized=True
        )
        found.append(read_vectors(tmp_path / f"out{i}"))
        nlp = make_nlp(weights)
        docs = [nlp(make_doc(nlp, text)) for text in (TEXT, "the house")]
        expected = numpy.concatenate([numpy.concatenate(list(doc._.elmo_layers), axis=1) for doc in docs])
        assert_allclose(found[i], expected, rtol=0, atol=1e-6)
    assert not numpy.allclose(found[0], found[1])


def test_normal_form_is_stored_and_leaves_the_doc_alone(tmp_path: Path) -> None:
    weights = convert(tmp_path, 14)
    run("convert", weights, tmp_path / "nfkc", "--normalize", "NFKC")
    nlp = make_nlp(str(tmp_path / "nfkc"))
    doc = nlp(Doc(nlp.vocab, words=["ﬁnf", "Ｚauberhaft"]))
    assert doc.text == "ﬁnf Ｚauberhaft "
    expected = run_sentence(make_model(14), ["finf", "Zauberhaft"])
    assert_allclose(doc._.elmo_layers, expected, rtol=0, atol=5e-6)
    nlp.to_disk(tmp_path / "pipeline")
    loaded = spacy.load(tmp_path / "pipeline")
    again = loaded(Doc(loaded.vocab, words=["ﬁnf", "Ｚauberhaft"]))
    assert_allclose(again._.elmo_layers, expected, rtol=0, atol=5e-6)
