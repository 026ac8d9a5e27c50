"""The softmax that predicts the next word from the biLM's output: one for both directions, sampled or full.

Shape suffixes: N prediction, P projection, V word of the vocabulary, S candidate.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from ..bilm.precision import product_dtype
from ..bilm.threads import run_side_by_side

# Scores that are computed together. A chunk of them fits into the processor's cache, the scores of a whole batch do not.
CHUNK_SCORES = 2**19

# The number of predictions in a product is a multiple of this, or that of a whole chunk. It differs from step to step if
# sentences carry their state over, and oneDNN keeps half a megabyte of every new shape.
ROWS_STEP = 32

# The standard deviation of a new word's scores, for outputs of the biLM with a variance of 1.
INITIAL_SCALE = 0.5


class Candidates(NamedTuple):
    """The words that the softmax compares with the right one.

    ids_S (NDArray): The words, each once.
    log_expected_V (NDArray | None): For each word of the vocabulary, the logarithm of its probability to be among them;
        None if all words are candidates.
    """

    ids_S: NDArray[numpy.int64]
    log_expected_V: NDArray[numpy.float32] | None


def all_words(n_words: int) -> Candidates:
    """RETURNS (Candidates): The whole vocabulary, for the full softmax."""
    return Candidates(numpy.arange(n_words), None)


def sample_words(n_words: int, n_samples: int, random: numpy.random.Generator) -> Candidates:
    """Draw candidates by rank until there are enough different ones (Jean et al. 2015).

    The word at rank r has a probability in proportion to log((r + 2) / (r + 1)), which is close to its frequency.

    n_words (int): The size of the vocabulary, which is sorted by frequency.
    n_samples (int): The number of different words to draw; less than the size of the vocabulary.
    random (Generator): The random number generator.
    RETURNS (Candidates): The words.
    """
    if not 0 < n_samples < n_words:
        raise ValueError(f"Of {n_words} words, 1 to {n_words - 1} can be sampled, not {n_samples}.")
    drawn = numpy.empty(0, dtype="int64")
    while True:
        ranks = numpy.exp(random.random(2 * n_samples) * numpy.log(n_words + 1)).astype("int64") - 1
        drawn = numpy.concatenate([drawn, numpy.minimum(ranks, n_words - 1)])
        ids, first = numpy.unique(drawn, return_index=True)
        if len(ids) >= n_samples:
            break
    kept = numpy.argsort(first)[:n_samples]
    n_tries = first[kept[-1]] + 1
    rank_V = numpy.arange(n_words)
    probability_V = numpy.log1p(1 / (rank_V + 1)) / numpy.log(n_words + 1)
    expected_V = -numpy.expm1(n_tries * numpy.log1p(-probability_V))
    return Candidates(ids[kept], numpy.log(expected_V).astype("float32"))


class Softmax(nn.Module):
    """A vector and a bias for each word of the vocabulary.

    n_words (int): The size of the vocabulary.
    width (int): Width of the biLM's output in one direction.
    """

    def __init__(self, n_words: int, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(n_words, width))
        self.bias = nn.Parameter(torch.empty(n_words))

    def initialize(self, seed: int, counts: Sequence[int]) -> "Softmax":
        """Set the first weights: the softmax then predicts words by their frequency, whatever the biLM's output.

        seed (int): The seed. The same seed gives the same weights on every platform.
        counts (Sequence[int]): How often each word occurs.
        RETURNS (Softmax): The softmax itself.
        """
        values = numpy.random.RandomState(seed).standard_normal(tuple(self.weight.shape))
        frequencies = numpy.asarray(counts, dtype="float64") + 1
        with torch.no_grad():
            self.weight.copy_(torch.as_tensor(INITIAL_SCALE * values / numpy.sqrt(self.weight.shape[1])))
            self.bias.copy_(torch.as_tensor(numpy.log(frequencies / frequencies.sum())))
        return self

    def forward(self, x_NP: Tensor, targets_N: Tensor, candidates: Candidates) -> Tensor:
        """Score the right word against the candidates.

        x_NP (Tensor): The biLM's outputs.
        targets_N (Tensor): The right words.
        candidates (Candidates): The words to compare them with. A right word among them counts once.
        RETURNS (Tensor): The sum of the cross-entropies. With sampled candidates it is not a likelihood.
        """
        device = x_NP.device
        ids_S = torch.as_tensor(candidates.ids_S).to(device)
        position_V = targets_N.new_full((len(self.weight),), -1)
        position_V[ids_S] = torch.arange(len(ids_S), device=device)
        rows = torch.cat([targets_N, ids_S])
        vectors, biases = functional.embedding(rows, self.weight), self.bias[rows]
        if candidates.log_expected_V is not None:
            biases = biases - torch.as_tensor(candidates.log_expected_V).to(device)[rows]
        sizes = [len(targets_N), len(ids_S)]
        (true_NP, candidates_SP), (true_N, candidates_S) = torch.split(vectors, sizes), torch.split(biases, sizes)
        loss: Tensor = _CrossEntropy.apply(  # type: ignore[no-untyped-call]
            x_NP, true_NP, true_N, candidates_SP, candidates_S, position_V[targets_N]
        )
        return loss

    @torch.no_grad()
    def losses(self, x_NP: Tensor, targets_N: Tensor) -> Tensor:
        """Compute the cross-entropies of the full softmax, which are true likelihoods.

        x_NP (Tensor): The biLM's outputs.
        targets_N (Tensor): The right words.
        RETURNS (Tensor): losses_N, in nats.
        """
        n_rows = max(1, 8 * CHUNK_SCORES // len(self.weight))
        chunks = zip(torch.split(x_NP, n_rows), torch.split(targets_N, n_rows), strict=True)
        scores = ((functional.linear(x, self.weight, self.bias), targets) for x, targets in chunks)
        return torch.cat([functional.cross_entropy(*pair, reduction="none") for pair in scores])


class _CrossEntropy(torch.autograd.Function):
    """The summed cross-entropy of right words against candidates, and its gradients in the same pass. The scores take far more
    memory than anything else, so they are held for one chunk of predictions at a time."""

    @staticmethod
    def forward(
        ctx: Any,
        x_NP: Tensor,
        true_NP: Tensor,
        true_bias_N: Tensor,
        candidates_SP: Tensor,
        bias_S: Tensor,
        position_N: Tensor,
    ) -> Tensor:
        """Compute the loss and its gradients.

        x_NP (Tensor): The biLM's outputs.
        true_NP, true_bias_N (Tensor): The softmax's rows of the right words.
        candidates_SP, bias_S (Tensor): Those of the candidates.
        position_N (Tensor): The position of the right word among the candidates, or -1.
        RETURNS (Tensor): The sum of the cross-entropies.
        """
        dtype = product_dtype(x_NP)
        vectors_SP = candidates_SP.to(dtype)
        true_score_N = (x_NP * true_NP).sum(dim=-1).add_(true_bias_N)
        d_x, d_true_N = torch.empty_like(x_NP), torch.empty_like(true_score_N)
        chunk_rows = max(1, CHUNK_SCORES // len(bias_S))

        def run(part: slice) -> tuple[Tensor, Tensor, Tensor]:
            """Compute the loss of some predictions, and its gradients: those that add up are results."""
            loss, d_vectors, d_bias = (x_NP.new_zeros(()), torch.zeros_like(candidates_SP), torch.zeros_like(bias_S))
            scratch = x_NP.new_empty(chunk_rows, len(bias_S) + 1)
            for start in range(part.start, part.stop, chunk_rows):
                rows = slice(start, min(start + chunk_rows, part.stop))
                true_score, position = true_score_N[rows], position_N[rows]
                n_rows = len(position)
                n_padding = min(chunk_rows - n_rows, -n_rows % ROWS_STEP)
                x = _pad_rows(x_NP[rows].to(dtype), n_padding)
                # The right word is the last column, and nowhere else.
                scores = scratch[:n_rows]
                torch.add((x @ vectors_SP.T)[:n_rows], bias_S, out=scores[:, :-1])
                scores[:, -1] = true_score
                (hit,) = torch.nonzero(position >= 0, as_tuple=True)
                scores[hit, position[hit]] = -torch.inf
                probabilities = torch.softmax(scores, dim=-1)
                # The logarithm of the right word's own probability could be infinite.
                loss += (scores.amax(dim=-1) - probabilities.amax(dim=-1).log() - true_score).sum()
                d_true_N[rows] = probabilities[:, -1] - 1
                d_bias += probabilities[:, :-1].sum(dim=0)
                p = _pad_rows(probabilities[:, :-1].to(dtype), n_padding)
                d_vectors += p.T @ x
                d_x[rows] = (p @ vectors_SP)[:n_rows]
            return loss, d_vectors, d_bias

        middle = len(x_NP) // (2 * ROWS_STEP) * ROWS_STEP
        parts = run_side_by_side([partial(run, part) for part in (slice(0, middle), slice(middle, len(x_NP)))])
        (loss, d_vectors, d_bias), others = parts
        for total, other in zip((loss, d_vectors, d_bias), others, strict=True):
            total += other
        d_x.addcmul_(d_true_N.unsqueeze(1), true_NP)
        ctx.save_for_backward(d_x, d_true_N.unsqueeze(1) * x_NP, d_true_N, d_vectors, d_bias)
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_loss: Tensor) -> tuple[Tensor | None, ...]:
        """RETURNS (tuple): The gradients, which `forward` computed."""
        return *(gradient * d_loss for gradient in ctx.saved_tensors), None


def _pad_rows(x: Tensor, n_rows: int) -> Tensor:
    """RETURNS (Tensor): A matrix with rows of zeros added to it."""
    return functional.pad(x, (0, 0, 0, n_rows)) if n_rows else x  # padding with nothing would copy it
