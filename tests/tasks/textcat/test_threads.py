"""One classifier in several threads, as in a service: it predicts what it would predict alone, and does not change."""

import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from numpy.testing import assert_allclose
from thinc.api import set_dropout_rate

from spacy_elmo.bilm.weights import save_weights
from spacy_elmo.tasks.textcat.layer import biattention
from spacy_elmo.tasks.textcat.network import BiattentiveNetwork, Sizes

from ...helpers import random_bilm
from .networks import SIZES, Array, random_network, random_vectors
from .pipelines import TEXTS, cats, make_nlp, network_of, update

N_THREADS = 8
N_ROUNDS = 40


@pytest.fixture(autouse=True)
def frequent_switches() -> Iterator[None]:
    """Let Python switch between threads as often as it can."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def state_of(network: BiattentiveNetwork) -> dict[str, bytes]:
    return {name: tensor.numpy().tobytes() for name, tensor in network.state_dict().items()}


@pytest.mark.parametrize("widths", [(4,), (4, 2)])
def test_eight_threads_do_not_change_the_network(widths: tuple[int, ...]) -> None:
    layer = biattention(Sizes(**SIZES), dropout=None)
    layer.initialize([random_vectors(1, width=width) for width in widths])
    layer.shims[0]._model = network = random_network(*widths)
    set_dropout_rate(layer, 0.5)  # as training leaves it
    batches = [[random_vectors(3, 1, 6, width=width, seed=seed) for width in widths] for seed in range(N_THREADS)]
    expected = [layer.predict(batch) for batch in batches]
    state, barrier = state_of(network), threading.Barrier(N_THREADS)

    def run(i: int) -> list[Array]:
        barrier.wait(timeout=60)
        return [layer.predict(batches[i]) for _ in range(N_ROUNDS)]

    with ThreadPoolExecutor(N_THREADS) as pool:
        results = list(pool.map(run, range(N_THREADS)))
    assert state_of(network) == state
    for found, values in zip(results, expected, strict=True):
        for vectors in found:
            assert_allclose(vectors, values, rtol=0, atol=1e-5)


def test_eight_threads_get_the_scores_that_one_gets(tmp_path: Path) -> None:
    save_weights(random_bilm(1), tmp_path / "weights")
    nlp = make_nlp(str(tmp_path / "weights"))
    update(nlp, 5, drop=0.3)
    texts = [f"{text} , number {i}" for i in range(3) for text in TEXTS]
    expected = dict(zip(texts, cats(nlp, texts), strict=True))
    labels: Any = nlp.get_pipe("textcat").labels
    state, barrier = state_of(network_of(nlp)), threading.Barrier(N_THREADS)

    def run(i: int) -> dict[str, list[float]]:
        barrier.wait(timeout=60)
        docs = [nlp(text) for text in [*texts[i:], *texts[:i]]]
        return {doc.text: [doc.cats[label] for label in labels] for doc in docs}

    with ThreadPoolExecutor(N_THREADS) as pool:
        results = list(pool.map(run, range(N_THREADS)))
    assert state_of(network_of(nlp)) == state
    for scores in results:
        for text in texts:
            assert_allclose(scores[text], expected[text], rtol=0, atol=1e-5)


def test_only_training_changes_the_statistics() -> None:
    layer, batch = biattention(Sizes(**SIZES), dropout=0.0), [random_vectors(3, 1)]
    layer.initialize(batch)
    standardize = layer.shims[0]._model.standardize
    for n_batches in (1, 2):
        layer.begin_update(batch)
        layer.predict(batch)
        assert torch.equal(standardize.n_batches, torch.tensor(float(n_batches)))
