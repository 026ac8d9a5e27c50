"""Processes that wait for each other, played by threads."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

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
        except (ValueError, SystemExit, KeyboardInterrupt) as error:
            ends[rank] = repr(error)

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(COUNT)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    return ends
