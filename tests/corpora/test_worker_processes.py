"""Processes that tokenize: Ctrl+C, and a main process that is gone."""

import multiprocessing
import os
import signal
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from spacy_elmo.corpora.worker_processes import start_worker

from ..embedding.processes import find_descendants, is_running, wait_until

READ_AND_WAIT = """
import sys, time
from pathlib import Path
from spacy_elmo.corpora.read import read_corpus
sentences = read_corpus(Path(sys.argv[1]), lang="en", n_process=2)
print(*next(sentences), flush=True)
time.sleep(600)
"""


@pytest.mark.slow
def test_worker_leaves_interrupts_to_the_main_process() -> None:
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context, initializer=start_worker) as pool:
        worker = pool.submit(os.getpid).result()
        os.kill(worker, signal.SIGINT)
        assert pool.submit(os.getpid).result() == worker


@pytest.mark.slow
def test_processes_that_tokenize_end_with_the_main_process(tmp_path: Path) -> None:
    corpus = tmp_path / "a.txt"
    corpus.write_text("Ada wrote it. And more!\n" * 3_000, encoding="utf8")
    command = [sys.executable, "-W", "ignore", "-c", READ_AND_WAIT, str(corpus)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        workers = [pid for pid, line in find_descendants(process.pid).items() if "spawn_main" in line]
        process.kill()
    try:
        assert first == "Ada wrote it .\n"
        assert len(workers) == 2
        wait_until(lambda: not any(map(is_running, workers)))
    finally:
        for worker in filter(is_running, workers):
            os.kill(worker, signal.SIGKILL)
