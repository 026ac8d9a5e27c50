"""Processes that a main process starts, to share its work."""

import multiprocessing
import os
import signal
import threading
from multiprocessing.connection import wait


def start_worker() -> None:
    """Leave Ctrl+C to the main process, and end when that process is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this process, in the middle of its work if need be."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
