"""What is made of scores: statistics, and sentences that claim no more than the seeds say."""

from collections.abc import Sequence

import pytest
from spacy.tokens import Doc
from spacy.training import Example
from spacy.vocab import Vocab

from spacy_elmo.experiments.scores import Sample, conclude, main_scores
from spacy_elmo.experiments.scoring import score_tags


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


def test_statistics_by_hand() -> None:
    sample = Sample([40.0, 42.0, 47.0])
    assert sample.mean == pytest.approx(43.0)
    assert sample.deviation == pytest.approx(13**0.5)  # (9 + 1 + 16) / 2
    assert Sample([40.0]).mean == 40
    assert Sample([40.0]).deviation is None


@pytest.mark.parametrize(
    ("values", "first", "expected"),
    [
        (
            [46, 47, 48],
            [40, 41, 42],
            "‘B’ scores higher by 6.0 points than ‘A’ on average: 47.0 against 41.0. Every seed of ‘B’ is above every seed of ‘A’ "
            "(3 and 3 seeds); if the two were equally good, they would be so far apart, one way or the other, in 2 of 20 cases.",
        ),
        (
            [39, 39.5],
            [40, 41, 42],
            "‘B’ scores lower by 1.8 points than ‘A’ on average: 39.2 against 41.0. Every seed of ‘B’ is below every seed of ‘A’ "
            "(2 and 3 seeds); if the two were equally good, they would be so far apart, one way or the other, in 2 of 10 cases.",
        ),
        (
            [40, 43],
            [41, 41.5],
            "The seeds overlap: no clear difference. On average, ‘B’ scores higher by 0.25 points than ‘A’: 41.5 against 41.2 "
            "(2 and 2 seeds).",
        ),
        (
            [41, 45],
            [40, 43],
            "The seeds overlap: no clear difference. On average, ‘B’ scores higher by 1.5 points than ‘A’: 43.0 against 41.5 "
            "(2 and 2 seeds).",
        ),
        (
            [41, 42],
            [41],
            "The seeds overlap: no clear difference. On average, ‘B’ scores higher by 0.50 points than ‘A’: 41.5 against 41.0 "
            "(2 and 1 seeds).",
        ),
        (
            [41],
            [40],
            "‘B’ scores higher by 1.0 points than ‘A’: 41.0 against 40.0, with one seed each. Another seed may say something "
            "else: only several can tell.",
        ),
        ([41, 43], [42], "‘B’ scores as high as ‘A’: 42.0 on average."),
        ([41, 43.001], [42], "‘B’ scores as high as ‘A’: 42.0 on average."),
    ],
)
def test_conclusions_claim_no_more_than_the_seeds_say(
    values: Sequence[float], first: Sequence[float], expected: str
) -> None:
    assert conclude("B", Sample(values), "A", Sample(first)) == expected


def test_main_scores_are_those_with_weight() -> None:
    weights = {"ents_f": 0.4, "ents_p": 0.0, "cats_score": 0.6, "tag_acc": 1.0, "ents_per_type": None}
    scores = {"ents_f": 0.5, "ents_p": 0.5, "cats_score": 0.7, "cats_score_desc": "macro AUC", "tag_acc": None}
    assert main_scores({"scores": scores, "score_weights": weights}) == ["cats_macro_auc", "ents_f"]
    assert main_scores({"scores": {"cats_score": 0.5}, "score_weights": {"cats_score": 1.0}}) == ["cats_score"]
