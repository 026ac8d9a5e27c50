"""The loss and its gradients, against all paths written out."""

import itertools

import numpy
import pytest
import torch
from numpy.testing import assert_allclose
from thinc.api import NumpyOps

from spacy_elmo.tasks.crf_ner.inference import decode, loss_and_gradients
from spacy_elmo.tasks.crf_ner.masks import MISSING
from spacy_elmo.tasks.crf_ner.tagger import ChainScores

from .chains import TAGS, Array, as_gold, is_legal, log_sum, make_scores, weigh_paths


def written_out(scores: ChainScores, gold: list[Array]) -> tuple[float, ChainScores]:
    """Compute the loss and its gradients from all legal paths: what is expected of them, and what they are in gold."""
    shapes = [*scores.tags, scores.transitions, scores.start, scores.end]
    *d_tags, d_transitions, d_start, d_end = [numpy.zeros(array.shape) for array in shapes]
    loss = 0.0
    for tags_TK, gold_T, d_TK in zip(scores.tags, gold, d_tags, strict=True):
        if not len(gold_T):
            continue
        scores_TBK: Array = numpy.asarray(tags_TK)[:, None]
        chain = [scores_TBK, numpy.asarray([len(gold_T)]), scores.transitions, scores.start, scores.end]
        weights = weigh_paths([torch.tensor(array, dtype=torch.float64) for array in chain], 0)
        everything = {path: weight for path, weight in weights.items() if is_legal(TAGS, path)}
        agrees = {
            path: weight
            for path, weight in everything.items()
            if all(tag in (MISSING, own) for tag, own in zip(gold_T, path, strict=True))
        }
        loss += log_sum(everything.values()) - log_sum(agrees.values())
        for sign, some in ((1, everything), (-1, agrees)):
            total = log_sum(some.values())
            for path, weight in some.items():
                probability = sign * numpy.exp(weight - total)
                for t, tag in enumerate(path):
                    d_TK[t, tag] += probability
                for pair in itertools.pairwise(path):
                    d_transitions[pair] += probability
                d_start[path[0]] += probability
                d_end[path[-1]] += probability
    return loss, ChainScores(d_tags, d_transitions, d_start, d_end)


def check_equal(found: ChainScores, expected: ChainScores) -> None:
    assert_allclose(found.transitions, expected.transitions, atol=1e-5)
    assert_allclose(found.start, expected.start, atol=1e-5)
    assert_allclose(found.end, expected.end, atol=1e-5)
    for found_TK, expected_TK in zip(found.tags, expected.tags, strict=True):
        assert found_TK.shape == expected_TK.shape
        assert found_TK.dtype == "float32"
        assert_allclose(found_TK, expected_TK, atol=1e-5)


@pytest.mark.parametrize(
    "gold",
    [
        [as_gold("O")],
        [as_gold("U-A")],
        [as_gold("O", "B-A", "L-A", "O")],
        [as_gold("B-A", "L-A"), as_gold("O", "U-A", "U-A", "O"), as_gold("O")],
        [as_gold(None, "U-A", None, None)],
        [as_gold("O", None), as_gold(None, None, None), as_gold("B-A", "I-A", "L-A")],
        [as_gold(), as_gold("O", None, "O"), as_gold(), as_gold("U-A"), as_gold()],
    ],
)
def test_loss_and_gradients_are_those_of_all_paths_written_out(gold: list[Array]) -> None:
    scores = make_scores(*map(len, gold))
    expected_loss, expected = written_out(scores, gold)
    loss, gradients = loss_and_gradients(NumpyOps(), scores, gold, TAGS)
    assert_allclose(loss, expected_loss, rtol=1e-6)
    check_equal(gradients, expected)


@pytest.mark.parametrize("lengths", [[], [0], [0, 2, 1], [*range(3, 14)]])
def test_without_gold_nothing_is_learned(lengths: list[int]) -> None:
    gold = [as_gold(*[None] * length) for length in lengths]
    loss, gradients = loss_and_gradients(NumpyOps(), make_scores(*lengths), gold, TAGS)
    assert loss == 0
    assert [d_TK.shape for d_TK in gradients.tags] == [(length, len(TAGS)) for length in lengths]
    for array in (*gradients.tags, gradients.transitions, gradients.start, gradients.end):
        assert not array.any()


def test_loss_is_a_sum_over_docs() -> None:
    gold = [as_gold("B-A", "L-A"), as_gold("O", "U-A", None)]
    scores = make_scores(2, 3)
    whole, _ = loss_and_gradients(NumpyOps(), scores, gold, TAGS)
    weights = (scores.transitions, scores.start, scores.end)
    parts = [
        loss_and_gradients(NumpyOps(), ChainScores([tags_TK], *weights), [gold_T], TAGS)[0]
        for tags_TK, gold_T in zip(scores.tags, gold, strict=True)
    ]
    assert_allclose(whole, sum(parts))


def test_gradients_inside_inference_mode() -> None:
    with torch.inference_mode():
        loss, gradients = loss_and_gradients(NumpyOps(), make_scores(2), [as_gold("O", "U-A")], TAGS)
    assert loss > 0
    assert gradients.transitions.any()


def test_scores_that_are_too_far_apart() -> None:
    scores = make_scores(1)
    scores.tags[0][0] = [0, 0, 2000, 0, 0]
    with pytest.raises(ValueError, match="hundreds apart"):
        loss_and_gradients(NumpyOps(), scores, [as_gold("O")], TAGS)
    scores.tags[0][0] = [0, 0, 500, 0, 0]
    assert loss_and_gradients(NumpyOps(), scores, [as_gold("O")], TAGS)[0] < 10


def test_scores_with_another_default_device() -> None:
    scores, gold, mask = make_scores(2), [as_gold("O", "U-A")], numpy.ones((2, len(TAGS)), dtype=bool)
    expected = (
        loss_and_gradients(NumpyOps(), scores, gold, TAGS)[0],
        decode(NumpyOps(), scores, [mask], TAGS)[0].tolist(),
    )
    with torch.device("meta"):
        loss = loss_and_gradients(NumpyOps(), scores, gold, TAGS)[0]
        assert loss_and_gradients(NumpyOps(), scores, [as_gold(None, None)], TAGS)[0] == 0
        assert (loss, decode(NumpyOps(), scores, [mask], TAGS)[0].tolist()) == expected
