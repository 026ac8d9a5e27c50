"""Docs to the scores of a conditional random field: a linear layer on any tok2vec, and learned transitions."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from spacy.tokens import Doc
from spacy.util import registry
from thinc.api import Linear, Model, chain, get_width, with_array
from thinc.types import Floats1d, Floats2d

TagScores = list[Floats2d]  # for each doc: (nT, nO)


@dataclass(frozen=True)
class ChainScores:
    """The terms of a path's score, or the gradients of these terms.

    tags (list[Floats2d]): For each doc, the score of each tag for each token: (nT, nO).
    transitions (Floats2d): The score of going from one tag (row) to the next (column): (nO, nO).
    start, end (Floats1d): The scores of a doc's first and last tag: (nO,).
    """

    tags: TagScores
    transitions: Floats2d
    start: Floats1d
    end: Floats1d


@registry.architectures("spacy_elmo.CrfTagger.v1")
def build_crf_tagger_v1(
    *, tok2vec: Model[list[Doc], list[Floats2d]], nO: int | None = None
) -> Model[list[Doc], ChainScores]:
    """Build the model of `crf_ner`: a linear layer scores the tags of each token, and transitions are scored beside it.

    With a BiLSTM as the tok2vec's encoder this is the BiLSTM-CRF of Lample et al. (2016), which the paper uses for NER.

    tok2vec (Model): Docs to vectors: any embedding and encoder, or a listener.
    nO (int | None): The number of tags: 4 for each label, and 1. Null to find it at initialization.
    RETURNS (Model): Docs to the scores of tags and of transitions.
    """
    output = Linear(nO, tok2vec.maybe_get_dim("nO"))
    model: Model[list[Doc], ChainScores] = chain(tok2vec, with_array(output), add_transitions(nO))
    model.set_ref("tok2vec", tok2vec)
    model.set_ref("output_layer", output)
    return model


def add_transitions(nO: int | None = None) -> Model[TagScores, ChainScores]:
    """Add the scores of transitions to the scores of tags.

    The transitions are Thinc parameters, so that spaCy averages and saves them like any other. They start at zero.

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


def forward(
    model: Model[TagScores, ChainScores], tags: TagScores, is_train: bool
) -> tuple[ChainScores, Callable[[ChainScores], TagScores]]:
    def backprop(d_scores: ChainScores) -> TagScores:
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


def init(model: Model[TagScores, ChainScores], X: TagScores | None = None, Y: TagScores | None = None) -> None:
    if X is not None:
        model.set_dim("nO", get_width(X))
    nO = model.get_dim("nO")
    model.set_param("transitions", model.ops.alloc2f(nO, nO))
    model.set_param("start", model.ops.alloc1f(nO))
    model.set_param("end", model.ops.alloc1f(nO))
