"""Tasks side by side, without a trace on the host's own threads."""

import multiprocessing
import threading
from functools import partial

import pytest
import torch

from spacy_elmo.bilm.threads import leave_threads_to_tasks, run_in_turn, run_side_by_side

pytestmark = pytest.mark.usefixtures("restored_threads")


def observe(barrier: threading.Barrier | None = None) -> tuple[str, int, bool]:
    """Wait until all tasks run, and tell the thread, its share of torch's threads, and whether there are gradients."""
    if barrier is not None:
        barrier.wait(timeout=20)
    return threading.current_thread().name, torch.get_num_threads(), torch.is_grad_enabled()


@pytest.mark.parametrize(("n_threads", "share"), [(2, 1), (3, 1), (4, 2)])
def test_tasks_run_at_the_same_time_with_equal_shares(n_threads: int, share: int) -> None:
    torch.set_num_threads(n_threads)
    results = run_side_by_side([partial(observe, threading.Barrier(2))] * 2)
    assert len({name for name, _, _ in results}) == 2
    assert [n for _, n, _ in results] == [share, share]
    assert not any(with_gradients for _, _, with_gradients in results)


def test_one_thread_runs_all_tasks_itself() -> None:
    torch.set_num_threads(1)
    assert run_side_by_side([observe] * 2) == [("MainThread", 1, False)] * 2


@pytest.mark.parametrize("n_threads", [2, 4, 20])
def test_results_are_in_the_order_of_the_tasks(n_threads: int) -> None:
    torch.set_num_threads(n_threads)
    assert run_side_by_side([partial(pow, 2, i) for i in range(10)]) == [2**i for i in range(10)]


def test_the_caller_does_not_wait_for_threads_that_have_not_started() -> None:
    """As if other threads of the host had tasks for hours."""
    torch.set_num_threads(2)
    end = threading.Event()
    others = [threading.Thread(target=run_side_by_side, args=([partial(end.wait, 20)] * 2,)) for _ in range(2)]
    try:
        for other in others:
            other.start()
        assert run_side_by_side([partial(pow, 3, i) for i in range(4)]) == [1, 3, 9, 27]
        assert not end.is_set()
    finally:
        end.set()
        for other in others:
            other.join()


def test_threads_of_the_host_keep_their_number_of_threads() -> None:
    torch.set_num_threads(2)
    run_side_by_side([observe] * 2)
    assert torch.get_num_threads() == 2
    later: list[int] = []
    thread = threading.Thread(target=lambda: later.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    assert later == [2]


def test_tasks_follow_the_inference_mode_of_their_caller() -> None:
    torch.set_num_threads(2)
    with torch.inference_mode():
        tensors = run_side_by_side([partial(torch.ones, 1)] * 2)
    assert all(tensor.is_inference() for tensor in tensors)
    assert not any(tensor.is_inference() for tensor in run_side_by_side([partial(torch.ones, 1)] * 2))


def test_an_error_of_a_task_reaches_the_caller() -> None:
    torch.set_num_threads(2)
    with pytest.raises(ZeroDivisionError):
        run_side_by_side([partial(divmod, 1, 1), partial(divmod, 1, 0)])


def _run_in_child(queue: "multiprocessing.Queue[list[int]]") -> None:
    torch.set_num_threads(2)
    queue.put(run_side_by_side([partial(pow, 3, i) for i in range(4)]))


def test_a_forked_process_has_threads_of_its_own() -> None:
    torch.set_num_threads(2)
    run_side_by_side([observe] * 2)
    context = multiprocessing.get_context("fork")
    queue: multiprocessing.Queue[list[int]] = context.Queue()
    child = context.Process(target=_run_in_child, args=(queue,))
    child.start()
    assert queue.get(timeout=20) == [1, 3, 9, 27]
    child.join(timeout=20)


def test_tasks_in_turn_have_all_threads() -> None:
    torch.set_num_threads(2)
    with leave_threads_to_tasks():
        assert run_in_turn([torch.get_num_threads, partial(pow, 3, 2)]) == [2, 9]
        assert torch.get_num_threads() == 1
    assert run_in_turn([torch.get_num_threads]) == [2]


def test_tasks_get_the_threads_that_their_caller_leaves_to_them() -> None:
    torch.set_num_threads(2)
    with leave_threads_to_tasks():
        assert torch.get_num_threads() == 1
        results = run_side_by_side([partial(observe, threading.Barrier(2))] * 2)
        assert torch.get_num_threads() == 1
        with leave_threads_to_tasks():  # again: there are still two
            run_side_by_side([partial(observe, threading.Barrier(2))] * 2)
        assert torch.get_num_threads() == 1
    assert len({name for name, _, _ in results}) == 2
    assert torch.get_num_threads() == 2
    torch.set_num_threads(1)
    assert run_side_by_side([observe] * 2) == [("MainThread", 1, False)] * 2
