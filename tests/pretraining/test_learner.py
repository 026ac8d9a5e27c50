"""The state of an optimizer in a checkpoint: it continues exactly."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.optim import SGD, Adagrad, AdamW, Optimizer
from torch.optim.lr_scheduler import LambdaLR

from spacy_elmo.pretraining.checkpoint import Checkpoint
from spacy_elmo.pretraining.learner import add_prefix, optimizer_from_tensors, optimizer_to_tensors, strip_prefix

from .checkpoints import make_checkpoint
from .runs import assert_same_tensors

MakeOptimizer = Callable[[Iterable[nn.Parameter]], Optimizer]
OPTIMIZERS: dict[str, MakeOptimizer] = {
    "AdamW": lambda parameters: AdamW(parameters, lr=0.01, betas=(0.8, 0.95), weight_decay=0.1),
    "AdamW, fused": lambda parameters: AdamW(parameters, lr=0.01, fused=True),
    "Adagrad": lambda parameters: Adagrad(parameters, lr=0.1, initial_accumulator_value=1.0),
    "SGD": lambda parameters: SGD(parameters, lr=0.1, momentum=0.9),
    "SGD without momentum": lambda parameters: SGD(parameters, lr=0.1),
}


def test_names_under_and_within_a_prefix() -> None:
    one, other = torch.tensor(1.0), torch.tensor(2.0)
    tensors = add_prefix("model", {"a": one, "b.c": other})
    assert tensors == {"model.a": one, "model.b.c": other}
    mixed = {**tensors, "models.a": one, "model": one, "optimizer.0.step": other, "other.model.a": one}
    assert strip_prefix("model", mixed) == {"a": one, "b.c": other}
    assert strip_prefix("nothing", mixed) == {}


def learn(parameters: list[nn.Parameter], optimizer: Optimizer, schedule: LambdaLR, n_steps: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    for _ in range(n_steps):
        for parameter in parameters:
            parameter.grad = torch.randn(parameter.shape, generator=generator)
        optimizer.step()
        schedule.step()


def make_parameters(seed: int) -> list[nn.Parameter]:
    generator = torch.Generator().manual_seed(seed)
    return [nn.Parameter(torch.randn(shape, generator=generator)) for shape in ((3, 2), (4,))]


def halve(step: int) -> float:
    return 0.5**step


@pytest.mark.parametrize("make", OPTIMIZERS.values(), ids=OPTIMIZERS.keys())
def test_optimizer_continues_exactly(make: MakeOptimizer, tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    parameters = make_parameters(0)
    optimizer = make(parameters)
    schedule = LambdaLR(optimizer, halve)
    learn(parameters, optimizer, schedule, 3, seed=1)
    tensors, rest = optimizer_to_tensors(optimizer)
    values = {str(i): parameter for i, parameter in enumerate(parameters)}
    tensors = {**add_prefix("model", values), **add_prefix("optimizer", tensors)}
    make_checkpoint(tensors, optimizer=rest, schedule=schedule.state_dict()).to_disk(path)
    learn(parameters, optimizer, schedule, 3, seed=2)

    # Another run, which has learned something else.
    others = make_parameters(5)
    other = make(others)
    other_schedule = LambdaLR(other, halve)
    learn(others, other, other_schedule, 2, seed=6)
    checkpoint = Checkpoint.from_disk(path)
    with torch.no_grad():
        for i, parameter in enumerate(others):
            parameter.copy_(strip_prefix("model", checkpoint.tensors)[str(i)])
    optimizer_from_tensors(other, strip_prefix("optimizer", checkpoint.tensors), checkpoint.optimizer)
    other_schedule.load_state_dict(checkpoint.schedule)
    assert other.param_groups[0]["lr"] == pytest.approx(optimizer.param_groups[0]["lr"] * 2**3)
    learn(others, other, other_schedule, 3, seed=2)

    for one, same in zip(parameters, others, strict=True):
        assert torch.equal(one, same)
    expected, found = (optimizer_to_tensors(each) for each in (optimizer, other))
    assert_same_tensors(found[0], expected[0])
    assert json.loads(json.dumps(found[1])) == json.loads(json.dumps(expected[1]))


def test_optimizer_tensors_are_named_by_parameter_and_kind() -> None:
    parameters = make_parameters(0)
    optimizer = AdamW(parameters, lr=0.5)
    assert optimizer_to_tensors(optimizer)[0] == {}
    learn(parameters, optimizer, LambdaLR(optimizer, halve), 1, seed=0)
    tensors, rest = optimizer_to_tensors(optimizer)
    assert sorted(tensors) == [f"{i}.{name}" for i in (0, 1) for name in ("exp_avg", "exp_avg_sq", "step")]
    assert tensors["1.exp_avg"].shape == (4,)
    assert rest["state"] == {}
    assert rest["param_groups"][0]["lr"] == 0.25
    assert optimizer_to_tensors(SGD(parameters, lr=0.1))[1]["param_groups"][0]["lr"] == 0.1


def test_optimizer_keeps_values_that_are_not_tensors(tmp_path: Path) -> None:
    parameters, others = make_parameters(0), make_parameters(1)
    optimizer, other = SGD(parameters, lr=0.1), SGD(others, lr=0.1)
    optimizer.state[parameters[1]].update(count=5, mark=None, inner_average=torch.tensor([1.0, 2.0]))
    tensors, rest = optimizer_to_tensors(optimizer)
    make_checkpoint(tensors, optimizer=rest).to_disk(tmp_path / "a")
    checkpoint = Checkpoint.from_disk(tmp_path / "a")
    optimizer_from_tensors(other, checkpoint.tensors, checkpoint.optimizer)
    state = other.state[others[1]]
    assert (state["count"], state["mark"], state["inner_average"].tolist()) == (5, None, [1.0, 2.0])
    assert others[0] not in other.state
