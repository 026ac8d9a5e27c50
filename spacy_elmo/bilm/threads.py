"""Independent pieces of work, such as the two directions of an LSTM, at the same time on several cores.

torch shares the work of a single operation between OpenMP threads, which wait actively for each other. An LSTM has
hundreds of small operations one after the other: on a busy machine each of them would wait for a thread that has no
core. Two threads that each run a whole direction meet once, and wait without using a core.
"""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache, partial
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

    The calling thread works as well: to wake it up takes as long as a step of an LSTM.

    tasks (Sequence[Callable]): The tasks. They compute without gradients, and share torch's threads equally.
    RETURNS (list): Their results.
    """
    own_threads = torch.get_num_threads()
    n_threads = _left.n_threads or own_threads
    with torch.no_grad():
        if n_threads == 1 or len(tasks) == 1:
            return [task() for task in tasks]
    n_workers = min(n_threads, len(tasks))
    waiting = deque(enumerate(tasks))
    results: dict[int, T] = {}
    work = partial(_work, waiting, results, n_threads // n_workers, torch.is_inference_mode_enabled())
    pool = _pool(os.getpid(), n_threads)
    helpers = [pool.submit(work) for _ in range(n_workers - 1)]
    try:
        work()
        for helper in helpers:
            if not helper.cancel():  # it has started
                helper.result()
    finally:
        # The number of threads belongs to a thread, but a new thread of the host takes over what was set last anywhere.
        torch.set_num_threads(own_threads)
    return [results[i] for i in range(len(tasks))]


def run_in_turn(tasks: Sequence[Callable[[], T]]) -> list[T]:
    """Run tasks one after the other, each on all of torch's threads.

    tasks (Sequence[Callable]): The tasks.
    RETURNS (list): Their results.
    """
    own_threads = torch.get_num_threads()
    torch.set_num_threads(_left.n_threads or own_threads)
    try:
        return [task() for task in tasks]
    finally:
        torch.set_num_threads(own_threads)


@contextmanager
def leave_threads_to_tasks() -> Iterator[None]:
    """Within this context, torch's threads are for the tasks of the functions above. What the calling thread computes itself
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


def _work(
    waiting: "deque[tuple[int, Callable[[], T]]]", results: dict[int, T], n_threads: int, inference: bool
) -> None:
    """Run the tasks that wait, until there are none."""
    # Reading the number first matters: torch initializes it then, and would overwrite what was set before.
    if torch.get_num_threads() != n_threads:
        torch.set_num_threads(n_threads)
    # Both modes belong to a thread, too.
    with torch.inference_mode(inference), torch.no_grad():
        while waiting:
            try:
                i, task = waiting.popleft()
            except IndexError:  # another thread took the last one
                return
            results[i] = task()
