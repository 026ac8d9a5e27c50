"""All that a run needs to go on exactly where it was, in one file that is replaced whole."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor
from torch.optim import Optimizer

from ..files.atomic import umask

Tensors = dict[str, Tensor]


@dataclass(frozen=True)
class Checkpoint:
    """A run at the end of one step. What is random in a step follows from the seed and the step's number.

    tensors (dict[str, Tensor]): The weights ("model.*"), the optimizer's averages ("optimizer.*"), and of each row its place in the
        corpus ("positions") and its state ("hidden", "cell").
    facts (dict[str, Any]): What is not a tensor, as JSON has it. What the run must still have when it goes on: "config",
        "overrides", and the checksums of "training text", "dev text" and "vocabulary". What it is: "bilm" (the sizes) and
        "softmax_is_new". How far it is: "progress", "n_done", and what "optimizer" and "schedule" count.
    """

    tensors: Tensors
    facts: dict[str, Any]

    def to_disk(self, path: Path) -> None:
        """Write the checkpoint aside, then put it in place: a kill or a full disk leaves the one before.

        path (Path): The file.
        """
        draft = path.with_name(f".{path.name}-draft")
        tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in self.tensors.items()}
        try:
            save_file(tensors, draft, metadata={"facts": json.dumps(self.facts)})
            draft.chmod(0o666 & ~umask())  # safetensors makes files that only their owner can read
            with draft.open("rb") as file:
                os.fsync(file.fileno())
            draft.replace(path)
        except (OSError, SafetensorError) as error:
            draft.unlink(missing_ok=True)
            raise OSError(
                f"The checkpoint {path} could not be written: {error}. "
                + ("The one before it is as it was." if path.exists() else "There is none yet.")
            ) from error

    @classmethod
    def from_disk(cls, path: Path) -> "Checkpoint":
        """Read a checkpoint.

        path (Path): The file.
        RETURNS (Checkpoint): The checkpoint.
        """
        try:
            with safe_open(path, framework="pt") as file:
                facts = json.loads((file.metadata() or {})["facts"])
                return cls({name: file.get_tensor(name) for name in file.keys()}, facts)  # noqa: SIM118
        except FileNotFoundError:
            raise ValueError(
                f"There is no checkpoint {path} to go on from. Start without --resume, and with --overwrite if a run was stopped "
                f"there before its first checkpoint."
            ) from None
        except (SafetensorError, OSError, KeyError, ValueError) as error:
            raise ValueError(f"{path} is not a checkpoint of a run, or a damaged one: {error}") from None


def add_prefix(prefix: str, tensors: Tensors) -> Tensors:
    """RETURNS (Tensors): The tensors, with a prefix to their names."""
    return {f"{prefix}.{name}": tensor for name, tensor in tensors.items()}


def strip_prefix(prefix: str, tensors: Tensors) -> Tensors:
    """RETURNS (Tensors): Those tensors that have a prefix to their names, without it."""
    return {name[len(prefix) + 1 :]: tensor for name, tensor in tensors.items() if name.startswith(f"{prefix}.")}


def optimizer_to_tensors(optimizer: Optimizer) -> tuple[Tensors, dict[str, Any]]:
    """Take the state of an optimizer apart.

    optimizer (Optimizer): The optimizer.
    RETURNS (tuple): Its tensors, by parameter and name, and the rest.
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
    """Put the state of an optimizer together again.

    optimizer (Optimizer): The optimizer, of the same kind and for the same parameters.
    tensors (Tensors): What `optimizer_to_tensors` returned.
    rest (dict): Likewise.
    """
    state: dict[int, dict[str, Any]] = {}
    for key, value in [*tensors.items(), *rest["state"].items()]:
        parameter, name = key.split(".", 1)
        state.setdefault(int(parameter), {})[name] = value
    optimizer.load_state_dict({"state": state, "param_groups": rest["param_groups"]})
