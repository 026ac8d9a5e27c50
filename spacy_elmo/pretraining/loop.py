"""The training loop, step by step. What is random in a step follows from the seed and the number of the step."""

import gc
import math
import time
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

import numpy
import torch
from torch import Tensor
from torch.nn.utils import clip_grad_norm_

from ..bilm.characters import Mark
from ..bilm.lstm import Dropout
from ..bilm.threads import leave_threads_to_tasks
from .learner import Learner
from .processes import Processes
from .settings import TrainingSettings
from .softmax import Candidates, all_words, sample_words
from .streams import NO_TARGET, Batch


class Step(NamedTuple):
    """What one step did, in this process.

    number (int): The step, counted from 1.
    loss (float): The sum of the cross-entropies of both directions. It is not a likelihood if candidates were sampled.
    n_predicted (int): The number of predictions.
    n_words (int): Words that were read.
    learn_rate (float): The learning rate.
    grad_norm (float): The norm of all gradients, before it was clipped.
    seconds (float): The time of the step, that of reading its batch included.
    """

    number: int
    loss: float
    n_predicted: int
    n_words: int
    learn_rate: float
    grad_norm: float
    seconds: float


def train_steps(
    learner: Learner, settings: TrainingSettings, processes: Processes, *, n_steps: int, n_softmax_steps: int
) -> Iterator[Step]:
    """Train, step by step, from the learner's current state. The learner may be evaluated and saved between two steps.

    learner (Learner): The model, and all else that a step changes.
    settings (TrainingSettings): The settings.
    processes (Processes): The processes that train together.
    n_steps (int): The number of the last step.
    n_softmax_steps (int): Steps, counted from the first, in which only the softmax is trained.
    YIELDS (Step): The results of the step.
    """
    model = learner.model
    module: torch.nn.Module | None = None
    # Python's garbage collection would otherwise look at all objects of the process, hundreds of thousands, again and again.
    # Objects that the host has frozen cannot be told apart, so then nothing is frozen or unfrozen.
    freezes = gc.get_freeze_count() == 0
    if freezes:
        gc.collect()
        gc.freeze()
    try:
        start = time.perf_counter()
        for batch in islice(learner.streams, n_steps - learner.n_steps_done):
            if module is None or learner.n_steps_done == n_softmax_steps:
                model.bilm.requires_grad_(learner.n_steps_done >= n_softmax_steps)
                # DistributedDataParallel looks at requires_grad once, so the model is wrapped again when that changes.
                module = processes.join_gradients(model)
            learn_rate = learner.optimizer.param_groups[0]["lr"]
            loss, grad_norm = _learn(module, learner, batch, settings, processes)
            learner.schedule.step()
            learner.n_steps_done += 1
            n_predicted = int((batch.targets_AN != NO_TARGET).sum())
            seconds = time.perf_counter() - start
            yield Step(learner.n_steps_done, loss, n_predicted, batch.n_words, learn_rate, grad_norm, seconds)
            start = time.perf_counter()
    finally:
        if freezes:
            gc.unfreeze()


@leave_threads_to_tasks()
def _learn(
    module: torch.nn.Module, learner: Learner, batch: Batch, settings: TrainingSettings, processes: Processes
) -> tuple[float, float]:
    """Change the weights by the gradients of a batch. RETURNS (tuple): The loss, and the norm of all gradients."""
    model, optimizer = learner.model, learner.optimizer
    candidates = _choose_candidates(len(model.softmax.bias), settings, learner.n_steps_done)
    dropout = _make_dropout(settings, learner.n_steps_done, processes)
    with torch.autocast(processes.device.type, torch.bfloat16, enabled=settings.precision == "bfloat16"):
        loss, learner.carried = module(
            batch, learner.carried, candidates, carry_state=settings.carry_state, dropout=dropout
        )
    optimizer.zero_grad()
    # By tokens, not by targets: the mean of the processes' gradients is right only if all divide by the same number.
    (loss / batch.targets_AN.size).backward()
    grad_norm = clip_grad_norm_(model.parameters(), settings.grad_clip).item()
    _check_loss(loss.item(), grad_norm, learner.n_steps_done + 1, batch)
    optimizer.step()
    return loss.item(), grad_norm


def _choose_candidates(n_words: int, settings: TrainingSettings, step: int) -> Candidates:
    """Choose the words of the softmax in a step: the same in all processes."""
    if not 0 < settings.samples < n_words:
        return all_words(n_words)
    return sample_words(n_words, settings.samples, numpy.random.default_rng([settings.seed, step]))


def _make_dropout(settings: TrainingSettings, step: int, processes: Processes) -> Dropout | None:
    """Make the dropout of a step: different in each process."""
    if not settings.dropout:
        return None
    seed = numpy.random.SeedSequence([settings.seed, step, processes.rank]).generate_state(1, numpy.uint64)[0]
    generator = torch.Generator(processes.device).manual_seed(int(seed) % 2**63)

    def drop(x: Tensor) -> Tensor:
        kept = torch.rand(x.shape, generator=generator, device=x.device, dtype=x.dtype) >= settings.dropout
        return x * kept.to(x.dtype).div_(1 - settings.dropout)

    return drop


def _check_loss(loss: float, grad_norm: float, step: int, batch: Batch) -> None:
    if math.isfinite(loss) and math.isfinite(grad_norm):
        return
    n_rows = batch.starts_TB.shape[1]
    first_row = (batch.types[i] for i in batch.types_AN[0, ::n_rows])
    words = " ".join(word for word in first_row if not isinstance(word, Mark))
    raise FloatingPointError(
        f"At step {step} the loss is {loss} and the norm of the gradients is {grad_norm}. This step did not change the "
        f"weights. Its batch starts with: {words!r:.100}"
    )
