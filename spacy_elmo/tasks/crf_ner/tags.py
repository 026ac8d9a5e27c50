"""The BILUO tags of a set of labels, and the legal transitions between them."""

from collections.abc import Iterable, Iterator, Sequence

import numpy
from numpy.typing import NDArray

Mask = NDArray[numpy.bool_]

OUTSIDE = "O"
PREFIXES = "BILU"  # begin, inside, last, unit


def tag_prefixes(length: int) -> str:
    """RETURNS (str): The prefixes of the tokens of an entity with this many tokens, at least one."""
    return "U" if length == 1 else "B" + "I" * (length - 2) + "L"


class Tags:
    """The tags of a set of labels: first "O", then B, I, L and U of each label.

    labels (Iterable[str]): The labels.
    """

    names: list[str]
    ids: dict[str, int]
    legal_KK: Mask  # [i, j]: may tag j follow tag i?
    start_K: Mask  # may a doc start with it?
    end_K: Mask  # may a doc end with it?
    opens_K: Mask  # does its entity continue with the next token?
    continues_K: Mask  # did its entity begin with an earlier token?

    def __init__(self, labels: Iterable[str]) -> None:
        self.names = [OUTSIDE, *(f"{prefix}-{label}" for label in labels for prefix in PREFIXES)]
        self.ids = {name: i for i, name in enumerate(self.names)}
        self.opens_K = numpy.asarray([name.startswith(("B-", "I-")) for name in self.names])
        self.continues_K = numpy.asarray([name.startswith(("I-", "L-")) for name in self.names])
        label_K = numpy.asarray([name[2:] for name in self.names])
        same_KK = label_K[:, None] == label_K
        self.legal_KK = numpy.where(self.opens_K[:, None], self.continues_K & same_KK, ~self.continues_K)
        self.start_K = ~self.continues_K
        self.end_K = ~self.opens_K

    def __len__(self) -> int:
        return len(self.names)

    def spans(self, ids: Sequence[int]) -> Iterator[tuple[int, int, str]]:
        """Find the entities in the tags of a doc.

        ids (Sequence[int]): A legal sequence of tags.
        YIELDS (tuple): Start, end and label of each entity; the end is the first token after it.
        """
        start = 0
        for i, tag in enumerate(ids):
            if not self.continues_K[tag]:
                start = i
            if tag != self.ids[OUTSIDE] and not self.opens_K[tag]:
                yield start, i + 1, self.names[tag][2:]
