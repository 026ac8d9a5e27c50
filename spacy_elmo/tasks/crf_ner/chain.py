"""The algorithms of a linear chain of tags: the sum over all paths, and the best path.

The score of a path y of n tags is start[y_1] + sum_t scores[t, y_t] + sum_t transitions[y_t, y_t+1] + end[y_n]
(Lample et al. 2016, section 2.2). Forbidden tags and transitions have a score of minus infinity. At least one path must
be possible.

Shape suffixes: T token, B sequence, K tag, N token of all sequences.
"""

import torch
from torch import Tensor


def log_partition(
    scores_TBK: Tensor, lengths_B: Tensor, transitions_KK: Tensor, start_K: Tensor, end_K: Tensor
) -> Tensor:
    """Sum over all paths: the logarithm of sum_y exp(score(y)).

    This is the forward algorithm with probabilities that are scaled at each step (Rabiner 1989, section V.A). Unlike
    with logarithms, a step is one matrix product, and the gradient of a forbidden tag is zero instead of not a number.
    Long docs are as exact as short ones. In float64 the scores of tags may differ by up to 700.

    scores_TBK (Tensor): The score of each tag for each token. Padding must be finite.
    lengths_B (Tensor): The number of tokens in each sequence, at least 1.
    transitions_KK (Tensor): The score of going from one tag (row) to the next (column).
    start_K, end_K (Tensor): The scores of the first tag and of the last.
    RETURNS (Tensor): logZ_B.
    """
    order_B, runs_TB = _longest_first(lengths_B)
    running_T = runs_TB.sum(dim=1).tolist()
    scores_TBK = scores_TBK[:, order_B]
    highest_TB = scores_TBK.detach().amax(dim=2)
    # Split by unbind: indexing single steps would make a gradient of the size of all scores for each step.
    factors = (scores_TBK - highest_TB[:, :, None]).exp().unbind()
    weights_KK = transitions_KK.exp()
    weight_BK = start_K.exp() * factors[0]
    scales: list[Tensor] = []
    ended: list[Tensor] = []
    for t, n in enumerate(running_T):
        if t > 0:
            ended.append(weight_BK[n:])
            weight_BK = weight_BK[:n] @ weights_KK * factors[t][:n]
        scale_B1 = weight_BK.sum(dim=1, keepdim=True)
        weight_BK = weight_BK / scale_B1
        scales.append(scale_B1)
    weight_BK = torch.cat([weight_BK, *reversed(ended)])
    logZ_B = (weight_BK * end_K.exp()).sum(dim=1).log()
    _, rows_N = runs_TB.nonzero().T
    logZ_B = logZ_B.index_add(0, rows_N, torch.cat(scales)[:, 0].log() + highest_TB[runs_TB])
    return logZ_B[order_B.argsort()]


def best_path(scores_TBK: Tensor, lengths_B: Tensor, transitions_KK: Tensor, start_K: Tensor, end_K: Tensor) -> Tensor:
    """Find the path with the highest score by the Viterbi algorithm.

    scores_TBK, lengths_B, transitions_KK, start_K, end_K (Tensor): As for `log_partition`.
    RETURNS (Tensor): tags_TB, where padding is 0.
    """
    order_B, runs_TB = _longest_first(lengths_B)
    running_T = runs_TB.sum(dim=1).tolist()
    steps = scores_TBK[:, order_B].unbind()
    best = [start_K + steps[0]]  # for each step, the score of the best path to each tag
    for t, n in enumerate(running_T[1:], start=1):
        best.append((best[-1][:n, :, None] + transitions_KK).amax(dim=1) + steps[t][:n])
    tags_TB = torch.zeros_like(runs_TB, dtype=torch.long)
    after_BK = end_K.repeat(len(order_B), 1)  # for each tag, the score of the transition to the tag after it
    for t in reversed(range(len(running_T))):
        n = running_T[t]
        tag_B = (best[t] + after_BK[:n]).argmax(dim=1)
        tags_TB[t, :n] = tag_B
        after_BK[:n] = transitions_KK.T[tag_B]
    return tags_TB[:, order_B.argsort()]


def _longest_first(lengths_B: Tensor) -> tuple[Tensor, Tensor]:
    """Sort sequences by length, so that each step computes only the first rows, whose sequences have not ended.

    RETURNS (tuple): order_B, and runs_TB: whether each sequence, in that order, has a token at each step.
    """
    order_B = lengths_B.argsort(descending=True, stable=True)
    steps_T = torch.arange(int(lengths_B.max()), device=lengths_B.device)
    return order_B, lengths_B[order_B] > steps_T[:, None]
