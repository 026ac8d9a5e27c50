"""Processes of Linux: to find those that a command has started, and to wait for something."""

import os
import time
from collections.abc import Callable
from pathlib import Path

WAIT_SECONDS = 120  # Ray takes long to start on a busy machine


def wait_until(condition: Callable[[], object]) -> None:
    """Wait until a condition holds, but not forever."""
    end = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert time.monotonic() < end, "it does not happen"
        time.sleep(0.01)


def find_descendants(process: int) -> dict[int, str]:
    """Find the processes that a process has started, and those that they have started.

    process (int): The process.
    RETURNS (dict[int, str]): The command line of each.
    """
    found: dict[int, str] = {}
    for directory in Path("/proc").iterdir():
        if directory.name.isdigit():
            try:
                parent = int(directory.joinpath("stat").read_text().rpartition(")")[2].split()[1])
                line = directory.joinpath("cmdline").read_text().replace("\0", " ")
            except OSError:
                continue  # it has just ended
            if parent == process:
                found |= {int(directory.name): line, **find_descendants(int(directory.name))}
    return found


def is_running(process: int) -> bool:
    """Say whether a process exists, or has ended only in part: its first thread can be a zombie while others still release
    memory, and hold the locks of the process until they have.

    process (int): The process.
    RETURNS (bool): Whether any of its threads lives.
    """
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        return state != "Z" or len(os.listdir(f"/proc/{process}/task")) > 1
    except OSError:
        return False
