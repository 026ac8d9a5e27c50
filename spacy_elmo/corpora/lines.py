"""The lines of a file, with bounded memory."""

from collections.abc import Iterator
from typing import IO

MAX_BYTES = 10_000_000  # of a line: no book is longer, and it fits into memory several times


def read_lines(file: IO[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Read lines. One of more than `MAX_BYTES` is cut into parts, at spaces where it has some.

    file (IO[bytes]): The open file. It may be at the start of a part.
    YIELDS (tuple): A line or a part of it, and whether more of the line follows.
    """
    rest = b""
    while line := rest + file.readline(MAX_BYTES - len(rest)):
        cut = len(line) if line.endswith(b"\n") or len(line) < MAX_BYTES else _find_cut(line)
        line, rest = line[:cut], line[cut:]
        yield line, bool(rest)


def _find_cut(line: bytes) -> int:
    """Find where to cut a line that is too long: after its last space, or between two characters."""
    if (space := line.rfind(b" ")) > 0:
        return space + 1
    end = len(line) - 1
    while end > 1 and line[end] & 0xC0 == 0x80:  # a later byte of a character of UTF-8
        end -= 1
    return end
