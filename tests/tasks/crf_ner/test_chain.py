"""The algorithms of a chain, against all paths written out."""

import itertools

import numpy
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from spacy_elmo.tasks.crf_ner.chain import best_path, log_partition
from spacy_elmo.tasks.crf_ner.tags import Tags

from .chains import NO_PATH, Array, is_legal, log_sum, weigh_paths


def random_chain(lengths: list[int], n_tags: int, seed: int = 0, legal: Tags | None = None) -> list[Array]:
    """Make scores_TBK, lengths_B, transitions_KK, start_K, end_K; what is beyond a length would turn any result."""
    random = numpy.random.RandomState(seed)
    scores = random.normal(size=(max(lengths), len(lengths), n_tags))
    for i, length in enumerate(lengths):
        scores[length:, i] = random.normal(size=(max(lengths) - length, n_tags)) * 300
    transitions, start, end = (
        random.normal(size=(n_tags, n_tags)),
        random.normal(size=n_tags),
        random.normal(size=n_tags),
    )
    if legal is not None:
        transitions[~legal.legal_KK], start[~legal.start_K], end[~legal.end_K] = NO_PATH, NO_PATH, NO_PATH
    return [torch.tensor(array) for array in (scores, numpy.asarray(lengths), transitions, start, end)]


CHAINS = [
    random_chain([1], 3),
    random_chain([4], 3),
    random_chain([2, 5, 1, 5, 3], 3, seed=1),
    random_chain([1, 1], 5, seed=2, legal=Tags(["A"])),
    random_chain([3, 1, 4, 2], 5, seed=3, legal=Tags(["A"])),
]


@pytest.mark.parametrize("chain", CHAINS)
def test_log_partition_is_the_sum_over_all_paths(chain: list[Array]) -> None:
    expected = [log_sum(weigh_paths(chain, i).values()) for i in range(len(chain[1]))]
    assert_allclose(log_partition(*chain), expected, rtol=1e-12)


@pytest.mark.parametrize("chain", CHAINS)
def test_best_path_is_the_best_of_all_paths(chain: list[Array]) -> None:
    tags_TB = best_path(*chain)
    for i, length in enumerate(chain[1].tolist()):
        weights = weigh_paths(chain, i)
        assert tuple(tags_TB[:length, i].tolist()) == max(weights, key=weights.__getitem__)
        assert not tags_TB[length:, i].any()


@pytest.mark.parametrize("chain", CHAINS)
def test_gradients_are_marginals(chain: list[Array]) -> None:
    scores, lengths, transitions, start, end = chain = [
        tensor.clone().requires_grad_(tensor.is_floating_point()) for tensor in chain
    ]
    found = torch.autograd.grad(log_partition(*chain).sum(), [scores, transitions, start, end], materialize_grads=True)
    expected = [numpy.zeros(tensor.shape) for tensor in (scores, transitions, start, end)]
    for i in range(len(lengths)):
        weights = weigh_paths(chain, i)
        total = log_sum(weights.values())
        for path, weight in weights.items():
            probability = numpy.exp(weight - total)
            for t, tag in enumerate(path):
                expected[0][t, i, tag] += probability
            for pair in itertools.pairwise(path):
                expected[1][pair] += probability
            expected[2][path[0]] += probability
            expected[3][path[-1]] += probability
    for gradient, marginals in zip(found, expected, strict=True):
        assert_allclose(gradient, marginals, atol=1e-12)


@given(lengths=st.lists(st.integers(1, 12), min_size=1, max_size=6), seed=st.integers(0, 1000))
def test_sequences_do_not_depend_on_their_batch(lengths: list[int], seed: int) -> None:
    tags = Tags(["A", "B"])
    chain = random_chain(lengths, len(tags), seed, legal=tags)
    together, paths = log_partition(*chain), best_path(*chain)
    for i, length in enumerate(lengths):
        alone = [chain[0][:length, i : i + 1], chain[1][i : i + 1], *chain[2:]]
        assert_allclose(log_partition(*alone)[0], together[i], rtol=1e-12)
        assert_array_equal(best_path(*alone)[:, 0], paths[:length, i])
        assert is_legal(tags, tuple(paths[:length, i].tolist()))


def test_long_sequences_with_high_scores_keep_their_digits() -> None:
    tags = Tags(["A", "B"])
    scores, *rest = random_chain([600, 10], len(tags), legal=tags)
    scores = (30 * scores).requires_grad_()
    (marginals,) = torch.autograd.grad(log_partition(scores, *rest).sum(), scores)
    assert_allclose(marginals[:, 0].sum(dim=1), 1, rtol=1e-9)
    assert not marginals[10:, 1].any()
