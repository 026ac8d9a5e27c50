"""The training loop, step by step. What is random in a step follows from the seed and the step's number."""

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy
import torch
from torch import Tensor
from torch.nn.utils import clip_grad_norm_
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from ..bilm.characters import Mark
from ..bilm.lstm import Dropout, State
from .checkpoint import Checkpoint, add_prefix, optimizer_from_tensors, optimizer_to_tensors, strip_prefix
from .language_model import LanguageModel
from .processes import Processes
from .settings import TrainingSettings
from .softmax import Candidates, all_words, sample_words
from .streams import NO_TARGET, Batch, Streams


@dataclass
class Learner:
    """All that changes while a model learns.

    model (LanguageModel): The model.
    optimizer, schedule: What changes its weights.
    streams (Streams): Where it is in the corpus.
    carried (State): What this process's rows have read so far.
    n_done (int): Steps that are done.
    """

    model: LanguageModel
    optimizer: Optimizer
    schedule: LRScheduler
    streams: Streams
    carried: State
    n_done: int = 0

    def to_checkpoint(self, processes: Processes, facts: dict[str, object]) -> Checkpoint:
        """Write down all of it, that of the other processes included. Every process must take part.

        processes (Processes): The processes.
        facts (dict): What else to note.
        RETURNS (Checkpoint): The checkpoint.
        """
        optimizer, rest = optimizer_to_tensors(self.optimizer)
        tensors = {
            **add_prefix("model", self.model.state_dict()),
            **add_prefix("optimizer", optimizer),
            "hidden": processes.gather(self.carried.hidden, dim=2),
            "cell": processes.gather(self.carried.cell, dim=2),
            "positions": processes.gather(torch.as_tensor(self.streams.positions).to(processes.device), dim=0),
        }
        return Checkpoint(
            tensors, {**facts, "n_done": self.n_done, "optimizer": rest, "schedule": self.schedule.state_dict()}
        )

    def restore(self, checkpoint: Checkpoint, processes: Processes) -> None:
        """Go back to where a checkpoint was made.

        checkpoint (Checkpoint): The checkpoint.
        processes (Processes): The processes.
        """
        tensors, facts = checkpoint.tensors, checkpoint.facts
        weights = strip_prefix("model", tensors)
        bilm = self.model.bilm
        bilm.initial_hidden, bilm.initial_cell = weights.get("bilm.initial_hidden"), weights.get("bilm.initial_cell")
        self.model.load_state_dict(weights)
        self.model.to(processes.device)
        optimizer_from_tensors(self.optimizer, strip_prefix("optimizer", tensors), facts["optimizer"])
        self.schedule.load_state_dict(facts["schedule"])
        self.streams.positions = processes.share(tensors["positions"], dim=0).numpy()
        hidden, cell = (processes.share(tensors[name], dim=2).to(processes.device) for name in ("hidden", "cell"))
        self.carried = State(hidden, cell)
        self.n_done = facts["n_done"]


class Step(NamedTuple):
    """What one step did, in this process.

    number (int): The step, counted from 1.
    loss (float): The sum of the cross-entropies of both directions. No likelihood if candidates were sampled.
    n_predicted (int): How many there were.
    n_words (int): Words that were read.
    learn_rate (float): The learning rate.
    grad_norm (float): The norm of all gradients, before it was clipped.
    seconds (float): How long it took, to read its batch included.
    """

    number: int
    loss: float
    n_predicted: int
    n_words: int
    learn_rate: float
    grad_norm: float
    seconds: float


def train(
    learner: Learner, settings: TrainingSettings, processes: Processes, *, n_steps: int, n_softmax_steps: int
) -> Iterator[Step]:
    """Learn, step by step, from where the learner is. Between two steps the learner can be looked at and saved.

    learner (Learner): What is changed.
    settings (TrainingSettings): How.
    processes (Processes): Who learns together.
    n_steps (int): The number of the last step.
    n_softmax_steps (int): Steps, counted from the first, in which only the softmax learns.
    YIELDS (Step): What happened.
    """
    model, optimizer = learner.model, learner.optimizer
    module: torch.nn.Module | None = None
    start = time.perf_counter()
    for batch in islice(learner.streams, n_steps - learner.n_done):
        if module is None or learner.n_done == n_softmax_steps:
            model.bilm.requires_grad_(learner.n_done >= n_softmax_steps)
            # DistributedDataParallel looks once at what learns, so a biLM that begins to is wrapped again.
            module = processes.join_gradients(model)
        candidates = _choose_candidates(len(model.softmax.bias), settings, learner.n_done)
        dropout = _make_dropout(settings, learner.n_done, processes)
        with torch.autocast(processes.device.type, torch.bfloat16, enabled=settings.precision == "bfloat16"):
            loss, learner.carried = module(
                batch, learner.carried, candidates, carry_state=settings.carry_state, dropout=dropout
            )
        optimizer.zero_grad()
        # By tokens, not by targets: the mean of the processes' gradients is right only if all divide by the same number.
        (loss / batch.targets_AN.size).backward()
        grad_norm = clip_grad_norm_(model.parameters(), settings.grad_clip).item()
        total = loss.item()
        del loss  # and with it all that was kept for the gradients, before the next batch keeps as much
        _check_finite(total, grad_norm, learner.n_done + 1, batch)
        learn_rate = optimizer.param_groups[0]["lr"]
        optimizer.step()
        learner.schedule.step()
        learner.n_done += 1
        n_predicted = int((batch.targets_AN != NO_TARGET).sum())
        seconds = time.perf_counter() - start
        yield Step(learner.n_done, total, n_predicted, batch.n_words, learn_rate, grad_norm, seconds)
        start = time.perf_counter()


def _choose_candidates(n_words: int, settings: TrainingSettings, step: int) -> Candidates:
    """The same candidates in all processes."""
    if not 0 < settings.samples < n_words:
        return all_words(n_words)
    return sample_words(n_words, settings.samples, numpy.random.default_rng([settings.seed, step]))


def _make_dropout(settings: TrainingSettings, step: int, processes: Processes) -> Dropout | None:
    """Another dropout in each process."""
    if not settings.dropout:
        return None
    seed = numpy.random.SeedSequence([settings.seed, step, processes.rank]).generate_state(1, numpy.uint64)[0]
    generator = torch.Generator(processes.device).manual_seed(int(seed) % 2**63)

    def drop(x: Tensor) -> Tensor:
        kept = torch.rand(x.shape, generator=generator, device=x.device, dtype=x.dtype) >= settings.dropout
        return x * kept.to(x.dtype).div_(1 - settings.dropout)

    return drop


def _check_finite(loss: float, grad_norm: float, step: int, batch: Batch) -> None:
    if math.isfinite(loss) and math.isfinite(grad_norm):
        return
    n_rows = batch.starts_TB.shape[1]
    first_row = (batch.types[i] for i in batch.types_AN[0, ::n_rows])
    words = " ".join(word for word in first_row if not isinstance(word, Mark))
    raise FloatingPointError(
        f"At step {step} the loss is {loss} and the norm of the gradients {grad_norm}. The weights were not changed by "
        f"this step. Its batch starts with: {words!r:.100}"
    )
