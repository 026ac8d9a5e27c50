"""The softmax over words, sampled and full, against the formula spelled out."""

import math
from typing import Any

import numpy
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

from spacy_elmo.pretraining import softmax as softmax_module
from spacy_elmo.pretraining.softmax import Candidates, Softmax, all_words, sample_words

N_WORDS, WIDTH = 11, 4
TARGETS = [0, 3, 3, 10, 7, 2, 5, 3]
SAMPLED = [3, 9, 0, 6, 5]  # some targets are among them, some are not

Results = tuple[Tensor, Tensor, Tensor, Tensor]


def make_softmax(seed: int = 0) -> Softmax:
    softmax = Softmax(N_WORDS, WIDTH).double()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in softmax.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
    return softmax


def make_outputs(n: int = len(TARGETS), seed: int = 1) -> Tensor:
    return torch.randn(n, WIDTH, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def make_candidates(ids: list[int] = SAMPLED) -> Candidates:
    log_expected = numpy.log(numpy.linspace(0.9, 0.1, N_WORDS)).astype("float32")
    return Candidates(numpy.asarray(ids), log_expected)


def with_gradients(softmax: Softmax, x: Tensor, targets: list[int], candidates: Candidates) -> Results:
    x = x.clone().requires_grad_()
    loss = softmax(x, torch.tensor(targets, dtype=torch.int64), candidates)
    # Any loss is a part of a larger sum.
    d_x, d_weight, d_bias = torch.autograd.grad(1.7 * loss, [x, softmax.weight, softmax.bias])
    return loss.detach(), d_x, d_weight, d_bias


def spelled_out(softmax: Softmax, x: Tensor, targets: list[int], candidates: Candidates) -> Results:
    """One prediction and one candidate at a time."""
    x = x.clone().requires_grad_()
    correction = candidates.log_expected_V

    def score(n: int, word: int) -> Tensor:
        value = (x[n] * softmax.weight[word]).sum() + softmax.bias[word]
        return value if correction is None else value - float(correction[word])

    loss = torch.zeros((), dtype=torch.float64)
    for n, target in enumerate(targets):
        words = {target, *candidates.ids_S.tolist()}
        total = torch.stack([torch.exp(score(n, word)) for word in sorted(words)]).sum()
        loss = loss + torch.log(total) - score(n, target)
    d_x, d_weight, d_bias = torch.autograd.grad(1.7 * loss, [x, softmax.weight, softmax.bias])
    return loss.detach(), d_x, d_weight, d_bias


def assert_same(results: Results, expected: Results, tolerance: float = 1e-10) -> None:
    for value, other, name in zip(results, expected, ("loss", "x", "weight", "bias"), strict=True):
        assert_allclose(value.numpy(), other.numpy(), rtol=tolerance, atol=tolerance, err_msg=name)


# Loss and gradients


@pytest.mark.parametrize(
    "candidates",
    [make_candidates(), make_candidates([1, 4, 8]), make_candidates([3]), all_words(N_WORDS)],
    ids=["some right", "none right", "one", "full"],
)
def test_loss_and_gradients_agree_with_the_formula(candidates: Candidates) -> None:
    softmax, x = make_softmax(), make_outputs()
    assert_same(with_gradients(softmax, x, TARGETS, candidates), spelled_out(softmax, x, TARGETS, candidates))


@given(
    targets=st.lists(st.integers(0, N_WORDS - 1), min_size=1, max_size=6),
    ids=st.lists(st.integers(0, N_WORDS - 1), min_size=1, max_size=N_WORDS, unique=True),
    seed=st.integers(0, 100),
)
def test_any_loss_agrees_with_the_formula(targets: list[int], ids: list[int], seed: int) -> None:
    softmax, x, candidates = make_softmax(seed), make_outputs(len(targets), seed + 1), make_candidates(ids)
    assert_same(with_gradients(softmax, x, targets, candidates), spelled_out(softmax, x, targets, candidates))


def test_full_softmax_is_cross_entropy() -> None:
    softmax, x = make_softmax(), make_outputs().requires_grad_()
    loss = functional.cross_entropy(x @ softmax.weight.T + softmax.bias, torch.as_tensor(TARGETS), reduction="sum")
    gradients = torch.autograd.grad(1.7 * loss, [x, softmax.weight, softmax.bias])
    results = with_gradients(softmax, x.detach(), TARGETS, all_words(N_WORDS))
    assert_same(results, (loss.detach(), *gradients))


def test_right_word_counts_once_among_the_candidates() -> None:
    softmax, x = make_softmax(), make_outputs(1)
    # Alone with itself, a word is certain; counted twice it would be one of two.
    loss, d_x, d_weight, d_bias = with_gradients(softmax, x, [3], make_candidates([3]))
    assert float(loss) == pytest.approx(0, abs=1e-12)
    for gradient in (d_x, d_weight, d_bias):
        assert_allclose(gradient.numpy(), 0, atol=1e-12)
    # Whether it was drawn or not makes no difference.
    with_it = with_gradients(softmax, x, [3], make_candidates([1, 3, 8]))
    without = with_gradients(softmax, x, [3], make_candidates([1, 8]))
    assert float(without[0]) > 0.01
    assert_same(with_it, without)


def test_order_of_the_candidates_does_not_matter() -> None:
    softmax, x = make_softmax(), make_outputs()
    one = with_gradients(softmax, x, TARGETS, make_candidates(SAMPLED))
    assert_same(one, with_gradients(softmax, x, TARGETS, make_candidates(SAMPLED[::-1])))


@pytest.mark.parametrize("chunk", [1, N_WORDS, 2 * N_WORDS, 3 * N_WORDS + 1, 1000])
@pytest.mark.parametrize("candidates", [make_candidates(), all_words(N_WORDS)], ids=["sampled", "full"])
def test_chunks_do_not_matter(chunk: int, candidates: Candidates, monkeypatch: pytest.MonkeyPatch) -> None:
    softmax, x = make_softmax(), make_outputs()
    expected = with_gradients(softmax, x, TARGETS, candidates)
    losses = softmax.losses(x, torch.as_tensor(TARGETS))
    monkeypatch.setattr(softmax_module, "CHUNK_SCORES", chunk)
    assert_same(with_gradients(softmax, x, TARGETS, candidates), expected)
    torch.testing.assert_close(softmax.losses(x, torch.as_tensor(TARGETS)), losses, rtol=1e-12, atol=1e-12)


def test_large_scores_do_not_overflow() -> None:
    softmax, x = make_softmax(), 1e4 * make_outputs()
    loss, *gradients = with_gradients(softmax, x, TARGETS, all_words(N_WORDS))
    expected = functional.cross_entropy(x @ softmax.weight.T + softmax.bias, torch.as_tensor(TARGETS), reduction="sum")
    torch.testing.assert_close(loss, expected.detach())
    assert all(torch.isfinite(gradient).all() for gradient in gradients)


def test_nothing_to_predict() -> None:
    softmax = make_softmax()
    loss, d_x, d_weight, d_bias = with_gradients(softmax, make_outputs(0), [], make_candidates())
    assert float(loss) == 0
    assert d_x.shape == (0, WIDTH)
    assert not d_weight.any()
    assert not d_bias.any()


def test_bfloat16_is_close_to_float32() -> None:
    softmax, x = make_softmax().float(), make_outputs().float()
    for candidates in (make_candidates(), all_words(N_WORDS)):
        expected = with_gradients(softmax, x, TARGETS, candidates)
        with torch.autocast("cpu", torch.bfloat16):
            results = with_gradients(softmax, x, TARGETS, candidates)
        assert not torch.equal(results[0], expected[0])  # it was on
        for value, other in zip(results, expected, strict=True):
            assert value.dtype == torch.float32
            assert (value - other).norm() / other.norm() < 0.02


def test_losses_are_those_of_each_word() -> None:
    softmax, x, targets = make_softmax(), make_outputs(), torch.as_tensor(TARGETS)
    losses = softmax.losses(x, targets)
    scores = (x @ softmax.weight.T + softmax.bias).detach().numpy()
    expected = [math.log(sum(map(math.exp, row))) - row[target] for row, target in zip(scores, TARGETS, strict=True)]
    assert not losses.requires_grad
    assert_allclose(losses.numpy(), expected, rtol=1e-12)
    assert softmax(x, targets, all_words(N_WORDS)).item() == pytest.approx(sum(expected), rel=1e-12)


def test_initial_weights_follow_from_the_seed_and_the_frequencies() -> None:
    counts = list(range(400, 0, -1))
    softmax, same, other = (Softmax(400, 25).initialize(seed, counts) for seed in (3, 3, 4))
    assert torch.equal(softmax.weight, same.weight)
    assert not torch.allclose(softmax.weight, other.weight)
    assert float(softmax.weight.detach().std()) == pytest.approx(0.1, rel=0.03)
    # Before it has learned, it knows how frequent words are, each counted once more.
    losses = softmax.losses(torch.zeros(400, 25), torch.arange(400))
    assert_allclose(losses.numpy(), -numpy.log((numpy.asarray(counts) + 1) / (sum(counts) + 400)), rtol=1e-5)


# Candidates


def probabilities(n_words: int) -> NDArray[Any]:
    return numpy.asarray([math.log((r + 2) / (r + 1)) / math.log(n_words + 1) for r in range(n_words)])


def test_all_words_are_all_words() -> None:
    candidates = all_words(5)
    assert candidates.ids_S.tolist() == [0, 1, 2, 3, 4]
    assert candidates.log_expected_V is None


@given(n_words=st.integers(2, 60), fraction=st.floats(0, 1), seed=st.integers(0, 1000))
def test_samples_are_different_words(n_words: int, fraction: float, seed: int) -> None:
    n_samples = max(1, round(fraction * (n_words - 1)))
    candidates = sample_words(n_words, n_samples, numpy.random.default_rng(seed))
    assert len(candidates.ids_S) == len(set(candidates.ids_S.tolist())) == n_samples
    assert candidates.ids_S.min() >= 0
    assert candidates.ids_S.max() < n_words
    assert candidates.log_expected_V is not None
    assert candidates.log_expected_V.shape == (n_words,)
    assert candidates.log_expected_V.dtype == numpy.float32
    assert (candidates.log_expected_V <= 0).all()
    assert (numpy.diff(candidates.log_expected_V) <= 0).all()  # the rarer a word, the less it is expected


def test_samples_follow_from_the_seed() -> None:
    one, same, other = (sample_words(1000, 50, numpy.random.default_rng([seed, 7])) for seed in (1, 1, 2))
    assert_array_equal(one.ids_S, same.ids_S)
    assert_array_equal(one.log_expected_V, same.log_expected_V)
    assert set(one.ids_S.tolist()) != set(other.ids_S.tolist())


def test_samples_are_drawn_by_rank() -> None:
    # One sample at a time is drawn just with the probabilities of the log-uniform law.
    random = numpy.random.default_rng(0)
    n_draws = 10_000
    ids = [int(sample_words(6, 1, random).ids_S[0]) for _ in range(n_draws)]
    frequencies = numpy.bincount(ids, minlength=6) / n_draws
    assert probabilities(6).sum() == pytest.approx(1)
    assert_allclose(frequencies, probabilities(6), atol=0.02)
    candidates = sample_words(6, 1, random)
    assert_allclose(candidates.log_expected_V, numpy.log(probabilities(6)), rtol=1e-5)


def test_expected_frequencies_are_those_that_come_out() -> None:
    random = numpy.random.default_rng(0)
    n_words, n_samples, n_draws = 30, 8, 4_000
    drawn, expected = numpy.zeros(n_words), numpy.zeros(n_words)
    for _ in range(n_draws):
        candidates = sample_words(n_words, n_samples, random)
        drawn[candidates.ids_S] += 1 / n_draws
        assert candidates.log_expected_V is not None
        expected += numpy.exp(candidates.log_expected_V) / n_draws
    assert drawn.sum() == pytest.approx(n_samples)
    assert_allclose(expected, drawn, atol=0.03)
    # The frequent words are nearly always there, the rare ones seldom: a wrong number of tries would show.
    assert drawn[0] > 0.85
    assert drawn[-1] < 0.15


class FixedNumbers(numpy.random.Generator):
    """Random numbers that are written down here."""

    def __init__(self, numbers: list[float]) -> None:
        super().__init__(numpy.random.PCG64(0))
        self.numbers = numbers

    def random(self, size: Any = None, *args: Any, **kwargs: Any) -> Any:
        taken, self.numbers = self.numbers[:size], self.numbers[size:]
        return numpy.asarray(taken)


def test_samples_end_with_the_draw_that_completes_them() -> None:
    # Of 7 words, log 8: below 1/3 is word 0, below log 3 / log 8 = 0.528 word 1, below 2/3 word 2, and so on.
    random = FixedNumbers([0.999, 0.1, 0.2, 0.3, 0.4, 0.1, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99])
    candidates = sample_words(7, 3, random)
    assert candidates.ids_S.tolist() == [6, 0, 1]
    expected = [1 - (1 - p) ** 5 for p in probabilities(7)]  # five draws for three words
    assert_allclose(candidates.log_expected_V, numpy.log(expected), rtol=1e-5)


@pytest.mark.parametrize("n_samples", [0, -1, 10, 11])
def test_samples_must_be_fewer_than_words(n_samples: int) -> None:
    with pytest.raises(ValueError, match=rf"Of 10 words, 1 to 9 can be sampled, not {n_samples}\."):
        sample_words(10, n_samples, numpy.random.default_rng(0))


class RowsOfProducts(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Lists the shapes of the first factors of all products."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.shapes: set[tuple[int, ...]] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.ops.aten.mm.default:
            self.shapes.add(tuple(args[0].shape))
        return func(*args, **(kwargs or {}))


def test_products_have_few_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    softmax, candidates, rows_in_a_chunk = make_softmax(), make_candidates(), 100
    monkeypatch.setattr(softmax_module, "CHUNK_SCORES", rows_in_a_chunk * len(SAMPLED))
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)  # the mode belongs to this thread
    with RowsOfProducts() as products:
        for n in range(1, 300, 7):
            with_gradients(softmax, make_outputs(n), [i % N_WORDS for i in range(n)], candidates)
    rows = {shape[0] for shape in products.shapes if shape[1] == WIDTH}
    assert rows == {32, 64, 96, rows_in_a_chunk}
    assert len(products.shapes) == 3 * len(rows)
