"""The cache of word types always returns the vectors that the model computes."""

import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from numpy.typing import NDArray
from torch import Tensor

from spacy_elmo.bilm.characters import Word
from spacy_elmo.bilm.embed import embed_sentences
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.bilm.word_cache import WordCache

from ..helpers import random_bilm

sentences = st.lists(st.lists(st.sampled_from("abcdefghij") | st.text(max_size=6), max_size=6), min_size=1, max_size=6)


@given(batch=sentences, capacity=st.integers(0, 8))
def test_the_capacity_does_not_matter(bilm: BiLM, batch: list[list[str]], capacity: int) -> None:
    cache = WordCache(capacity)
    with torch.no_grad():
        results = embed_sentences(bilm, batch, max_batch_items=8, encode_words=partial(cache.encode_words, bilm))
        again = embed_sentences(bilm, batch, max_batch_items=8, encode_words=partial(cache.encode_words, bilm))
        expected = embed_sentences(bilm, batch, max_batch_items=8)
    for one, other, layers in zip(results, again, expected, strict=True):
        assert_allclose(one.numpy(), layers.numpy(), atol=1e-5)
        assert_allclose(other.numpy(), layers.numpy(), atol=1e-5)


def test_it_reads_each_spelling_once_while_it_has_room(monkeypatch: pytest.MonkeyPatch) -> None:
    bilm = random_bilm()
    read: list[list[Word]] = []
    encode_words = bilm.encode_words

    def record(words: Sequence[Word]) -> Tensor:
        read.append(list(words))
        return encode_words(words)

    monkeypatch.setattr(bilm, "encode_words", record)
    cache = WordCache(3)
    for asked, expected in [
        (["a", "b"], [["a", "b"]]),
        (["b", "a"], []),
        (["b", "c"], [["c"]]),
        (["c", "a", "b"], []),
        (["a", "d"], [["a", "d"]]),  # full, so it is emptied
        (["d", "a"], []),
        (["a", "b", "c", "d"], [["a", "b", "c", "d"]]),  # more than it can ever hold
    ]:
        read.clear()
        with torch.no_grad():
            vectors = cache.encode_words(bilm, asked)
            assert read == expected
            assert_allclose(vectors.numpy(), encode_words(asked).numpy(), atol=1e-6)


def test_it_does_not_share_its_memory(bilm: BiLM) -> None:
    cache = WordCache(3)
    with torch.no_grad():
        expected = bilm.encode_words(["a", "b"])
        cache.encode_words(bilm, ["a", "b"]).zero_()
        assert_allclose(cache.encode_words(bilm, ["a", "b"]).numpy(), expected.numpy(), atol=1e-6)


def test_it_serves_many_threads(bilm: BiLM) -> None:
    texts = [[chr(ord("a") + (i * step) % 26) for i in range(5)] for step in (1, 3, 5, 7, 9, 11)] * 20
    with torch.no_grad():
        expected = [bilm.encode_words(text).numpy() for text in texts]
    cache = WordCache(12)

    @torch.no_grad()
    def encode(text: list[str]) -> NDArray[Any]:
        return cache.encode_words(bilm, text).numpy()

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            results = list(pool.map(encode, texts))
    finally:
        sys.setswitchinterval(interval)
    for vectors, values in zip(results, expected, strict=True):
        assert_allclose(vectors, values, atol=1e-6)
