"""The perplexity of a text under a language model: with the full softmax, each sentence on its own."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple, dataclass
from itertools import islice
from math import exp, inf, isfinite, log

import torch

from ..bilm.embed import batch_by_length, run_batch
from .language_model import LanguageModel
from .vocabulary import Vocabulary

CHUNK_SENTENCES = 2000  # put into batches together
MAX_BATCH_ITEMS = 4096
LARGEST_LOSS = 700  # nats per word: the exponential function of much more is too large for a float


@dataclass(frozen=True)
class Likelihood:
    """The negative log-likelihood of a text. Those of its parts can be added.

    forward, backward (float): The sum of each direction's cross-entropies, in nats.
    unigram (float): The same for a unigram model: the word frequencies of the training text.
    n_predicted (int): Predictions of each direction: the words of all sentences, and their ends or starts.
    n_unknown (int): Predictions of words that are not in the vocabulary. They count as one class.
    """

    forward: float = 0.0
    backward: float = 0.0
    unigram: float = 0.0
    n_predicted: int = 0
    n_unknown: int = 0

    def __add__(self, other: "Likelihood") -> "Likelihood":
        return self.from_sums([a + b for a, b in zip(astuple(self), astuple(other), strict=True)])

    @classmethod
    def from_sums(cls, sums: list[float]) -> "Likelihood":
        """RETURNS (Likelihood): The likelihood with these values, in the order above."""
        forward, backward, unigram, n_predicted, n_unknown = sums
        return cls(forward, backward, unigram, round(n_predicted), round(n_unknown))

    @property
    def perplexities(self) -> dict[str, float]:
        """RETURNS (dict): Perplexities forward and backward, their mean, and that of the unigram model."""
        if not self.n_predicted:
            raise ValueError("There is no sentence to predict: the text is empty.")
        forward, backward, unigram = (
            _perplexity(total / self.n_predicted) for total in (self.forward, self.backward, self.unigram)
        )
        return {"forward": forward, "backward": backward, "mean": (forward + backward) / 2, "unigram": unigram}

    def to_dict(self) -> dict[str, float]:
        """RETURNS (dict): The perplexities and the numbers of predictions, as JSON has them."""
        counts = {"n_predicted": self.n_predicted, "n_unknown": self.n_unknown}
        return {**{f"perplexity_{name}": value for name, value in self.perplexities.items()}, **counts}


def measure_likelihood(
    model: LanguageModel,
    vocabulary: Vocabulary,
    sentences: Iterable[Sequence[str]],
    *,
    is_stopped: Callable[[], bool] = lambda: False,
) -> Likelihood:
    """Measure the likelihood of sentences, each from the model's initial state.

    model (LanguageModel): The model.
    vocabulary (Vocabulary): The words that it predicts.
    sentences (Iterable[Sequence[str]]): The sentences' words.
    is_stopped (Callable): Called after each batch. If it returns true, the rest is left out.
    RETURNS (Likelihood): Their likelihood.
    """
    total = Likelihood()
    rest = iter(sentences)
    while chunk := list(islice(rest, CHUNK_SENTENCES)):
        for batch in batch_by_length([len(sentence) + 2 for sentence in chunk], MAX_BATCH_ITEMS):
            total += _measure_batch(model, vocabulary, [chunk[i] for i in batch])
            if is_stopped():
                return total
    return total


def check_finite_perplexity(perplexity: float, step: int) -> None:
    """Refuse weights that have diverged.

    perplexity (float): The dev perplexity.
    step (int): The step after which it was measured, for the error.
    """
    if not isfinite(perplexity):
        raise FloatingPointError(
            f"After step {step} the dev perplexity is {perplexity}, though the loss was finite: the training has diverged. Its "
            f"weights were not saved."
        )


def _perplexity(loss: float) -> float:
    return inf if loss > LARGEST_LOSS else exp(loss)


@torch.no_grad()
def _measure_batch(model: LanguageModel, vocabulary: Vocabulary, batch: list[Sequence[str]]) -> Likelihood:
    layers, _ = run_batch(model.bilm, batch, model.bilm.start(len(batch)), with_marks=True)
    width = model.bilm.config.projection
    tops = [layers_LTW[-1] for layers_LTW in layers]
    # Forward, each token but the last predicts the next one; backward, each but the first predicts the one before.
    forward = torch.cat([top_TW[:-1, :width] for top_TW in tops])
    backward = torch.cat([top_TW[1:, width:] for top_TW in tops])
    ids = [[vocabulary.id_of(word) for word in sentence] for sentence in batch]
    nexts = [i for sentence in ids for i in [*sentence, vocabulary.END]]
    befores = [i for sentence in ids for i in [vocabulary.BEGIN, *sentence]]
    return Likelihood(
        forward=_sum_of_losses(model, forward, nexts),
        backward=_sum_of_losses(model, backward, befores),
        unigram=_unigram_loss(nexts, vocabulary),
        n_predicted=len(nexts),
        n_unknown=nexts.count(vocabulary.UNKNOWN),
    )


def _sum_of_losses(model: LanguageModel, x_NP: torch.Tensor, targets: list[int]) -> float:
    return float(model.softmax.losses(x_NP, torch.as_tensor(targets).to(x_NP.device)).double().sum())


def _unigram_loss(ids: list[int], vocabulary: Vocabulary) -> float:
    """Compute the cross-entropy of the unigram model. Each count is one higher, so that none is zero."""
    total = vocabulary.n_predicted + len(vocabulary)
    return sum(n * (log(total) - log(vocabulary.counts[i] + 1)) for i, n in Counter(ids).items())
