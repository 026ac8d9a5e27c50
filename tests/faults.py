"""Disks that are full or broken, and kills, at any operation: injected into a forked process."""

import errno
import io
import os
import resource
import signal
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["kill", "ENOSPC", "EIO", "full", "killed while writing"]
Outcome = Literal["done", "failed", "killed", "not reached"]
Operation = tuple[Any, str]  # an object and the name of its function

# Whatever Python code does with files ends here.
OPERATIONS: Sequence[Operation] = [
    *((os, name) for name in ("open", "fsync", "replace", "rename", "unlink", "mkdir", "chmod")),
    (io, "open"),
]


@dataclass(frozen=True)
class Fault:
    """What goes wrong, and when.

    kind (str): "kill", or an error of the disk, at an operation; "full": no file can be longer than some bytes; "killed
        while writing": the process ends when a file gets longer than that.
    point (int): The number of the operation, which counts before and after each; or the number of bytes.
    """

    kind: Kind
    point: int


class Injector:
    """Counts operations on the disk, and lets the fault happen.

    fault (Fault): The fault.
    operations (Sequence[Operation]): The operations.
    """

    def __init__(self, fault: Fault, operations: Sequence[Operation] = OPERATIONS) -> None:
        self._fault = fault
        self._left = fault.point
        if fault.kind in ("full", "killed while writing"):
            # Python ignores the signal, so that writing fails. By default it ends the process.
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN if fault.kind == "full" else signal.SIG_DFL)
            resource.setrlimit(resource.RLIMIT_FSIZE, (fault.point, resource.RLIM_INFINITY))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            return
        for owner, name in operations:
            setattr(owner, name, self._wrap(getattr(owner, name)))

    @property
    def is_waiting(self) -> bool:
        """RETURNS (bool): Whether there were fewer operations than the fault waits for."""
        return self._fault.kind in ("kill", "ENOSPC", "EIO") and self._left > 0

    def _wrap(self, operation: Callable[..., Any]) -> Callable[..., Any]:
        def operate(*args: Any, **kwargs: Any) -> Any:
            self._count()
            result = operation(*args, **kwargs)
            if self._fault.kind == "kill":
                self._count()
            return result

        return operate

    def _count(self) -> None:
        self._left -= 1
        if self._left:
            return
        if self._fault.kind == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        code = errno.ENOSPC if self._fault.kind == "ENOSPC" else errno.EIO
        raise OSError(code, os.strerror(code))


def run_in_fork(
    action: Callable[[], object], fault: Fault | None, operations: Sequence[Operation] = OPERATIONS
) -> Outcome:
    """Run an action in a process of its own: starting Python takes longer than most of them. The caller has no threads.

    action (Callable): The action.
    fault (Fault | None): What goes wrong.
    operations (Sequence[Operation]): The operations that count.
    RETURNS (str): How it ended. It may fail with an OSError, or one of our errors that comes from one; or succeed, since
        some operations, such as removing a draft, may fail.
    """
    child = os.fork()
    if child == 0:
        code = 2
        try:
            injector = None if fault is None else Injector(fault, operations)
            action()
            code = 3 if injector is not None and injector.is_waiting else 0
        except BaseException as error:
            code = 1 if _is_expected(error) else 2
            if code == 2:
                traceback.print_exc()
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, 1, 3, -signal.SIGKILL, -signal.SIGXFSZ), (fault, code)
    return "done" if code == 0 else "failed" if code == 1 else "not reached" if code == 3 else "killed"


def _is_expected(error: BaseException | None) -> bool:
    """Say whether an error is, or was raised from, one of the disk."""
    while error is not None:
        if isinstance(error, OSError):
            return True
        error = error.__cause__ or error.__context__
    return False
