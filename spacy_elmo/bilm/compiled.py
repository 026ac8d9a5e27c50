"""Functions that TorchScript runs, if it can."""

import warnings
from collections.abc import Callable
from typing import TypeVar, cast

import torch

from .threads import make_lock

F = TypeVar("F", bound=Callable[..., object])

_functions: dict[Callable[..., object], Callable[..., object]] = {}
_compiling = make_lock()


def compiled(function: F) -> F:
    """Let TorchScript run a function: without Python's lock, so that several threads can run at the same time. No compiler
    is needed.

    function (Callable): The function, in the part of Python that TorchScript knows.
    RETURNS (Callable): The function for TorchScript, or where that is missing the function itself.
    """
    with _compiling:  # threads that come at the same time wait for the first one, which takes a second
        if function not in _functions:
            _functions[function] = _compile(function)
        return cast(F, _functions[function])


def _compile(function: F) -> F:
    try:
        with warnings.catch_warnings():
            # TorchScript is no longer developed, but part of every torch so far.
            warnings.simplefilter("ignore", DeprecationWarning)
            return cast(F, torch.jit.script(function))
    except Exception:  # whatever a future torch raises: only speed is lost
        return function
