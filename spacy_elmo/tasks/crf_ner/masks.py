"""Which tags a token may have: what the annotation of a doc says about them."""

from typing import Any

import numpy
from numpy.typing import NDArray
from spacy.tokens import Doc, Token
from spacy.training import Example

from .tags import OUTSIDE, Mask, Tags, tag_prefixes

MISSING = -1


def gold_tags(example: Example, tags: Tags) -> NDArray[Any]:
    """Look up the tags that an example wants.

    example (Example): The example, whose labels are all known.
    tags (Tags): The tags that there are.
    RETURNS (NDArray): The id of each token's tag, `MISSING` where the annotation says nothing: (nT,).
    """
    names = example.get_aligned_ner()
    return numpy.asarray([MISSING if name in (None, "", "-") else tags.ids[name] for name in names], dtype="int64")


def possible_tags(doc: Doc, tags: Tags) -> Mask:
    """Find the tags that a prediction may choose from. "O" is always among them, but for the tokens of an entity.

    Whitespace neither begins nor ends an entity, and none goes on into the next sentence, where sentences are set.
    Entities that a doc has already stay as they are, and so do tokens that are blocked from being in one. All this is
    what spaCy's own `ner` does, but that it lets whitespace end an entity.

    doc (Doc): The doc.
    tags (Tags): The tags that there are.
    RETURNS (Mask): mask_TK.
    """
    mask_TK = numpy.ones((len(doc), len(tags)), dtype=bool)
    outside_K = numpy.arange(len(tags)) == tags.ids[OUTSIDE]
    inside_K = tags.opens_K & tags.continues_K
    for token in doc:
        # Not is_space, which a vocab without a language does not know.
        if token.text.isspace():
            mask_TK[token.i] &= outside_K | inside_K
        if token.i > 0 and token.is_sent_start:
            mask_TK[token.i - 1] &= ~tags.opens_K
        if is_blocked(token):
            mask_TK[token.i] = outside_K
    for ent in doc.ents:
        for i, prefix in zip(range(ent.start, ent.end), tag_prefixes(len(ent)), strict=True):
            # An entity of a label that is not known here is still a place where no other can be.
            tag = tags.ids.get(f"{prefix}-{ent.label_}", tags.ids[OUTSIDE])
            mask_TK[i] = numpy.arange(len(tags)) == tag
    return mask_TK


def is_blocked(token: Token) -> bool:
    """RETURNS (bool): Whether a token was set to be in no entity whatever a model says: `Doc.set_ents(blocked=...)`."""
    return token.ent_iob_ == "B" and not token.ent_type
