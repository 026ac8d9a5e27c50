"""The lines of a file, with bounded memory."""

from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple

from .files import open_corpus_file

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


class TextLine(NamedTuple):
    """A line of text, or a part of one.

    number (int): The number of the line, counted from 1.
    text (str): The text, without white space at its ends.
    is_cut (bool): Whether more of the line follows.
    """

    number: int
    text: str
    is_cut: bool


def read_text_lines(path: Path) -> Iterator[TextLine]:
    """Read the lines of a file in UTF-8.

    path (Path): The file, gzipped or not.
    YIELDS (TextLine): The lines.
    """
    number = 1
    with open_corpus_file(path) as file:
        for line, is_cut in read_lines(file):
            try:
                # Windows puts a mark at the start of files.
                text = line.decode("utf-8-sig" if number == 1 else "utf8").strip()
            except UnicodeDecodeError as error:
                raise ValueError(
                    f"{path}, line {number}: not UTF-8, at byte {error.start} ({line[error.start]:#04x}). "
                    f"Convert the file, for example: iconv -f latin1 -t utf8 {path.name} > fixed.txt"
                ) from None
            yield TextLine(number, text, is_cut)
            number += not is_cut


def _find_cut(line: bytes) -> int:
    """Find where to cut a line that is too long, before its end: after its last space, or between two characters."""
    if (space := line.rfind(b" ", 0, -1)) > 0:
        return space + 1
    end = len(line) - 1
    while end > 1 and line[end] & 0xC0 == 0x80:  # a later byte of a character of UTF-8
        end -= 1
    return end
