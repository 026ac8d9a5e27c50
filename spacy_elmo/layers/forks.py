"""Forked processes, such as those of nlp.pipe(n_process=2) on Linux: what makes torch fit to run in them."""

import os
from collections.abc import Callable
from functools import partial

import torch


def survive_forks(*forget: Callable[[], None]) -> None:
    """Make the processes that are forked from this one fit to run.

    They inherit torch's thread pool without its threads, and would wait for them for ever: with one thread there is no
    pool to wait for.

    forget (Callable): Called in each of them: drops what may be locked by a thread that is not there, either.
    """
    if hasattr(os, "register_at_fork"):
        functions: list[Callable[[], None]] = [partial(torch.set_num_threads, 1), *forget]
        for function in functions:
            os.register_at_fork(after_in_child=function)
