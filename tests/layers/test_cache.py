"""The cache of an encoder: what is computed again, and what is not."""

import copy
import gc
import os
import pickle
import tempfile
from pathlib import Path
from weakref import ref

import numpy
import pytest
import spacy
from numpy.testing import assert_allclose, assert_array_equal
from spacy.language import Language
from spacy.training import Example

from spacy_elmo.bilm.weights import save_weights
from spacy_elmo.layers.cache import EncoderCache
from spacy_elmo.layers.sentence_cache import SentenceCache

from ..helpers import random_bilm


def make_nlp(weights: str, **settings: object) -> Language:
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"weights": weights, **settings})
    listener = {"@architectures": "spacy_elmo.ElmoListener.v1", "dropout": 0.0}
    nlp.add_pipe("tagger", config={"model": {"@architectures": "spacy.Tagger.v2", "tok2vec": listener}})
    return nlp


def train(nlp: Language, steps: int) -> None:
    examples = [Example.from_dict(nlp.make_doc(text), {"tags": ["N", "V"]}) for text in ("Ada wrote", "Bees hum")]
    optimizer = nlp.initialize(lambda: examples)
    for _ in range(steps):
        nlp.update(examples, sgd=optimizer)


@pytest.mark.parametrize("settings", [{}, {"cache_mb": 0, "cache_dir": tempfile.gettempdir()}])
def test_training_learns_the_same_with_and_without(weights: str, settings: dict[str, object]) -> None:
    nlp, other = make_nlp(weights, **settings), make_nlp(weights, cache_mb=0)
    for each in (nlp, other):
        spacy.util.fix_random_seed(0)
        train(each, 4)
    for text in ("Ada wrote", "Ada hum bees wrote"):
        assert_allclose(nlp(text)._.elmo_layers, other(text)._.elmo_layers, atol=1e-6)
    for node, other_node in zip(
        nlp.get_pipe("tagger").model.walk(), other.get_pipe("tagger").model.walk(), strict=True
    ):
        for name in node.param_names:
            assert_allclose(node.get_param(name), other_node.get_param(name), atol=1e-5)


def cache_of(nlp: Language) -> EncoderCache | None:
    cache: EncoderCache | None = nlp.get_pipe("elmo").encoder.shims[0].cache
    return cache


def sentences_of(nlp: Language) -> SentenceCache | None:
    cache = cache_of(nlp)
    return None if cache is None else cache.sentences


@pytest.mark.parametrize(("settings", "caches"), [({}, True), ({"frozen": False}, False), ({"cache_mb": 0}, False)])
def test_only_training_on_a_frozen_bilm_caches_sentences(
    weights: str, settings: dict[str, object], caches: bool
) -> None:
    nlp = make_nlp(weights, **settings)
    list(nlp.pipe(["Nothing is trained", "so nothing is cached"], disable=["tagger"]))
    assert sentences_of(nlp) is None
    train(nlp, 1)
    assert (sentences_of(nlp) is not None) == caches


def test_copies_and_pickles_start_with_an_empty_cache(weights: str) -> None:
    nlp = make_nlp(weights)
    train(nlp, 1)
    cache = cache_of(nlp)
    assert cache is not None
    assert cache.sentences
    for other in (copy.deepcopy(cache), pickle.loads(pickle.dumps(cache))):
        assert other is not cache
        assert other.sentences is None
        assert other._limits == cache._limits
    model = nlp.get_pipe("elmo").model.copy()
    assert model.layers[0].shims[0].cache.sentences is None


def test_another_bilm_does_not_get_the_vectors_of_the_first(weights: str, tmp_path: Path) -> None:
    save_weights(random_bilm(2), tmp_path / "other")
    nlp, other = make_nlp(weights), make_nlp(str(tmp_path / "other"))
    train(nlp, 1)
    elmo, other_elmo = nlp.get_pipe("elmo"), other.get_pipe("elmo")
    assert not numpy.allclose(elmo(nlp.make_doc("Ada wrote")).tensor, other_elmo(nlp.make_doc("Ada wrote")).tensor)
    elmo.from_bytes(other_elmo.to_bytes())
    assert sentences_of(nlp) is None
    assert_allclose(elmo(nlp.make_doc("Ada wrote")).tensor, other_elmo(nlp.make_doc("Ada wrote")).tensor, atol=1e-6)


def test_forked_process_starts_with_an_empty_cache(weights: str, monkeypatch: pytest.MonkeyPatch) -> None:
    nlp = make_nlp(weights)
    train(nlp, 1)
    cache = cache_of(nlp)
    assert cache is not None
    cache.words._lock.acquire()  # as a thread that the fork has not copied may have done
    process = os.getpid()
    monkeypatch.setattr("os.getpid", lambda: process + 1)
    assert nlp("Ada wrote").tensor.any()
    assert cache.sentences is None


@pytest.mark.parametrize("settings", [{}, {"cache_mb": 0, "cache_dir": tempfile.gettempdir()}])
def test_use_after_training_caches_nothing(weights: str, settings: dict[str, object]) -> None:
    nlp = make_nlp(weights, **settings)
    train(nlp, 2)
    assert len(sentences_of(nlp) or ()) == 2
    for _ in range(3):
        list(nlp.pipe(["Ada wrote", "Something else", "And more of it"]))
    assert len(sentences_of(nlp) or ()) == 2


@pytest.mark.parametrize("kwargs", [{}, {"annotates": ["elmo"]}])
@pytest.mark.parametrize("exclude", [[], ["elmo"]])
def test_training_caches_what_it_reads_and_what_it_is_evaluated_on(
    weights: str, exclude: list[str], kwargs: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    nlp = make_nlp(weights)
    train(nlp, 0)
    dev = [Example.from_dict(nlp.make_doc("Cats nap"), {"tags": ["N", "V"]})]

    def epoch() -> None:
        for text in ("Ada wrote", "Bees hum"):
            nlp.update([Example.from_dict(nlp.make_doc(text), {"tags": ["N", "V"]})], exclude=exclude, **kwargs)
        nlp.evaluate([Example(nlp.make_doc("Cats nap"), example.reference) for example in dev])

    for _ in range(3):
        epoch()
    assert len(sentences_of(nlp) or ()) == 3
    monkeypatch.setattr(nlp.get_pipe("elmo").load(), "forward", None)  # not needed any more
    epoch()


def test_caches_of_earlier_trainings_are_gone(weights: str) -> None:
    gc.collect()
    gc.disable()  # Python itself may take its time: it does not know how large they are
    caches: list[ref[SentenceCache]] = []
    try:
        for _ in range(3):
            nlp = make_nlp(weights)
            train(nlp, 1)
            caches.append(ref(sentences_of(nlp)))
            assert [cache() is not None for cache in caches] == [False] * (len(caches) - 1) + [True]
    finally:
        gc.enable()


def test_cache_ends_with_its_pipeline(weights: str) -> None:
    nlp = make_nlp(weights)
    train(nlp, 1)
    cache = ref(sentences_of(nlp))
    del nlp
    gc.collect()
    assert cache() is None


def test_changing_a_docs_layers_does_not_change_the_cache(weights: str) -> None:
    nlp = make_nlp(weights)
    train(nlp, 1)
    expected = nlp("Ada wrote")._.elmo_layers.copy()
    nlp("Ada wrote")._.elmo_layers[:] = 0.0
    assert expected.any()
    assert_array_equal(nlp("Ada wrote")._.elmo_layers, expected)


def test_negative_size_is_refused(weights: str) -> None:
    with pytest.raises(ValueError, match="cache_mb must be 0 or more, got -1"):
        make_nlp(weights, cache_mb=-1)
