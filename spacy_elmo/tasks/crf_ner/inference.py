"""From the scores of a chain to a loss and its gradients, and to the best tags.

torch computes them on the CPU, on whatever device the scores are: a chain is many small steps in sequence, which a GPU
does not speed up. The sum over paths needs the range of float64.
"""

from collections.abc import Sequence
from typing import Any

import numpy
import torch
from numpy.typing import NDArray
from spacy.util import minibatch
from thinc.api import Ops
from thinc.types import ArrayXd
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from ...layers.forks import use_one_thread_after_fork
from .chain import best_path, log_partition
from .masks import MISSING
from .tagger import ChainScores
from .tags import Mask, Tags

DIVERGED = (
    "Some scores of crf_ner's model are infinite, not a number, or hundreds apart. Its weights have diverged in training, "
    "or its input vectors are broken. Lower [training.optimizer] learn_rate, or check the vectors of its tok2vec."
)

CPU = torch.device("cpu")

# The number of docs of similar length that are decoded together: large enough for efficient steps, small enough for the
# processor's cache.
DOCS_AT_ONCE = 64

use_one_thread_after_fork()


def loss_and_gradients(
    ops: Ops, scores: ChainScores, gold: Sequence[NDArray[Any]], tags: Tags
) -> tuple[float, ChainScores]:
    """Compute the negative log-likelihood of the gold tags: the log of the sum over all paths, minus the log of the sum
    over the paths that agree with the gold tags.

    Where a gold tag is missing, all tags agree with it, so that the rest of the doc is still learned from. A doc without
    any gold tag has a loss and gradients of exactly zero.

    ops (Ops): The ops of the scores' arrays.
    scores (ChainScores): The scores of some docs.
    gold (Sequence[NDArray]): For each doc, the id of each token's tag, or `MISSING`.
    tags (Tags): The tags.
    RETURNS (tuple): The loss, summed over docs, and its gradients.
    """
    lengths = [len(scores_TK) for scores_TK in scores.tags]
    with torch.inference_mode(False), torch.enable_grad():
        values = [value.requires_grad_() for value in _to_torch(ops, scores)]
        loss = _loss(lengths, gold, tags, *values)
        if not torch.isfinite(loss):
            raise ValueError(DIVERGED)
        # A loss may not depend on some scores, such as those of transitions if all docs have one token.
        gradients = (
            torch.autograd.grad(loss, values, materialize_grads=True)
            if loss.requires_grad
            else [torch.zeros_like(value) for value in values]
        )
    arrays: list[Any] = [gradient.float().numpy() for gradient in gradients]
    d_flat, d_transitions, d_start, d_end = arrays
    return loss.item(), ChainScores(
        tags=ops.unflatten(ops.asarray2f(d_flat), ops.asarray1i(lengths)),
        transitions=ops.asarray2f(d_transitions),
        start=ops.asarray1f(d_start),
        end=ops.asarray1f(d_end),
    )


def decode(ops: Ops, scores: ChainScores, masks: Sequence[Mask], tags: Tags) -> list[NDArray[Any]]:
    """Find the best legal tags.

    ops (Ops): The ops of the scores' arrays.
    scores (ChainScores): The scores of some docs.
    masks (Sequence[Mask]): For each doc, mask_TK: the tags that each token may have. They must allow a legal path.
    tags (Tags): The tags.
    RETURNS (list[NDArray]): For each doc, the id of each token's tag.
    """
    lengths = [len(scores_TK) for scores_TK in scores.tags]
    results: list[NDArray[Any]] = [numpy.zeros(0, dtype="int64") for _ in lengths]
    with torch.no_grad():
        flat_NK, *weights = _to_torch(ops, scores)
        weights = _forbid_illegal(tags, *weights)
        pieces = torch.split(flat_NK, lengths)
        by_length = sorted((i for i, length in enumerate(lengths) if length), key=lengths.__getitem__)
        for batch in minibatch(by_length, DOCS_AT_ONCE):
            scores_TBK = pad_sequence([_forbid(pieces[i], torch.from_numpy(masks[i])) for i in batch])
            lengths_B = torch.tensor([lengths[i] for i in batch], device=CPU)
            tags_BT = best_path(scores_TBK, lengths_B, *weights).T.numpy()
            for i, tags_T in zip(batch, tags_BT, strict=True):
                results[i] = tags_T[: lengths[i]]
    return results


def _loss(lengths: list[int], gold: Sequence[NDArray[Any]], tags: Tags, flat_NK: Tensor, *weights: Tensor) -> Tensor:
    pairs = [
        (scores_TK, torch.from_numpy(gold_T))
        for scores_TK, gold_T in zip(torch.split(flat_NK, lengths), gold, strict=True)
        if (gold_T != MISSING).any()
    ]
    if not pairs:
        return torch.zeros((), device=CPU)
    scores_TBK = pad_sequence([scores_TK for scores_TK, _ in pairs])
    gold_TB1 = pad_sequence([gold_T for _, gold_T in pairs], padding_value=MISSING)[:, :, None]
    agrees_TBK = (gold_TB1 == MISSING) | (gold_TB1 == torch.arange(len(tags), device=CPU))
    # Both sums are in one batch, so that there is only one loop over the steps.
    both_TBK = torch.cat([scores_TBK, _forbid(scores_TBK, agrees_TBK)], dim=1)
    lengths_B = torch.tensor([len(gold_T) for _, gold_T in pairs], device=CPU).repeat(2)
    log_all_B, log_gold_B = log_partition(both_TBK, lengths_B, *_forbid_illegal(tags, *weights)).chunk(2)
    return (log_all_B - log_gold_B).sum()


def _to_torch(ops: Ops, scores: ChainScores) -> list[Tensor]:
    """Copy scores to torch, with those of all docs concatenated: scores_NK, transitions_KK, start_K, end_K."""
    arrays: list[ArrayXd] = [ops.flatten(scores.tags), scores.transitions, scores.start, scores.end]
    tensors = [torch.tensor(ops.to_numpy(array), dtype=torch.float64, device=CPU) for array in arrays]
    if not all(torch.isfinite(tensor).all() for tensor in tensors):
        raise ValueError(DIVERGED)
    return tensors


def _forbid_illegal(tags: Tags, transitions_KK: Tensor, start_K: Tensor, end_K: Tensor) -> list[Tensor]:
    pairs = ((transitions_KK, tags.legal_KK), (start_K, tags.start_K), (end_K, tags.end_K))
    return [_forbid(scores, torch.from_numpy(mask)) for scores, mask in pairs]


def _forbid(scores: Tensor, mask: Tensor) -> Tensor:
    """Set the scores that a mask does not allow to minus infinity."""
    return scores.masked_fill(~mask, float("-inf"))
