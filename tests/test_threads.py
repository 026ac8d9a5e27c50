"""One pipeline in several threads, as in a service, and processes that are forked beside them."""

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import torch
from numpy.testing import assert_allclose

from spacy_elmo.bilm import weights as weights_io
from spacy_elmo.bilm.compiled import compiled

from .helpers import make_elmo_nlp

N_THREADS = 8
TEXTS = [f"Ada wrote the note number {i} , and it was short ." * (1 + i % 3) for i in range(24)]

pytestmark = pytest.mark.usefixtures("restored_threads")


@pytest.mark.parametrize("precision", ["float32", "int8"])
@pytest.mark.parametrize("n_torch", [1, 2])
def test_eight_threads_get_the_vectors_that_one_gets(
    weights: str, precision: str, n_torch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.set_num_threads(n_torch)
    read = Mock(side_effect=weights_io.load_stored)
    monkeypatch.setattr(weights_io, "load_stored", read)
    nlp, barrier = make_elmo_nlp(weights, precision=precision), threading.Barrier(N_THREADS)

    def run(i: int) -> dict[str, Any]:
        barrier.wait(timeout=60)
        return {text: nlp(text).tensor for text in [*TEXTS[i:], *TEXTS[:i]]}

    with ThreadPoolExecutor(N_THREADS) as pool:
        results = list(pool.map(run, range(N_THREADS)))
    read.assert_called_once()
    expected = {doc.text: doc.tensor for doc in make_elmo_nlp(weights, precision=precision).pipe(TEXTS)}
    for vectors in results:
        for text in TEXTS:
            assert_allclose(vectors[text], expected[text], rtol=0, atol=1e-5)


def test_threads_compile_a_function_once(monkeypatch: pytest.MonkeyPatch) -> None:
    barrier = threading.Barrier(N_THREADS)
    script = Mock(side_effect=torch.jit.script)
    monkeypatch.setattr(torch.jit, "script", script)

    def double(x: torch.Tensor) -> torch.Tensor:
        return x + x

    def run(_: int) -> Any:
        barrier.wait(timeout=60)
        return compiled(double)

    with ThreadPoolExecutor(N_THREADS) as pool:
        functions = list(pool.map(run, range(N_THREADS)))
    script.assert_called_once_with(double)
    assert all(function is functions[0] for function in functions)


@pytest.mark.slow
@pytest.mark.parametrize("n_torch", [1, 2])
def test_forks_beside_threads_get_the_same_vectors(weights: str, n_torch: int) -> None:
    script = Path(__file__).with_name("forks_beside_threads.py")
    command = [sys.executable, "-W", "ignore", script, weights, str(n_torch)]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert result.stdout == "24 of 24\n", result.stderr
