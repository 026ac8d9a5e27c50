"""The state of a training: the model, its optimizer and its position in the corpus, and how a checkpoint restores them."""

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from ..bilm.initial_state import STREAMS, find_initial_state
from ..bilm.state import State
from ..corpora.sentences import Sentence
from .checkpoint import Checkpoint, Progress, RunIdentity, Tensors
from .language_model import LanguageModel
from .processes import Processes
from .streams import Streams

# Enough text for the carried state to settle.
WARM_UP_SENTENCES = 640


@dataclass
class Learner:
    """All that changes while a model is trained.

    model (LanguageModel): The model.
    optimizer, schedule: They change its weights.
    streams (Streams): The batches of this process, with their position in the corpus.
    carried (State): The LSTM state of this process's rows after the last step.
    n_steps_done (int): Steps that are done.
    """

    model: LanguageModel
    optimizer: Optimizer
    schedule: LRScheduler
    streams: Streams
    carried: State
    n_steps_done: int = 0

    def to_checkpoint(
        self,
        processes: Processes,
        *,
        totals: Tensor,
        identity: RunIdentity,
        softmax_is_new: bool,
        progress: Progress,
    ) -> Checkpoint:
        """Make a checkpoint, with the states of all processes. Every process must take part.

        processes (Processes): The processes.
        totals (Tensor): The row of this process in the checkpoint's "totals".
        identity, softmax_is_new, progress: Fields of the checkpoint that a learner does not have.
        RETURNS (Checkpoint): The checkpoint.
        """
        averages, optimizer = optimizer_to_tensors(self.optimizer)
        return Checkpoint(
            tensors={
                **add_prefix("model", self.model.state_dict()),
                **add_prefix("optimizer", averages),
                "hidden": processes.gather(self.carried.hidden, dim=2),
                "cell": processes.gather(self.carried.cell, dim=2),
                "positions": processes.gather(torch.as_tensor(self.streams.positions).to(processes.device), dim=0),
                "totals": processes.gather(totals.to(processes.device), dim=0),
            },
            identity=identity,
            bilm=self.model.bilm.config,
            softmax_is_new=softmax_is_new,
            progress=progress,
            n_steps_done=self.n_steps_done,
            optimizer=optimizer,
            schedule=self.schedule.state_dict(),
        )

    def restore(self, checkpoint: Checkpoint, processes: Processes, *, is_longer: bool) -> None:
        """Return to the state of a checkpoint.

        checkpoint (Checkpoint): The checkpoint.
        processes (Processes): The processes.
        is_longer (bool): Whether the run has more steps than before. The learning rate is then that of a run which has had
            as many from the start.
        """
        tensors = checkpoint.tensors
        weights = strip_prefix("model", tensors)
        bilm = self.model.bilm
        bilm.initial_hidden, bilm.initial_cell = weights.get("bilm.initial_hidden"), weights.get("bilm.initial_cell")
        self.model.load_state_dict(weights)
        self.model.to(processes.device)
        optimizer = checkpoint.optimizer
        if is_longer:
            self._repeat_schedule(checkpoint.n_steps_done)
            optimizer = {**optimizer, "param_groups": self.optimizer.state_dict()["param_groups"]}
        else:
            self.schedule.load_state_dict(checkpoint.schedule)
        optimizer_from_tensors(self.optimizer, strip_prefix("optimizer", tensors), optimizer)
        self.streams.positions = processes.own_part(tensors["positions"], dim=0).numpy()
        hidden, cell = (processes.own_part(tensors[name], dim=2).to(processes.device) for name in ("hidden", "cell"))
        self.carried = State(hidden, cell)
        self.n_steps_done = checkpoint.n_steps_done

    def update_initial_state(self, sentences: Iterable[Sentence], processes: Processes) -> None:
        """Store the average state between sentences as the biLM's initial state. Every process must take part.

        sentences (Iterable[Sentence]): The training text.
        processes (Processes): The processes.
        """
        # From the states of the rows: a model that was never reset may settle into another state from zeros.
        carried = State(*(processes.gather(part, dim=2)[:, :, :STREAMS] for part in self.carried))
        find_initial_state(self.model.bilm, list(islice(sentences, WARM_UP_SENTENCES)), carried)

    def _repeat_schedule(self, n_steps: int) -> None:
        """Bring a new schedule to a later step: only its own steps can tell the learning rate there."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch expects a step of the optimizer before each
            for _ in range(n_steps):
                self.schedule.step()


def add_prefix(prefix: str, tensors: Tensors) -> Tensors:
    """RETURNS (Tensors): The tensors, with a prefix to their names."""
    return {f"{prefix}.{name}": tensor for name, tensor in tensors.items()}


def strip_prefix(prefix: str, tensors: Tensors) -> Tensors:
    """RETURNS (Tensors): The tensors whose names have a prefix, without it."""
    return {name[len(prefix) + 1 :]: tensor for name, tensor in tensors.items() if name.startswith(f"{prefix}.")}


def optimizer_to_tensors(optimizer: Optimizer) -> tuple[Tensors, dict[str, Any]]:
    """Split the state of an optimizer into its tensors and the rest.

    optimizer (Optimizer): The optimizer.
    RETURNS (tuple): The tensors, by parameter and name, and the rest.
    """
    state = optimizer.state_dict()
    tensors: Tensors = {}
    others: dict[str, Any] = {}
    for parameter, values in state["state"].items():
        for name, value in values.items():
            if isinstance(value, Tensor):
                tensors[f"{parameter}.{name}"] = value
            else:
                others[f"{parameter}.{name}"] = value
    return tensors, {"state": others, "param_groups": state["param_groups"]}


def optimizer_from_tensors(optimizer: Optimizer, tensors: Tensors, rest: dict[str, Any]) -> None:
    """Load the state that `optimizer_to_tensors` split.

    optimizer (Optimizer): An optimizer of the same class, for the same parameters.
    tensors (Tensors): The tensors.
    rest (dict): The rest.
    """
    state: dict[int, dict[str, Any]] = {}
    for key, value in [*tensors.items(), *rest["state"].items()]:
        parameter, name = key.split(".", 1)
        state.setdefault(int(parameter), {})[name] = value
    optimizer.load_state_dict({"state": state, "param_groups": rest["param_groups"]})
