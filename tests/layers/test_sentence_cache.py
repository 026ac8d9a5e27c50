"""The layers of sentences, cached from epoch to epoch."""

import os
import sys
import warnings
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest
import torch
from torch import Tensor

from spacy_elmo.layers.sentence_cache import SentenceCache, Words

A, B, C = ("a",), ("b", "b"), ("c", "c", "c")
BYTES_PER_TOKEN = 3 * 5 * 4


class Counter:
    """Computes layers that are easily told apart, and counts for which sentences."""

    def __init__(self) -> None:
        self.asked: list[Words] = []

    def __call__(self, sentences: Sequence[Words]) -> list[Tensor]:
        self.asked += sentences
        # Views of one batch, as the biLM gives them, and not contiguous.
        batch = torch.arange(3 * 7 * 5, dtype=torch.float32).reshape(3, 7, 5)
        return [batch[:, : len(sentence)] + ord(sentence[0]) for sentence in sentences]

    def expected(self, sentence: Words) -> Tensor:
        return Counter()([sentence])[0]


def embed(cache: SentenceCache, compute: Counter, *sentences: Words, is_train: bool = True) -> list[Words]:
    """Embed sentences, check their values, and give those that were computed."""
    compute.asked = []
    if is_train:
        cache.begin_step()
    for sentence, layers_LTW in zip(sentences, cache.get_layers(sentences, compute, is_train=is_train), strict=True):
        assert torch.equal(layers_LTW, compute.expected(sentence))
    return compute.asked


@pytest.mark.parametrize("max_bytes", [10_000, 2 * BYTES_PER_TOKEN, 0])
def test_every_sentence_is_computed_once(max_bytes: int, tmp_path: Path) -> None:
    cache, compute = SentenceCache(max_bytes, str(tmp_path)), Counter()
    assert embed(cache, compute, A, B, A) == [A, B]
    assert embed(cache, compute, C, B, A) == [C]
    assert embed(cache, compute, A, A, C, B) == []
    assert embed(cache, compute) == []


def test_predictions_are_cached_only_if_there_is_a_training_step_between_them() -> None:
    cache, compute = SentenceCache(10_000, None), Counter()
    predict = partial(embed, cache, compute, is_train=False)
    embed(cache, compute, A)
    assert [predict(A, B), predict(A, B)] == [[B], [B]]
    embed(cache, compute, A)
    assert [predict(B, C), predict(B, C)] == [[B, C], [C]]  # B comes again and again, as dev data do
    assert [predict(C), predict(C)] == [[C], [C]]  # and C after training


def test_number_of_noted_predictions_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spacy_elmo.layers.sentence_cache.MAX_NOTED", 1)
    cache, compute = SentenceCache(10_000, None), Counter()
    embed(cache, compute, B, C, is_train=False)
    assert len(cache._predicted_at) == 1
    embed(cache, compute, A)
    embed(cache, compute, B, C, is_train=False)
    assert embed(cache, compute, A, B, C, is_train=False) == [C]


def test_what_does_not_fit_is_computed_again_and_said_once() -> None:
    cache, compute = SentenceCache(3 * BYTES_PER_TOKEN, None), Counter()
    assert embed(cache, compute, A, B) == [A, B]
    with pytest.warns(UserWarning, match="cache of the biLM's outputs is full.*Raise cache_mb.*or set its cache_dir"):
        embed(cache, compute, C)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert embed(cache, compute, A, B, C) == [C]


def test_cache_keeps_no_whole_batches() -> None:
    cache = SentenceCache(BYTES_PER_TOKEN, None)
    cache.get_layers([A], lambda sentences: [torch.zeros(3, 1000, 5)[:, :1]], is_train=True)
    (kept,) = cache.get_layers([A], lambda sentences: [], is_train=True)
    assert kept.untyped_storage().nbytes() == BYTES_PER_TOKEN


def test_missing_directory(tmp_path: Path) -> None:
    cache, compute = SentenceCache(BYTES_PER_TOKEN, str(tmp_path / "nowhere")), Counter()
    with pytest.warns(
        UserWarning,
        match=r"Cannot keep the biLM's outputs in cache_dir = '.*nowhere'.*No such file.*Training continues",
    ):
        assert embed(cache, compute, A, B, C) == [A, B, C]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert embed(cache, compute, A, B, C) == [B, C]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_full_disk_is_given_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache, compute = SentenceCache(0, str(tmp_path)), Counter()
    embed(cache, compute, A)
    file = cache._file
    assert file is not None
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, file.fileno())
    os.close(full)
    with pytest.warns(UserWarning, match="No space left on device"):
        assert embed(cache, compute, B) == [B]
    assert file.closed
    assert embed(cache, compute, A, B) == [A, B]


def test_truncated_file_is_detected(tmp_path: Path) -> None:
    cache, compute = SentenceCache(0, str(tmp_path)), Counter()
    embed(cache, compute, A, B)
    assert cache._file is not None
    cache._file.truncate(4 * BYTES_PER_TOKEN // 3)
    with pytest.warns(UserWarning, match="the file ends too early"):
        assert embed(cache, compute, A, B) == [B]


def test_file_has_no_name(tmp_path: Path) -> None:
    embed(SentenceCache(0, str(tmp_path)), Counter(), A)
    assert list(tmp_path.iterdir()) == [] or sys.platform == "win32"
