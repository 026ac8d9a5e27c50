"""First senses: the sense of a word to guess if nothing else is known, from WordNet or from a table."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ..corpora.lines import read_text_lines
from .sense_data import Entry

# WordNet's types of synsets, as the parts of speech of Raganato et al.; the last are satellites of other adjectives.
PARTS_OF_SPEECH = {"1": "NOUN", "2": "VERB", "3": "ADJ", "4": "ADV", "5": "ADJ"}

# lemma%type:file:id:head:head_id offset number_of_the_sense number_of_uses
INDEX_LINE = re.compile(r"((\S+)%([1-5]):\S*) \d{8} (\d+) \d+")


class SenseInventory(NamedTuple):
    """What is known of senses before any text is read.

    name (str): The name of the file that it is from.
    first (dict[Entry, str]): The key of the first sense of each entry.
    keys (set[str] | None): All keys that there are; None if the file has only first senses.
    """

    name: str
    first: dict[Entry, str]
    keys: set[str] | None


def read_inventory(path: Path) -> SenseInventory:
    """Read first senses.

    path (Path): WordNet's `index.sense`, or a table, tab-separated, of a lemma, its part of speech and the key of its first
        sense.
    RETURNS (SenseInventory): The first senses.
    """
    lines = [(number, line) for number, line, _ in read_text_lines(path) if line]
    if not lines:
        raise ValueError(f"{path} has no first senses: it is empty.")
    if INDEX_LINE.fullmatch(lines[0][1]) is None:
        return SenseInventory(path.name, dict(_parse_table(lines, path)), None)
    first: dict[Entry, str] = {}
    keys = set()
    for number, line in lines:
        match = INDEX_LINE.fullmatch(line)
        if match is None:
            raise ValueError(f"{path}, line {number}: expected a line as in WordNet's index.sense, got {line!r:.80}.")
        key, lemma, kind, sense_number = match.groups()
        keys.add(key)
        if sense_number == "1":
            first[lemma, PARTS_OF_SPEECH[kind]] = key
    return SenseInventory(path.name, first, keys)


def _parse_table(lines: list[tuple[int, str]], path: Path) -> Iterator[tuple[Entry, str]]:
    for number, line in lines:
        cells = line.split("\t")
        if len(cells) != 3:
            raise ValueError(
                f"{path}, line {number}: expected a lemma, its part of speech and a key, separated by tabs, or a line of "
                f"WordNet's index.sense, got {line!r:.80}."
            )
        lemma, pos, key = cells
        yield (lemma.lower(), pos), key
