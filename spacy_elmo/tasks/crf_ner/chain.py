"""A linear chain of tags: what all its paths weigh together, and which of them is the best.

The score of a path y of n tags is start[y_1] + sum_t scores[t, y_t] + sum_t transitions[y_t, y_t+1] + end[y_n]
(Lample et al. 2016, section 2.2). What must not be has a score of minus infinity; at least one path must be possible.
"""

import torch
from torch import Tensor


def log_partition(
    scores_TBK: Tensor, lengths_B: Tensor, transitions_KK: Tensor, start_K: Tensor, end_K: Tensor
) -> Tensor:
    """Sum over all paths: the logarithm of sum_y exp(score(y)).

    The forward algorithm, in products that are scaled at each step (Rabiner 1989, section V.A). A step is a product of
    matrices, where in logarithms it is K exponentials for each tag; a long doc is as exact as a short one; and the
    gradient of what must not be is zero, where that of the logarithm of nothing is not a number. In float64 tags may
    differ by 700 in their scores.

    scores_TBK (Tensor): The score of each tag for each token; what is beyond a sequence's length must be finite.
    lengths_B (Tensor): Tokens in each sequence, at least 1.
    transitions_KK (Tensor): The score of going from one tag (row) to the next (column).
    start_K, end_K (Tensor): The scores of the first tag and of the last.
    RETURNS (Tensor): logZ_B.
    """
    order_B, runs_TB = _longest_first(lengths_B)
    running_T = runs_TB.sum(dim=1).tolist()
    scores_TBK = scores_TBK[:, order_B]
    highest_TB = scores_TBK.detach().amax(dim=2)
    # Taken apart in one go: the gradient of a single step would be as large as all the scores.
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
    """Find the path of the highest score, by the Viterbi algorithm.

    scores_TBK, lengths_B, transitions_KK, start_K, end_K (Tensor): As for `log_partition`.
    RETURNS (Tensor): tags_TB, 0 beyond a sequence's length.
    """
    order_B, runs_TB = _longest_first(lengths_B)
    running_T = runs_TB.sum(dim=1).tolist()
    steps = scores_TBK[:, order_B].unbind()
    best = [start_K + steps[0]]  # for each step, the score of the best path to each tag
    for t, n in enumerate(running_T[1:], start=1):
        best.append((best[-1][:n, :, None] + transitions_KK).amax(dim=1) + steps[t][:n])
    tags_TB = torch.zeros_like(runs_TB, dtype=torch.long)
    after_BK = end_K.repeat(len(order_B), 1)  # for each tag, the score of going from it to what comes after
    for t in reversed(range(len(running_T))):
        n = running_T[t]
        tag_B = (best[t] + after_BK[:n]).argmax(dim=1)
        tags_TB[t, :n] = tag_B
        after_BK[:n] = transitions_KK.T[tag_B]
    return tags_TB[:, order_B.argsort()]


def _longest_first(lengths_B: Tensor) -> tuple[Tensor, Tensor]:
    """Sort sequences by length, so that those which still run at a step come first and no step computes more.

    RETURNS (tuple): order_B, and runs_TB: whether a sequence, in that order, has a token at a step.
    """
    order_B = lengths_B.argsort(descending=True, stable=True)
    steps_T = torch.arange(int(lengths_B.max()), device=lengths_B.device)
    return order_B, lengths_B[order_B] > steps_T[:, None]
