"""What happens to shards while they are embedded, whoever embeds them."""

from collections.abc import Callable
from typing import NamedTuple

MAX_ATTEMPTS = 3  # for a shard


class Progressed(NamedTuple):
    """So far, an attempt at a shard has embedded this many tokens, and this many characters of text."""

    shard: str
    n_tokens: int
    n_chars: int


class Finished(NamedTuple):
    """The file of a shard is in place, with vectors of this many tokens."""

    shard: str
    n_tokens: int


class Failed(NamedTuple):
    """A shard could not be embedded, in any of `MAX_ATTEMPTS`."""

    shard: str
    reason: str


Event = Progressed | Finished | Failed
Observer = Callable[[Event], None]


def describe_error(error: BaseException) -> str:
    """RETURNS (str): The message of an error, with its kind if it is not one of those that we raise."""
    return str(error) if isinstance(error, ValueError | OSError | ImportError) else f"{type(error).__name__}: {error}"
