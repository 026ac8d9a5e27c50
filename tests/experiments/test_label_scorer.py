"""The scores of single tags."""

import pytest
from spacy.tokens import Doc
from spacy.training import Example
from spacy.vocab import Vocab

from spacy_elmo.experiments.label_scorer import score_tags


def test_tags_are_scored_one_by_one() -> None:
    vocab = Vocab()
    words = ["the", "cat", "sees", "a", "dog", "there"]
    predicted = Doc(vocab, words=words, tags=["DET", "NOUN", "NOUN", "", "VERB", "ADV"])
    gold = Doc(vocab, words=words, tags=["DET", "NOUN", "VERB", "DET", "NOUN", ""])
    scores = score_tags([Example(predicted, gold)], "tag_")
    assert scores == {
        "DET": {"p": 1.0, "r": 0.5, "f": pytest.approx(2 / 3)},
        "NOUN": {"p": 0.5, "r": 0.5, "f": pytest.approx(0.5)},
        "VERB": {"p": 0.0, "r": 0.0, "f": 0.0},
    }
