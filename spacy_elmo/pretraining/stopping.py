"""Signals that stop a run: SIGTERM, which is sent before a machine is taken away, and SIGINT, which is Ctrl+C."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from .processes import Processes


class Stopped(KeyboardInterrupt):
    """A signal has stopped a run.

    number (int): The number of the signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__(f"stopped by {signal.Signals(number).name}")
        self.number = number

    @property
    def exit_code(self) -> int:
        """RETURNS (int): The exit code of a process that a signal ended, as shells report it."""
        return 128 + self.number


class StopSignals:
    """The signals that this process receives. The first one counts."""

    def __init__(self) -> None:
        self._received: int | None = None
        self._are_deferred = False

    def is_received(self) -> bool:
        """RETURNS (bool): Whether this process has received a signal."""
        return self._received is not None

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """Within this context a signal is only noted. The run asks for it where it can stop."""
        self._are_deferred = True
        try:
            yield
        finally:
            self._are_deferred = False

    def raise_together(self, processes: Processes) -> None:
        """Stop all processes if one of them has received a signal. Every process must take part.

        processes (Processes): The processes.
        """
        numbers = (signal.SIGTERM, signal.SIGINT)
        counts = processes.sum([float(self._received == number) for number in numbers])
        for number, count in zip(numbers, counts, strict=True):
            if count:
                raise Stopped(number)

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal: note it, and stop at once if that is not deferred. Later ones change nothing: torchrun repeats
        signals, and what is being cleaned up must not be interrupted.

        number (int): The number of the signal.
        frame (FrameType | None): Where it arrived.
        """
        if self._received is None:
            self._received = number
            if not self._are_deferred:
                raise Stopped(number)


@contextmanager
def catch_signals() -> Iterator[StopSignals]:
    """Within this context, SIGTERM and SIGINT raise `Stopped`, or are deferred. Signals that were ignored before still are,
    and so are all in a thread: only the main thread gets signals.

    YIELDS (StopSignals): The signals that were received.
    """
    signals = StopSignals()
    before = {}
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGINT):
            if signal.getsignal(number) != signal.SIG_IGN:
                before[number] = signal.signal(number, signals.handle)
    try:
        yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
