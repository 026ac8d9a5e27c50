"""Processes that wait for each other, played by threads."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
import torch

from spacy_elmo.pretraining.processes import Processes

COUNT = 4  # two machines of two


@dataclass
class Meeting:
    """Where all bring their values, and all get the sums."""

    barrier: threading.Barrier = field(default_factory=lambda: threading.Barrier(COUNT, timeout=10))
    values: list[list[float]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)


@dataclass(frozen=True)
class Played(Processes):
    """One of them.

    meeting (Meeting): Where they meet.
    """

    meeting: Meeting = field(default_factory=Meeting)

    def sum(self, values: list[float]) -> list[float]:
        with self.meeting.lock:
            self.meeting.values.append(values)
        self.meeting.barrier.wait()
        sums = [sum(column) for column in zip(*self.meeting.values, strict=True)]
        if self.meeting.barrier.wait() == 0:
            self.meeting.values.clear()
        self.meeting.barrier.wait()
        return sums


def play(act: Callable[[Played], None]) -> dict[int, str]:
    """Let all act at once, and say how each ended."""
    meeting, ends = Meeting(), {}

    def run(rank: int) -> None:
        try:
            act(Played(rank, COUNT, torch.device("cpu"), local_rank=rank % 2, meeting=meeting))
            ends[rank] = "continued"
        except (ValueError, SystemExit) as error:
            ends[rank] = repr(error)

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(COUNT)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    return ends


def test_the_first_then_the_first_of_each_machine_then_the_rest() -> None:
    events: list[str] = []

    def act(processes: Played) -> None:
        with processes.first_before_others():
            events.append(f"{processes.rank} comes")
            events.append(f"{processes.rank} leaves")

    assert play(act) == dict.fromkeys(range(COUNT), "continued")
    assert events[:4] == ["0 comes", "0 leaves", "2 comes", "2 leaves"]
    assert sorted(events[4:]) == ["1 comes", "1 leaves", "3 comes", "3 leaves"]


@pytest.mark.parametrize("fails", [0, 2])
def test_if_one_fails_the_others_end(fails: int) -> None:
    came: list[int] = []

    def act(processes: Played) -> None:
        with processes.first_before_others():
            came.append(processes.rank)
            if processes.rank == fails:
                raise ValueError("no such text")

    ends = play(act)
    assert ends.pop(fails) == "ValueError('no such text')"
    assert set(ends.values()) == {"SystemExit(1)"}
    assert not {1, 3} & set(came)


def test_all_processes_must_have_the_same_data() -> None:
    same, other = "ab" * 32, "ba" * 32
    assert set(play(lambda processes: processes.check_same(same, "dev text")).values()) == {"continued"}
    ends = play(lambda processes: processes.check_same(same if processes.rank else other, "dev text"))
    assert len(ends) == COUNT
    assert all("Not all processes have the same dev text" in end for end in ends.values())
