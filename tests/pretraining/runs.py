"""Pretraining runs that take a second."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from spacy.util import registry

from spacy_elmo.pretraining.pretrain import pretrain

from ..helpers import SIZES

TINY = Path(__file__).parents[2] / "configs" / "pretrain_tiny.cfg"
FINETUNE = TINY.with_name("finetune.cfg")
STEPS = 8
CONSOLE_LOGGER = {"@loggers": "spacy_elmo.ConsoleLogger.v1", "progress_bar": False}


def make_text(path: Path, n_sentences: int, seed: int) -> Path:
    """Write sentences in which a word says much about the next one."""
    choose = random.Random(seed).choice
    lines = []
    for _ in range(n_sentences):
        who, what = choose(["the cat", "the dog", "a bird"]), choose(["sees", "eats", "likes"])
        lines.append(
            f"{who} {what} {choose(['a fish', 'the mouse', 'an apple', 'us'])} {choose(['today .', 'now .', '.'])}"
        )
    path.write_text("\n".join(lines) + "\n", encoding="utf8")
    return path


def make_overrides(directory: Path) -> dict[str, Any]:
    """Write a text, and give the settings of a run on it."""
    return {
        "paths.train": str(make_text(directory / "train.txt", 120, seed=0)),
        "paths.dev": str(make_text(directory / "dev.txt", 30, seed=1)),
        "corpus.lang": None,
        **{f"bilm.{name}": value for name, value in SIZES.items()},
        "bilm_training.max_steps": STEPS,
        "bilm_training.batch_size": 4,
        "bilm_training.unroll": 5,
        "bilm_training.log_frequency": 1,
        "bilm_training.eval_frequency": 3,
        "bilm_training.logger.progress_bar": False,
    }


def stop_run(step: int, config: Path, output: Path, overrides: dict[str, Any]) -> None:
    """Start a run, and stop it after a step, as Ctrl+C would."""

    @registry.loggers("spacy_elmo_tests.Stop.v1")
    def configure() -> Any:
        def setup(nlp: Any, stdout: Any, stderr: Any) -> Any:
            done = nlp.config["training"]["first_step"]

            def log_step(info: Any) -> None:
                nonlocal done
                done += 1
                if done == step:
                    raise KeyboardInterrupt

            return log_step, lambda: None

        return setup

    stopping = {**overrides, "bilm_training.logger": {"@loggers": "spacy_elmo_tests.Stop.v1"}}
    with pytest.raises(KeyboardInterrupt):
        pretrain(config, output, overrides=stopping)


def resume_run(config: Path, output: Path) -> Any:
    """Resume a run that was stopped."""
    return pretrain(config, output, overrides={"bilm_training.logger": CONSOLE_LOGGER}, resume=True)


def command_line(overrides: dict[str, Any]) -> list[str]:
    """Write overrides as they are typed."""
    return [item for name, value in overrides.items() for item in (f"--{name}", json.dumps(value).strip('"'))]


def read_files(directory: Path) -> dict[str, bytes]:
    """Read every file below a directory, hidden ones too."""
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def read_tensors(directory: Path) -> dict[str, Any]:
    """Read all tensors in the files of a directory."""
    return {
        f"{path.name}:{name}": tensor
        for path in sorted(directory.glob("*.safetensors"))
        for name, tensor in safetensors.torch.load_file(path).items()
    }


def assert_same_tensors(tensors: dict[str, Any], expected: dict[str, Any]) -> None:
    assert tensors.keys() == expected.keys()
    for name, tensor in tensors.items():
        assert tensor.dtype == expected[name].dtype, name
        assert torch.equal(tensor, expected[name]), name


def assert_same_weights(directory: Path, other: Path) -> None:
    assert_same_tensors(read_tensors(directory), read_tensors(other))


def read_metrics(output: Path) -> list[dict[str, Any]]:
    """Read the metrics of a run, without times."""
    lines = [json.loads(line) for line in (output / "metrics.jsonl").read_text(encoding="utf8").splitlines()]
    return [
        {name: value for name, value in line.items() if name not in ("seconds", "words_per_second")} for line in lines
    ]
