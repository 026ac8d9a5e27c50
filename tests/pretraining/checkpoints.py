"""Checkpoints of no run, for tests of their files."""

from typing import Any

import torch
from torch import Tensor

from spacy_elmo.pretraining.checkpoint import Checkpoint, Progress, RunIdentity

from ..helpers import small_config

IDENTITY = RunIdentity(
    config={"paths": {"train": "naïve 日本.txt", "dev": None}, "bilm_training": {"dropout": 0.1 + 0.2}},
    overrides={"paths.train": "naïve 日本.txt"},
    train_sha256="1a",
    dev_sha256="2b",
    vocabulary_sha256="3c",
)


def make_checkpoint(tensors: dict[str, Tensor] | None = None, **changes: Any) -> Checkpoint:
    fields: dict[str, Any] = {
        "identity": IDENTITY,
        "bilm": small_config(),
        "softmax_is_new": True,
        "progress": Progress(n_words=7, seconds=0.1 + 0.2, initial_perplexity=9.5),
        "n_steps_done": 3,
        "optimizer": {"state": {}, "param_groups": [{"lr": 0.1, "betas": [0.9, 0.99], "foreach": None}]},
        "schedule": {"last_epoch": 3},
    }
    return Checkpoint(tensors=make_tensors() if tensors is None else tensors, **{**fields, **changes})


def make_tensors(seed: int = 0) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return {
        "model.weight": torch.randn(3, 4, generator=generator),
        "model.half": torch.randn(3, generator=generator).bfloat16(),
        "positions": torch.randint(2**40, (2, 2), generator=generator),
        "step": torch.tensor(3.0),
    }
