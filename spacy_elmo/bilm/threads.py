"""Independent pieces of work, such as the two directions of an LSTM, at the same time on several cores.

torch shares the work of a single operation between OpenMP threads, which wait actively for each other. An LSTM has
hundreds of small operations one after the other: on a busy machine each of them would wait for a thread that has no
core. Two threads that each run a whole direction meet once, and wait without using a core.
"""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import TypeVar

import torch

T = TypeVar("T")


class _Left(threading.local):
    """The number of torch's threads that `leave_threads_to_tasks` took from a thread; 0 for none."""

    n_threads = 0


_left = _Left()


def make_lock() -> threading.Lock:
    """RETURNS (Lock): A lock for the lifetime of the process. A forked process finds it open, though a thread of its parent
    may have held it."""
    lock = threading.Lock()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lock._at_fork_reinit)  # type: ignore[attr-defined]
    return lock


def run_side_by_side(tasks: Sequence[Callable[[], T]]) -> list[T]:
    """Run tasks at the same time if torch may use more than one thread, otherwise one after the other.

    tasks (Sequence[Callable]): The tasks. They compute without gradients, and share torch's threads equally.
    RETURNS (list): Their results.
    """
    own_threads = torch.get_num_threads()
    n_threads = _left.n_threads or own_threads
    with torch.no_grad():
        if n_threads == 1 or len(tasks) == 1:
            return [task() for task in tasks]
    share = max(1, n_threads // len(tasks))
    pool = _pool(os.getpid(), n_threads)
    inference = torch.is_inference_mode_enabled()
    futures: list[Future[T]] = [pool.submit(_run, task, share, inference) for task in tasks]
    try:
        return [future.result() for future in futures]
    finally:
        # The number of threads belongs to a thread, but a new thread of the host takes over what was set last anywhere.
        torch.set_num_threads(own_threads)


@contextmanager
def leave_threads_to_tasks() -> Iterator[None]:
    """Within this context, torch's threads are for the tasks of `run_side_by_side`. What the calling thread computes itself
    runs on one thread: OpenMP threads stay active for milliseconds after they have shared an operation, and would take
    the cores away from the tasks that follow."""
    n_threads, n_left = torch.get_num_threads(), _left.n_threads
    _left.n_threads = n_left or n_threads
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(n_threads)
        _left.n_threads = n_left


@cache
def _pool(process: int, n_threads: int) -> ThreadPoolExecutor:
    """RETURNS (ThreadPoolExecutor): The threads of a process. A forked process inherits a pool without its threads."""
    return ThreadPoolExecutor(n_threads, thread_name_prefix="spacy_elmo")


def _run(task: Callable[[], T], n_threads: int, inference: bool) -> T:
    # Reading the number first matters: torch initializes it then, and would overwrite what was set before.
    if torch.get_num_threads() != n_threads:
        torch.set_num_threads(n_threads)
    # Both modes belong to a thread, too.
    with torch.inference_mode(inference), torch.no_grad():
        return task()
