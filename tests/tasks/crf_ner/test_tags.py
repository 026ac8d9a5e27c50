"""BILUO tags, against all sets of entities."""

import itertools
from collections.abc import Iterator

import pytest

from spacy_elmo.tasks.crf_ner.tags import Tags, tag_prefixes

from .chains import TagPath, is_legal


def spans_in(length: int, labels: list[str], start: int = 0) -> Iterator[list[tuple[int, int, str]]]:
    """List all sets of entities that a doc can have."""
    if start == length:
        yield []
        return
    yield from spans_in(length, labels, start + 1)
    for end in range(start + 1, length + 1):
        for label in labels:
            yield from ([(start, end, label), *rest] for rest in spans_in(length, labels, end))


@pytest.mark.parametrize(("labels", "length"), [(["A"], 1), (["A"], 4), (["A", "B-x"], 2), (["A", "B-x"], 3)])
def test_legal_tags_are_those_of_all_sets_of_entities(labels: list[str], length: int) -> None:
    tags = Tags(labels)
    expected: dict[TagPath, list[tuple[int, int, str]]] = {}
    for spans in spans_in(length, labels):
        names = ["O"] * length
        for start, end, label in spans:
            names[start:end] = [f"{prefix}-{label}" for prefix in tag_prefixes(end - start)]
        expected[tuple(tags.ids[name] for name in names)] = spans
    legal = [path for path in itertools.product(range(len(tags)), repeat=length) if is_legal(tags, path)]
    assert sorted(legal) == sorted(expected)
    assert {path: list(tags.spans(path)) for path in legal} == expected


def test_names_of_tags() -> None:
    assert Tags(["A", "B"]).names == ["O", "B-A", "I-A", "L-A", "U-A", "B-B", "I-B", "L-B", "U-B"]
    assert [tag_prefixes(n) for n in (1, 2, 3, 5)] == ["U", "BL", "BIL", "BIIIL"]
