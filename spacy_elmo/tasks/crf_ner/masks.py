"""The tags that the annotation of a doc requires or allows."""

from typing import Any

import numpy
from numpy.typing import NDArray
from spacy.tokens import Doc, Token
from spacy.training import Example

from .tags import OUTSIDE, Mask, Tags, tag_prefixes

MISSING = -1


def gold_tags(example: Example, tags: Tags) -> NDArray[Any]:
    """Look up the gold tags of an example.

    example (Example): The example. Its labels must be among those of the tags.
    tags (Tags): The tags.
    RETURNS (NDArray): The id of each token's tag, or `MISSING` where it has no annotation: (nT,).
    """
    names = example.get_aligned_ner()
    return numpy.asarray([MISSING if name in (None, "", "-") else tags.ids[name] for name in names], dtype="int64")


def possible_tags(doc: Doc, tags: Tags) -> Mask:
    """Find the tags that a prediction may choose from. Except in existing entities, "O" is always among them.

    Whitespace neither begins nor ends an entity. No entity crosses the boundary of a sentence, if sentences are set.
    Existing entities and blocked tokens are kept. spaCy's `ner` does the same, except that its entities may end with
    whitespace.

    doc (Doc): The doc.
    tags (Tags): The tags.
    RETURNS (Mask): mask_TK.
    """
    mask_TK = numpy.ones((len(doc), len(tags)), dtype=bool)
    outside_K = numpy.arange(len(tags)) == tags.ids[OUTSIDE]
    inside_K = tags.opens_K & tags.continues_K
    for token in doc:
        # Not is_space, which is never set by a vocab without a language.
        if token.text.isspace():
            mask_TK[token.i] &= outside_K | inside_K
        if token.i > 0 and token.is_sent_start:
            mask_TK[token.i - 1] &= ~tags.opens_K
        if is_blocked(token):
            mask_TK[token.i] = outside_K
    for ent in doc.ents:
        for i, prefix in zip(range(ent.start, ent.end), tag_prefixes(len(ent)), strict=True):
            # No other entity can overlap with one whose label is not among the tags.
            tag = tags.ids.get(f"{prefix}-{ent.label_}", tags.ids[OUTSIDE])
            mask_TK[i] = numpy.arange(len(tags)) == tag
    return mask_TK


def is_blocked(token: Token) -> bool:
    """RETURNS (bool): Whether a token must not be in any entity: `Doc.set_ents(blocked=...)`."""
    return token.ent_iob_ == "B" and not token.ent_type
