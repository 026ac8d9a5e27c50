"""Forks processes while threads run a pipeline, and compares what the children compute.

    python forks_beside_threads.py WEIGHTS THREADS_OF_TORCH

It is a script of its own: the process of other tests should not fork beside threads. A child that waits for a lock which a
thread of its parent held would wait for ever; the alarm ends it.
"""

import os
import signal
import sys
import threading
from typing import Any

import numpy
import spacy
import torch
from spacy.language import Language

N_THREADS, N_FORKS, MOST_SECONDS = 8, 24, 100
TEXTS = [f"The cat sees the fish number {i} ." * (1 + i % 3) for i in range(6)]


def main() -> None:
    torch.set_num_threads(int(sys.argv[2]))
    expected = {text: make_pipeline()(text).tensor for text in TEXTS}
    nlp = make_pipeline()
    stop = threading.Event()

    def run() -> None:
        i = 0
        while not stop.is_set():
            nlp(f"{TEXTS[i % len(TEXTS)]} {i}")  # new words, so that the cache of words is busy, too
            i += 1

    threads = [threading.Thread(target=run, daemon=True) for _ in range(N_THREADS)]
    for thread in threads:
        thread.start()
    # The first forks happen while a thread reads the weights.
    codes = [fork(nlp, expected) for _ in range(N_FORKS)]
    stop.set()
    for thread in threads:
        thread.join()
    sys.stdout.write(f"{codes.count(0)} of {N_FORKS}\n")


def make_pipeline() -> Language:
    nlp = spacy.blank("xx")
    nlp.add_pipe("elmo", config={"weights": sys.argv[1]})
    return nlp


def fork(nlp: Language, expected: dict[str, Any]) -> int:
    """RETURNS (int): The exit code of a child that computes the vectors of all texts: 0 if they are as expected."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            signal.alarm(MOST_SECONDS)
            for text in TEXTS:
                numpy.testing.assert_allclose(nlp(text).tensor, expected[text], atol=1e-5, rtol=0)
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    main()
