"""The tags that the annotation of a doc allows."""

from typing import Any

import numpy
import spacy
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from spacy.tokens import Doc, Span
from spacy.training import Example
from thinc.api import NumpyOps

from spacy_elmo.tasks.crf_ner.component import CrfNer
from spacy_elmo.tasks.crf_ner.inference import decode
from spacy_elmo.tasks.crf_ner.masks import gold_tags, possible_tags
from spacy_elmo.tasks.crf_ner.tags import Tags

from .chains import TAGS, as_gold, is_legal, make_scores

VOCAB = spacy.blank("en").vocab

WORDS = st.sampled_from(["Ada", "wrote", "\n", "  "])


@st.composite
def docs(draw: st.DrawFn) -> Doc:
    """Make docs with whitespace, sentences, entities of labels known and unknown, and blocked tokens."""
    words = draw(st.lists(WORDS, max_size=8))
    n = len(words)
    starts = draw(st.lists(st.sampled_from([True, False, None]), min_size=n, max_size=n))
    doc = Doc(VOCAB, words=words, sent_starts=starts)
    ents: list[Span] = []
    blocked: list[Span] = []
    end = 0
    for start in range(n):
        kind = draw(st.sampled_from(["", "", "", "A", "B", "unknown", "blocked"]))
        if kind and start >= end:
            end = draw(st.integers(start + 1, min(n, start + 3)))
            (blocked if kind == "blocked" else ents).append(Span(doc, start, end, label=kind))
    doc.set_ents(ents, blocked=blocked, default=draw(st.sampled_from(["outside", "missing"])))
    return doc


@given(doc=docs(), seed=st.integers(0, 100))
def test_predictions_are_legal_and_keep_existing_annotation(doc: Doc, seed: int) -> None:
    tags = Tags(["A", "B"])
    component = CrfNer(doc.vocab, None)
    component.cfg["labels"] = ["A", "B"]
    before = [(ent.start, ent.end, ent.label_) for ent in doc.ents]
    blocked = [token.i for token in doc if token.ent_iob_ == "B" and not token.ent_type_]
    taken = {i for start, end, _ in before for i in range(start, end)}
    scores = make_scores(len(doc), seed=seed, tags=tags)
    # All tags but O are likely, so that only what is forbidden is not chosen.
    for tags_TK in scores.tags:
        tags_TK[:, 1:] += 5
    ids = decode(NumpyOps(), scores, [possible_tags(doc, tags)], tags)
    if len(doc):
        assert is_legal(tags, tuple(ids[0].tolist()))
    component.set_annotations([doc], ids)
    after = [(ent.start, ent.end, ent.label_) for ent in doc.ents]
    assert set(before) <= set(after)
    for start, end, label in set(after) - set(before):
        assert label in ("A", "B")
        assert not (taken | set(blocked)) & set(range(start, end))
        assert not doc[start].text.isspace()
        assert not doc[end - 1].text.isspace()
        assert not any(token.is_sent_start for token in doc[start + 1 : end])
    assert [token.i for token in doc if token.ent_iob_ == "B" and not token.ent_type_] == blocked
    assert all(token.ent_iob_ for token in doc), "no annotation is missing any more"


def tags_of(doc: Doc) -> list[set[str]]:
    """Say which tags of the label A each token of a doc may have."""
    return [{TAGS.names[i] for i in numpy.flatnonzero(mask_K)} for mask_K in possible_tags(doc, TAGS)]


def make_doc(words: str, **settings: Any) -> Doc:
    return Doc(VOCAB, words=words.split("_"), **settings)


ALL = set(TAGS.names)


def test_whitespace_and_sentences_bound_entities() -> None:
    assert tags_of(make_doc("Ada_wrote")) == [ALL, ALL]
    assert tags_of(make_doc("Ada_\n_Byron")) == [ALL, {"O", "I-A"}, ALL]
    doc = make_doc("Ada_wrote_it", sent_starts=[True, False, True])
    assert tags_of(doc)[:2] == [ALL, {"O", "L-A", "U-A"}]


def test_existing_entities_keep_their_tags() -> None:
    doc = make_doc("Ada_Byron_Lovelace_met_Babbage_today")
    blocked = [doc[5:6]]
    doc.set_ents([Span(doc, 0, 3, label="A"), Span(doc, 4, 5, label="unknown")], blocked=blocked, default="outside")
    assert tags_of(doc) == [{"B-A"}, {"I-A"}, {"L-A"}, ALL, {"O"}, {"O"}]


def test_gold_tags_of_another_tokenization() -> None:
    nlp = spacy.blank("en")
    reference = Doc(nlp.vocab, words=["Ada", "Byron", "met", "NewYork", "today"])
    reference.set_ents(
        [Span(reference, 0, 2, label="A"), Span(reference, 3, 4, label="A")],
        missing=[reference[4:5]],
        default="outside",
    )
    predicted = Doc(nlp.vocab, words=["Ada", "Byr", "on", "met", "NewYork", "today"])
    found = gold_tags(Example(predicted, reference), TAGS)
    assert_array_equal(found, as_gold("B-A", "I-A", "L-A", "O", "U-A", None))
    joined = Doc(nlp.vocab, words=["Ada", "Byronmet", "NewYork", "today"])
    assert_array_equal(gold_tags(Example(joined, reference), TAGS), as_gold(None, None, "U-A", None))
