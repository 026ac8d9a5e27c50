"""Forked processes, such as those of nlp.pipe(n_process=2) on Linux: what makes torch run in them."""

import os
from functools import partial

import torch


def use_one_thread_after_fork() -> None:
    """Let torch run in one thread in every process that is forked from this one.

    A forked process inherits torch's thread pool without its threads, and would wait for them for ever. With one thread
    there is no pool to wait for.
    """
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=partial(torch.set_num_threads, 1))
