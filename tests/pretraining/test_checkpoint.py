"""Checkpoints: what goes in comes out, older and newer formats, and optimizers that continue exactly."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.optim import SGD, Adagrad, AdamW, Optimizer
from torch.optim.lr_scheduler import LambdaLR

from spacy_elmo.pretraining import checkpoint as checkpoint_module
from spacy_elmo.pretraining.checkpoint import (
    Checkpoint,
    Progress,
    RunIdentity,
    add_prefix,
    optimizer_from_tensors,
    optimizer_to_tensors,
    strip_prefix,
)

from ..helpers import small_config
from .runs import assert_same_tensors, read_files

pytestmark = pytest.mark.usefixtures("one_thread")

IDENTITY = RunIdentity(
    config={"paths": {"train": "naïve 日本.txt", "dev": None}, "bilm_training": {"dropout": 0.1 + 0.2}},
    overrides={"paths.train": "naïve 日本.txt"},
    train_sha256="1a",
    dev_sha256="2b",
    vocabulary_sha256="3c",
)

MakeOptimizer = Callable[[Iterable[nn.Parameter]], Optimizer]
OPTIMIZERS: dict[str, MakeOptimizer] = {
    "AdamW": lambda parameters: AdamW(parameters, lr=0.01, betas=(0.8, 0.95), weight_decay=0.1),
    "AdamW, fused": lambda parameters: AdamW(parameters, lr=0.01, fused=True),
    "Adagrad": lambda parameters: Adagrad(parameters, lr=0.1, initial_accumulator_value=1.0),
    "SGD": lambda parameters: SGD(parameters, lr=0.1, momentum=0.9),
    "SGD without momentum": lambda parameters: SGD(parameters, lr=0.1),
}


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


def change_header(path: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Change the metadata of a checkpoint on disk."""
    tensors = Checkpoint.from_disk(path).tensors
    with safe_open(path, framework="pt") as file:
        metadata = json.loads(file.metadata()["run"])
    change(metadata)
    save_file(tensors, path, metadata={"run": json.dumps(metadata)})


def make_tensors(seed: int = 0) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return {
        "model.weight": torch.randn(3, 4, generator=generator),
        "model.half": torch.randn(3, generator=generator).bfloat16(),
        "positions": torch.randint(2**40, (2, 2), generator=generator),
        "step": torch.tensor(3.0),
    }


def test_checkpoint_roundtrip(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    make_checkpoint(make_tensors(1), n_steps_done=1).to_disk(path)
    make_checkpoint().to_disk(path)
    read = Checkpoint.from_disk(path)
    assert_same_tensors(read.tensors, make_tensors())
    assert read == make_checkpoint(read.tensors)
    assert read.progress.best_perplexity == float("inf")
    assert list(read_files(tmp_path)) == ["checkpoint.safetensors"]


def test_checkpoint_of_tensors_that_are_views_or_learn(tmp_path: Path) -> None:
    parameter = nn.Parameter(torch.arange(6.0).view(2, 3))
    tensors = {"weight": parameter, "turned": parameter.T, "row": torch.tensor([[7.0]]).expand(2, 3)}
    make_checkpoint(tensors).to_disk(tmp_path / "a")
    read = Checkpoint.from_disk(tmp_path / "a").tensors
    assert_same_tensors(read, {name: tensor.detach() for name, tensor in tensors.items()})
    assert not any(tensor.requires_grad for tensor in read.values())


def test_checkpoint_has_the_usual_permissions(tmp_path: Path) -> None:
    make_checkpoint().to_disk(tmp_path / "checkpoint")
    (tmp_path / "usual").touch()
    assert (tmp_path / "checkpoint").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_checkpoint_of_a_newer_format(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    make_checkpoint().to_disk(path)
    change_header(path, lambda metadata: metadata.update(format_version=2, spacy_elmo_version="7.8.9", more="fields"))
    message = (
        r"checkpoint\.safetensors was written by a newer version of spacy-elmo: its format version is 2, .* reads versions up to "
        r"1\. Install spacy-elmo 7\.8\.9 or later\.$"
    )
    with pytest.raises(ValueError, match=message):
        Checkpoint.from_disk(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda metadata: metadata.pop("n_steps_done"), "n_steps_done"),
        (lambda metadata: metadata.update(speed=3), "speed"),
        (lambda metadata: metadata["progress"].update(speed=3), "speed"),
        (lambda metadata: metadata["identity"].pop("dev_sha256"), "dev_sha256"),
        (lambda metadata: metadata["bilm"].pop("cells"), r"missing \['cells'\]"),
        (lambda metadata: metadata.update(format_version="1"), "format_version must be a whole number, got '1'"),
    ],
)
def test_checkpoint_with_other_fields(tmp_path: Path, change: Callable[[dict[str, Any]], Any], message: str) -> None:
    path = tmp_path / "checkpoint.safetensors"
    make_checkpoint().to_disk(path)
    change_header(path, change)
    with pytest.raises(ValueError, match=rf"is not a checkpoint of a run, or a damaged one: .*{message}"):
        Checkpoint.from_disk(path)


def test_fields_with_a_default_may_be_missing(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    make_checkpoint().to_disk(path)
    change_header(path, lambda metadata: metadata["progress"].pop("initial_perplexity"))
    assert Checkpoint.from_disk(path).progress.initial_perplexity is None


def test_checkpoint_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError,
        match=r"There is no checkpoint .*nowhere to resume from\. Start without --resume\. Add --overwrite",
    ):
        Checkpoint.from_disk(tmp_path / "nowhere")


@pytest.mark.parametrize("kept", [0, 4, 30, 0.5, -1])
def test_truncated_checkpoint(tmp_path: Path, kept: float) -> None:
    path = tmp_path / "checkpoint.safetensors"
    make_checkpoint().to_disk(path)
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * kept) if isinstance(kept, float) else kept])
    with pytest.raises(ValueError, match=r"checkpoint\.safetensors is not a checkpoint of a run, or a damaged one"):
        Checkpoint.from_disk(path)


def test_foreign_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    for metadata in (None, {"format": "pt"}, {"run": "{"}, {"run": "[]"}, {"facts": "{"}, {"facts": "{}"}):
        save_file(make_tensors(), path, metadata=metadata)
        with pytest.raises(ValueError, match="is not a checkpoint of a run"):
            Checkpoint.from_disk(path)
    path.write_bytes(b"this is a text, and a long one, but no checkpoint")
    with pytest.raises(ValueError, match="is not a checkpoint of a run"):
        Checkpoint.from_disk(path)
    (tmp_path / "directory").mkdir()
    with pytest.raises(ValueError, match="is not a checkpoint of a run"):
        Checkpoint.from_disk(tmp_path / "directory")


@pytest.mark.parametrize("is_first", [True, False])
def test_checkpoint_that_cannot_be_written(tmp_path: Path, is_first: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "checkpoint.safetensors"
    if not is_first:
        make_checkpoint().to_disk(path)
    before = read_files(tmp_path)

    def fill_the_disk(tensors: Any, draft: Path, **_: Any) -> None:
        draft.write_bytes(b"half")
        raise OSError("no space left on device")

    monkeypatch.setattr(checkpoint_module, "save_file", fill_the_disk)
    advice = r"There is no earlier checkpoint\." if is_first else r"The checkpoint before it is unchanged\."
    message = (
        rf"checkpoint\.safetensors could not be written: no space left on device\. Is the disk full, .*\? {advice}$"
    )
    with pytest.raises(OSError, match=message):
        make_checkpoint(make_tensors(1)).to_disk(path)
    assert read_files(tmp_path) == before


def test_checkpoint_that_cannot_take_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "checkpoint.safetensors"
    make_checkpoint().to_disk(path)
    before = read_files(tmp_path)

    def fail(draft: Path, target: Path) -> None:
        raise OSError("cannot rename")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", fail)
        with pytest.raises(
            OSError, match=r"could not be written: cannot rename\. .* The checkpoint before it is unchanged\."
        ):
            make_checkpoint(make_tensors(1)).to_disk(path)
    assert read_files(tmp_path) == before
    assert_same_tensors(Checkpoint.from_disk(path).tensors, make_tensors())


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


def test_optimizer_taken_apart_has_names_by_parameter_and_kind() -> None:
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


def test_optimizer_keeps_what_is_no_tensor(tmp_path: Path) -> None:
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
