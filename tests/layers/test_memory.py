"""What is remembered of a frozen biLM from epoch to epoch."""

import gc
import os
import sys
import tempfile
import warnings
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest
import spacy
import torch
from numpy.testing import assert_allclose, assert_array_equal
from spacy.language import Language
from spacy.training import Example
from torch import Tensor

from spacy_elmo.bilm.weights import save_weights
from spacy_elmo.layers import encoder
from spacy_elmo.layers.memory import Sentence, SentenceMemory

from ..helpers import random_bilm

A, B, C = ("a",), ("b", "b"), ("c", "c", "c")
BYTES_PER_TOKEN = 3 * 5 * 4


class Counter:
    """Computes layers that are easily told apart, and counts for which sentences."""

    def __init__(self) -> None:
        self.asked: list[Sentence] = []

    def __call__(self, sentences: Sequence[Sentence]) -> list[Tensor]:
        self.asked += sentences
        # Views of one batch, as the biLM gives them, and not contiguous.
        batch = torch.arange(3 * 7 * 5, dtype=torch.float32).reshape(3, 7, 5)
        return [batch[:, : len(sentence)] + ord(sentence[0]) for sentence in sentences]

    def expected(self, sentence: Sentence) -> Tensor:
        return Counter()([sentence])[0]


def embed(memory: SentenceMemory, compute: Counter, *sentences: Sentence, is_train: bool = True) -> list[Sentence]:
    """Embed sentences, check their values, and give those that were computed."""
    compute.asked = []
    for sentence, layers_LTW in zip(sentences, memory.recall(sentences, compute, is_train=is_train), strict=True):
        assert torch.equal(layers_LTW, compute.expected(sentence))
    return compute.asked


@pytest.mark.parametrize("max_bytes", [10_000, 2 * BYTES_PER_TOKEN, 0])
def test_every_sentence_is_computed_once(max_bytes: int, tmp_path: Path) -> None:
    memory, compute = SentenceMemory(max_bytes, str(tmp_path)), Counter()
    assert embed(memory, compute, A, B, A) == [A, B]
    assert embed(memory, compute, C, B, A) == [C]
    assert embed(memory, compute, A, A, C, B) == []
    assert embed(memory, compute) == []


def test_predictions_are_remembered_only_if_training_goes_on_between_them() -> None:
    memory, compute = SentenceMemory(10_000, None), Counter()
    predict = partial(embed, memory, compute, is_train=False)
    embed(memory, compute, A)
    assert [predict(A, B), predict(A, B)] == [[B], [B]]
    embed(memory, compute, A)
    assert [predict(B, C), predict(B, C)] == [[B, C], [C]]  # B comes again and again, as dev data do
    assert [predict(C), predict(C)] == [[C], [C]]  # and C after training


def test_list_of_predictions_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spacy_elmo.layers.memory.MOST_PREDICTED", 1)
    memory, compute = SentenceMemory(10_000, None), Counter()
    embed(memory, compute, B, C, is_train=False)
    assert len(memory._predicted) == 1
    embed(memory, compute, A)
    embed(memory, compute, B, C, is_train=False)
    assert embed(memory, compute, A, B, C, is_train=False) == [C]


def test_what_does_not_fit_is_computed_again_and_said_once() -> None:
    memory, compute = SentenceMemory(3 * BYTES_PER_TOKEN, None), Counter()
    assert embed(memory, compute, A, B) == [A, B]
    with pytest.warns(UserWarning, match="memory for the biLM's outputs is full.*Raise cache_mb.*or set its cache_dir"):
        embed(memory, compute, C)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert embed(memory, compute, A, B, C) == [C]


def test_memory_keeps_no_whole_batches() -> None:
    memory = SentenceMemory(BYTES_PER_TOKEN, None)
    memory.recall([A], lambda sentences: [torch.zeros(3, 1000, 5)[:, :1]], is_train=True)
    (kept,) = memory.recall([A], lambda sentences: [], is_train=True)
    assert kept.untyped_storage().nbytes() == BYTES_PER_TOKEN


def test_directory_that_is_not_there(tmp_path: Path) -> None:
    memory, compute = SentenceMemory(BYTES_PER_TOKEN, str(tmp_path / "nowhere")), Counter()
    with pytest.warns(
        UserWarning, match=r"Cannot keep the biLM's outputs in cache_dir = '.*nowhere'.*No such file.*goes on"
    ):
        assert embed(memory, compute, A, B, C) == [A, B, C]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert embed(memory, compute, A, B, C) == [B, C]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_full_disk_is_given_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory, compute = SentenceMemory(0, str(tmp_path)), Counter()
    embed(memory, compute, A)
    file = memory._file
    assert file is not None
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, file.fileno())
    os.close(full)
    with pytest.warns(UserWarning, match="No space left on device"):
        assert embed(memory, compute, B) == [B]
    assert file.closed
    assert embed(memory, compute, A, B) == [A, B]


def test_file_that_was_cut_short_is_not_believed(tmp_path: Path) -> None:
    memory, compute = SentenceMemory(0, str(tmp_path)), Counter()
    embed(memory, compute, A, B)
    assert memory._file is not None
    memory._file.truncate(4 * BYTES_PER_TOKEN // 3)
    with pytest.warns(UserWarning, match="the file ends too early"):
        assert embed(memory, compute, A, B) == [B]


def test_file_has_no_name(tmp_path: Path) -> None:
    embed(SentenceMemory(0, str(tmp_path)), Counter(), A)
    assert list(tmp_path.iterdir()) == [] or sys.platform == "win32"


@pytest.fixture
def weights(tmp_path: Path) -> str:
    save_weights(random_bilm(1), tmp_path / "weights")
    return str(tmp_path / "weights")


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


@pytest.mark.parametrize(("settings", "remembers"), [({}, True), ({"frozen": False}, False), ({"cache_mb": 0}, False)])
def test_only_training_on_a_frozen_bilm_remembers(weights: str, settings: dict[str, object], remembers: bool) -> None:
    nlp = make_nlp(weights, **settings)
    list(nlp.pipe(["Nothing is trained", "so nothing is remembered"], disable=["tagger"]))
    bilm = nlp.get_pipe("elmo").load()
    assert bilm not in encoder._memories
    train(nlp, 1)
    assert (nlp.get_pipe("elmo").load() in encoder._memories) == remembers


def n_remembered(nlp: Language) -> int:
    memory = encoder._memories[nlp.get_pipe("elmo").load()]
    return len(memory._in_memory) + len(memory._in_file)


@pytest.mark.parametrize("settings", [{}, {"cache_mb": 0, "cache_dir": tempfile.gettempdir()}])
def test_use_after_training_remembers_nothing(weights: str, settings: dict[str, object]) -> None:
    nlp = make_nlp(weights, **settings)
    train(nlp, 2)
    assert n_remembered(nlp) == 2
    for _ in range(3):
        list(nlp.pipe(["Ada wrote", "Something else", "And more of it"]))
    assert n_remembered(nlp) == 2


@pytest.mark.parametrize("kwargs", [{}, {"annotates": ["elmo"]}])
@pytest.mark.parametrize("exclude", [[], ["elmo"]])
def test_training_remembers_what_it_reads_and_what_it_is_evaluated_on(
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
    assert n_remembered(nlp) == 3
    monkeypatch.setattr(nlp.get_pipe("elmo").load(), "forward", None)  # not needed any more
    epoch()


def test_memories_of_earlier_trainings_are_gone(weights: str) -> None:
    gc.collect()
    before = len(encoder._memories)
    gc.disable()  # Python itself may take its time: it does not know how large they are
    try:
        for _ in range(3):
            nlp = make_nlp(weights)
            train(nlp, 1)
            assert len(encoder._memories) == before + 1
    finally:
        gc.enable()


def test_memory_goes_with_its_bilm(weights: str) -> None:
    gc.collect()
    before = len(encoder._memories)
    nlp = make_nlp(weights)
    train(nlp, 1)
    assert len(encoder._memories) == before + 1
    del nlp
    gc.collect()
    assert len(encoder._memories) == before


def test_changing_a_docs_layers_does_not_change_what_is_remembered(weights: str) -> None:
    nlp = make_nlp(weights)
    train(nlp, 1)
    expected = nlp("Ada wrote")._.elmo_layers.copy()
    nlp("Ada wrote")._.elmo_layers[:] = 0.0
    assert expected.any()
    assert_array_equal(nlp("Ada wrote")._.elmo_layers, expected)


def test_negative_size_is_refused(weights: str) -> None:
    with pytest.raises(ValueError, match="cache_mb must be 0 or more, got -1"):
        make_nlp(weights, cache_mb=-1)
