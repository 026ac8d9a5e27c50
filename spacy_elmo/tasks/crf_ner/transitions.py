"""The scores of a chain: those of the tags of each token, which come in, and those of transitions, which are learned."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from thinc.api import Model, get_width
from thinc.types import Floats1d, Floats2d

InT = list[Floats2d]  # for each doc: (nT, nO)


@dataclass(frozen=True)
class ChainScores:
    """All that the score of a path is made of, or the gradients of all that.

    tags (list[Floats2d]): For each doc, the score of each tag for each token: (nT, nO).
    transitions (Floats2d): The score of going from one tag to the next: (nO, nO).
    start, end (Floats1d): The scores of a doc's first and last tag: (nO,).
    """

    tags: list[Floats2d]
    transitions: Floats2d
    start: Floats1d
    end: Floats1d


OutT = ChainScores


def transitions(nO: int | None = None) -> Model[InT, OutT]:
    """Put the scores of transitions beside those of tags.

    They are Thinc's own parameters, so that spaCy averages and saves them like any other. They start as zero.

    nO (int | None): The number of tags.
    RETURNS (Model): The layer.
    """
    return Model(
        "crf_transitions",
        forward,
        init=init,
        dims={"nO": nO},
        params={"transitions": None, "start": None, "end": None},
    )


def forward(model: Model[InT, OutT], tags: InT, is_train: bool) -> tuple[OutT, Callable[[OutT], InT]]:
    def backprop(d_scores: OutT) -> InT:
        model.inc_grad("transitions", d_scores.transitions)
        model.inc_grad("start", d_scores.start)
        model.inc_grad("end", d_scores.end)
        return d_scores.tags

    scores = ChainScores(
        tags,
        cast(Floats2d, model.get_param("transitions")),
        cast(Floats1d, model.get_param("start")),
        cast(Floats1d, model.get_param("end")),
    )
    return scores, backprop


def init(model: Model[InT, OutT], X: InT | None = None, Y: InT | None = None) -> None:
    if X is not None:
        model.set_dim("nO", get_width(X))
    nO = model.get_dim("nO")
    model.set_param("transitions", model.ops.alloc2f(nO, nO))
    model.set_param("start", model.ops.alloc1f(nO))
    model.set_param("end", model.ops.alloc1f(nO))
