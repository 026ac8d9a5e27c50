"""Random scores of chains, and all of their paths."""

import itertools
from collections.abc import Iterable
from typing import Any

import numpy

from spacy_elmo.tasks.crf_ner.masks import MISSING
from spacy_elmo.tasks.crf_ner.tagger import ChainScores
from spacy_elmo.tasks.crf_ner.tags import Tags

Array = Any  # NumPy's arrays, which are not thinc's to a type checker

TagPath = tuple[int, ...]

NO_PATH = float("-inf")

TAGS = Tags(["A"])


def is_legal(tags: Tags, path: TagPath) -> bool:
    inner = all(tags.legal_KK[a, b] for a, b in itertools.pairwise(path))
    return bool(tags.start_K[path[0]] and inner and tags.end_K[path[-1]])


def weigh_paths(chain: list[Array], i: int) -> dict[TagPath, float]:
    """Write out all paths of one sequence with their scores."""
    scores, lengths, transitions, start, end = (tensor.detach().numpy() for tensor in chain)
    length, n_tags = int(lengths[i]), scores.shape[2]
    return {
        path: start[path[0]]
        + sum(scores[t, i, tag] for t, tag in enumerate(path))
        + sum(transitions[a, b] for a, b in itertools.pairwise(path))
        + end[path[-1]]
        for path in itertools.product(range(n_tags), repeat=length)
    }


def log_sum(values: Iterable[float]) -> float:
    return float(numpy.logaddexp.reduce(list(values)))


def make_scores(*lengths: int, seed: int = 0, tags: Tags = TAGS) -> ChainScores:
    random = numpy.random.RandomState(seed)

    def draw(*shape: int) -> Array:
        return random.standard_normal(shape).astype("float32")

    n = len(tags)
    return ChainScores([draw(length, n) for length in lengths], draw(n, n), draw(n), draw(n))


def as_gold(*names: str | None) -> Array:
    return numpy.asarray([MISSING if name is None else TAGS.ids[name] for name in names], dtype="int64")
