"""Docs to the scores of a chain."""

from spacy.tokens import Doc
from thinc.api import Linear, Model, chain, with_array
from thinc.types import Floats2d

from .transitions import ChainScores, transitions

InT = list[Doc]
OutT = ChainScores


def crf_tagger(tok2vec: Model[InT, list[Floats2d]], nO: int | None) -> Model[InT, OutT]:
    """Score the tags of each token by a linear layer on its vector, and put the scores of transitions beside them.

    tok2vec (Model): Docs to vectors.
    nO (int | None): The number of tags, None if it is not known yet.
    RETURNS (Model): The model.
    """
    output = Linear(nO, tok2vec.maybe_get_dim("nO"))
    model: Model[InT, OutT] = chain(tok2vec, with_array(output), transitions(nO))
    model.set_ref("tok2vec", tok2vec)
    model.set_ref("output_layer", output)
    return model
