"""Checkpoints: all that a stopped run needs to continue exactly where it was, in one file."""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from ..bilm.config import BiLMConfig
from ..files.atomic import draft_file
from ..files.versions import NewerFormatError, add_version, take_version

# Since 2, the sizes of a biLM can include its language, and a checkpoint can lie between two lines of metrics ("totals").
FORMAT_VERSION = 2
# Keys of the file's header that hold the JSON of a checkpoint.
METADATA_KEY, METADATA_KEY_OF_VERSION_0 = "run", "facts"

Tensors = dict[str, Tensor]


@dataclass(frozen=True, kw_only=True)
class RunIdentity:
    """The inputs of a run. It is resumed only with the same ones.

    config (dict[str, Any]): The config, with its variables filled in.
    overrides (dict[str, Any]): The values that replaced those of the config file. A resumed run uses them again.
    train_sha256, dev_sha256 (str): Checksums of the tokenized corpora.
    vocabulary_sha256 (str): The checksum of the words that are predicted.
    """

    config: dict[str, Any]
    overrides: dict[str, Any]
    train_sha256: str
    dev_sha256: str
    vocabulary_sha256: str

    def check_same_data(self, other: "RunIdentity", output: Path) -> None:
        """Refuse other corpora, and another vocabulary.

        other (RunIdentity): The inputs of the run before it was stopped.
        output (Path): The directory of the run, for the error.
        """
        for name, found, expected in [
            ("training text", self.train_sha256, other.train_sha256),
            ("dev text", self.dev_sha256, other.dev_sha256),
            ("vocabulary", self.vocabulary_sha256, other.vocabulary_sha256),
        ]:
            if found != expected:
                raise ValueError(
                    f"The run in {output} was started with another {name}. Resume it with that one, or start from scratch in "
                    f"another directory."
                )


@dataclass(kw_only=True)
class Progress:
    """How far a run is.

    n_words (int): Words that were read.
    seconds (float): Time that it took, pauses left out.
    best_perplexity (float): The lowest mean perplexity so far.
    initial_perplexity (float | None): The mean perplexity before the weights were trained, if they were not random.
    """

    n_words: int = 0
    seconds: float = 0.0
    best_perplexity: float = math.inf
    initial_perplexity: float | None = None


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """A run after one of its steps. Random choices are not in it: they follow from the seed and the number of the step.

    A new field needs a default, so that existing checkpoints still load.

    tensors (dict[str, Tensor]): The weights ("model.*"), the optimizer's averages ("optimizer.*"), and for each row its
        position in the corpus ("positions") and its LSTM state ("hidden", "cell"). For each process, the steps since the last
        line of metrics ("totals").
    identity (RunIdentity): The inputs of the run.
    bilm (BiLMConfig): The sizes of the biLM.
    softmax_is_new (bool): Whether the softmax was random at the start while the biLM was not.
    progress (Progress): How far the run is.
    n_steps_done (int): Steps that are done.
    optimizer, schedule (dict[str, Any]): Their states, without tensors.
    """

    tensors: Tensors
    identity: RunIdentity
    bilm: BiLMConfig
    softmax_is_new: bool
    progress: Progress
    n_steps_done: int
    optimizer: dict[str, Any]
    schedule: dict[str, Any]

    def to_disk(self, path: Path) -> None:
        """Write the checkpoint to a draft, then put it in place: a kill or a full disk leaves the checkpoint before it.

        path (Path): The file.
        """
        tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in self.tensors.items()}
        try:
            with draft_file(path) as draft:
                _save_tensors(tensors, draft, {METADATA_KEY: json.dumps(self._metadata_to_dict())})
        except OSError as error:
            earlier = "The checkpoint before it is unchanged." if path.exists() else "There is no earlier checkpoint."
            raise OSError(f"{error} {earlier}") from error

    @classmethod
    def from_disk(cls, path: Path) -> "Checkpoint":
        """Read a checkpoint.

        path (Path): The file.
        RETURNS (Checkpoint): The checkpoint.
        """
        try:
            with safe_open(path, framework="pt") as file:
                metadata = _read_metadata(file.metadata() or {}, path)
                metadata["identity"] = RunIdentity(**metadata["identity"])
                metadata["progress"] = Progress(**metadata["progress"])
                metadata["bilm"] = BiLMConfig.from_dict(metadata["bilm"])
                return cls(tensors={name: file.get_tensor(name) for name in file.keys()}, **metadata)  # noqa: SIM118
        except NewerFormatError:
            raise
        except FileNotFoundError:
            raise ValueError(
                f"There is no checkpoint {path} to resume from. Start without --resume. Add --overwrite if a run was stopped "
                f"there before its first checkpoint."
            ) from None
        except (SafetensorError, OSError, KeyError, TypeError, ValueError, RecursionError) as error:
            raise ValueError(f"{path} is not a checkpoint of a run, or a damaged one: {error!s:.1000}") from None

    def _metadata_to_dict(self) -> dict[str, Any]:
        fields = {name: value for name, value in vars(self).items() if name != "tensors"}
        # Not asdict, which copies a config into something else than a config.
        nested = {"identity": vars(self.identity), "progress": vars(self.progress), "bilm": self.bilm.to_dict()}
        return add_version({**fields, **nested}, current=FORMAT_VERSION)


def _save_tensors(tensors: Tensors, path: Path, metadata: dict[str, str]) -> None:
    try:
        save_file(tensors, path, metadata=metadata)
    except SafetensorError as error:  # a full disk, among others
        raise OSError(str(error)) from error


def _read_metadata(header: dict[str, str], path: Path) -> dict[str, Any]:
    if METADATA_KEY_OF_VERSION_0 in header:
        return _upgrade_from_version_0(json.loads(header[METADATA_KEY_OF_VERSION_0]))
    _, metadata = take_version(json.loads(header[METADATA_KEY]), current=FORMAT_VERSION, where=path)
    return metadata


def _upgrade_from_version_0(old: dict[str, Any]) -> dict[str, Any]:
    """Give the metadata of a checkpoint of spacy-elmo 0.1.0 the names that they have now."""
    identity = {
        "config": old["config"],
        "overrides": old["overrides"],
        "train_sha256": old["training text"],
        "dev_sha256": old["dev text"],
        "vocabulary_sha256": old["vocabulary"],
    }
    progress = {
        "n_words": old["progress"]["n_words"],
        "seconds": old["progress"]["seconds"],
        "best_perplexity": old["progress"]["best"],
        "initial_perplexity": old["progress"]["before"],
    }
    unchanged = {name: old[name] for name in ("bilm", "softmax_is_new", "optimizer", "schedule")}
    return {**unchanged, "identity": identity, "progress": progress, "n_steps_done": old["n_done"]}
