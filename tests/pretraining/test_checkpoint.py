"""Checkpoints and language models on disk: what goes in comes out, and nothing is ever half written."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.optim import SGD, Adagrad, AdamW, Optimizer
from torch.optim.lr_scheduler import LambdaLR

from spacy_elmo.bilm import weights
from spacy_elmo.bilm.weights import load_weights, save_weights
from spacy_elmo.pretraining import checkpoint as checkpoint_module
from spacy_elmo.pretraining import model_files
from spacy_elmo.pretraining.checkpoint import (
    Checkpoint,
    add_prefix,
    optimizer_from_tensors,
    optimizer_to_tensors,
    strip_prefix,
)
from spacy_elmo.pretraining.language_model import LanguageModel
from spacy_elmo.pretraining.model_files import (
    SOFTMAX,
    VOCABULARY,
    has_softmax,
    load_language_model,
    save_language_model,
    vocabulary_of,
)
from spacy_elmo.pretraining.perplexity import measure_likelihood
from spacy_elmo.pretraining.softmax import Softmax
from spacy_elmo.pretraining.vocabulary import Vocabulary, count_words

from ..helpers import random_bilm

pytestmark = pytest.mark.usefixtures("one_thread")

FACTS: dict[str, Any] = {
    "n_done": 3,
    "best": float("inf"),
    "rate": 0.1 + 0.2,
    "words": "naïve 日本",
    "rest": [None, True],
}
TEXT = [["the", "duck", "sat"], ["the", "naïve", "duck"]]
OTHER_TEXT = [["a", "b", "c", "d", "e"]]

MakeOptimizer = Callable[[Iterable[nn.Parameter]], Optimizer]
OPTIMIZERS: dict[str, MakeOptimizer] = {
    "AdamW": lambda parameters: AdamW(parameters, lr=0.01, betas=(0.8, 0.95), weight_decay=0.1),
    "AdamW, fused": lambda parameters: AdamW(parameters, lr=0.01, fused=True),
    "Adagrad": lambda parameters: Adagrad(parameters, lr=0.1, initial_accumulator_value=1.0),
    "SGD": lambda parameters: SGD(parameters, lr=0.1, momentum=0.9),
    "SGD without momentum": lambda parameters: SGD(parameters, lr=0.1),
}


def contents(directory: Path) -> dict[str, bytes]:
    """Read every file below a directory, hidden ones too."""
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def make_tensors(seed: int = 0) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return {
        "model.weight": torch.randn(3, 4, generator=generator),
        "model.half": torch.randn(3, generator=generator).bfloat16(),
        "positions": torch.randint(2**40, (2, 2), generator=generator),
        "step": torch.tensor(3.0),
    }


def assert_same(tensors: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    assert tensors.keys() == expected.keys()
    for name, tensor in tensors.items():
        assert tensor.dtype == expected[name].dtype, name
        assert torch.equal(tensor, expected[name]), name


# Checkpoints


def test_checkpoint_roundtrip(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    Checkpoint(make_tensors(1), {"n_done": 1}).to_disk(path)
    Checkpoint(make_tensors(), FACTS).to_disk(path)
    read = Checkpoint.from_disk(path)
    assert_same(read.tensors, make_tensors())
    assert read.facts == FACTS
    assert list(contents(tmp_path)) == ["checkpoint.safetensors"]


def test_checkpoint_of_tensors_that_are_views_or_learn(tmp_path: Path) -> None:
    parameter = nn.Parameter(torch.arange(6.0).view(2, 3))
    tensors = {"weight": parameter, "turned": parameter.T, "row": torch.tensor([[7.0]]).expand(2, 3)}
    Checkpoint({"row": tensors["row"], "weight": parameter, "turned": tensors["turned"]}, {}).to_disk(tmp_path / "a")
    read = Checkpoint.from_disk(tmp_path / "a").tensors
    assert_same(read, {name: tensor.detach() for name, tensor in tensors.items()})
    assert not any(tensor.requires_grad for tensor in read.values())


def test_checkpoint_has_the_usual_permissions(tmp_path: Path) -> None:
    Checkpoint(make_tensors(), FACTS).to_disk(tmp_path / "checkpoint")
    (tmp_path / "usual").touch()
    assert (tmp_path / "checkpoint").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_checkpoint_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError,
        match=r"There is no checkpoint .*nowhere to go on from\. Start without --resume, and with --overwrite",
    ):
        Checkpoint.from_disk(tmp_path / "nowhere")


@pytest.mark.parametrize("kept", [0, 4, 30, 0.5, -1])
def test_truncated_checkpoint(tmp_path: Path, kept: float) -> None:
    path = tmp_path / "checkpoint.safetensors"
    Checkpoint(make_tensors(), FACTS).to_disk(path)
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * kept) if isinstance(kept, float) else kept])
    with pytest.raises(ValueError, match=r"checkpoint\.safetensors is not a checkpoint of a run, or a damaged one"):
        Checkpoint.from_disk(path)


def test_foreign_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    for metadata in (None, {"format": "pt"}, {"facts": "{"}):
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
        Checkpoint(make_tensors(), FACTS).to_disk(path)
    before = contents(tmp_path)

    def fill_the_disk(tensors: Any, draft: Path, **_: Any) -> None:
        draft.write_bytes(b"half")
        raise OSError("no space left on device")

    monkeypatch.setattr(checkpoint_module, "save_file", fill_the_disk)
    advice = r"There is none yet\." if is_first else r"The one before it is as it was\."
    message = rf"The checkpoint .*checkpoint\.safetensors could not be written: no space left on device\. {advice}"
    with pytest.raises(OSError, match=message):
        Checkpoint(make_tensors(1), {}).to_disk(path)
    assert contents(tmp_path) == before


def test_checkpoint_that_cannot_take_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "checkpoint.safetensors"
    Checkpoint(make_tensors(), FACTS).to_disk(path)
    before = contents(tmp_path)

    def fail(draft: Path, target: Path) -> None:
        raise OSError("cannot rename")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", fail)
        with pytest.raises(OSError, match=r"could not be written: cannot rename\. The one before it is as it was\."):
            Checkpoint(make_tensors(1), {}).to_disk(path)
    assert contents(tmp_path) == before
    assert Checkpoint.from_disk(path).facts == FACTS


def test_names_under_and_within_a_prefix() -> None:
    one, other = torch.tensor(1.0), torch.tensor(2.0)
    tensors = add_prefix("model", {"a": one, "b.c": other})
    assert tensors == {"model.a": one, "model.b.c": other}
    mixed = {**tensors, "models.a": one, "model": one, "optimizer.0.step": other, "other.model.a": one}
    assert strip_prefix("model", mixed) == {"a": one, "b.c": other}
    assert strip_prefix("nothing", mixed) == {}


# Optimizers


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
def test_optimizer_goes_on_exactly(make: MakeOptimizer, tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    parameters = make_parameters(0)
    optimizer = make(parameters)
    schedule = LambdaLR(optimizer, halve)
    learn(parameters, optimizer, schedule, 3, seed=1)
    tensors, rest = optimizer_to_tensors(optimizer)
    values = {str(i): parameter for i, parameter in enumerate(parameters)}
    facts = {"optimizer": rest, "schedule": schedule.state_dict()}
    Checkpoint({**add_prefix("model", values), **add_prefix("optimizer", tensors)}, facts).to_disk(path)
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
    optimizer_from_tensors(other, strip_prefix("optimizer", checkpoint.tensors), checkpoint.facts["optimizer"])
    other_schedule.load_state_dict(checkpoint.facts["schedule"])
    assert other.param_groups[0]["lr"] == pytest.approx(optimizer.param_groups[0]["lr"] * 2**3)
    learn(others, other, other_schedule, 3, seed=2)

    for one, same in zip(parameters, others, strict=True):
        assert torch.equal(one, same)
    expected, found = (optimizer_to_tensors(each) for each in (optimizer, other))
    assert_same(found[0], expected[0])
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
    Checkpoint(tensors, rest).to_disk(tmp_path / "a")
    checkpoint = Checkpoint.from_disk(tmp_path / "a")
    optimizer_from_tensors(other, checkpoint.tensors, checkpoint.facts)
    state = other.state[others[1]]
    assert (state["count"], state["mark"], state["inner_average"].tolist()) == (5, None, [1.0, 2.0])
    assert others[0] not in other.state


# Language models


def make_model(seed: int = 0, text: list[list[str]] = TEXT) -> tuple[LanguageModel, Vocabulary]:
    vocabulary = count_words(text, max_size=100)
    bilm = random_bilm(seed)
    softmax = Softmax(len(vocabulary), bilm.config.projection).initialize(seed + 1, vocabulary.counts)
    with torch.no_grad():
        softmax.bias.copy_(torch.linspace(-1, 1, len(vocabulary)) + seed)
    return LanguageModel(bilm, softmax), vocabulary


def test_language_model_roundtrip(tmp_path: Path) -> None:
    model, vocabulary = make_model()
    model.bilm.initial_hidden, model.bilm.initial_cell = torch.rand(2, 2, 6), torch.rand(2, 2, 10)
    save_language_model(*make_model(7, OTHER_TEXT), tmp_path / "out")
    save_language_model(model, vocabulary, tmp_path / "out")
    assert sorted(contents(tmp_path)) == [
        f"out/{name}" for name in ("config.json", "model.safetensors", SOFTMAX, VOCABULARY)
    ]
    loaded, words = load_language_model(tmp_path / "out")
    assert words == vocabulary == vocabulary_of(tmp_path / "out")
    assert_same(loaded.state_dict(), model.state_dict())
    assert "bilm.initial_hidden" in loaded.state_dict()
    assert measure_likelihood(loaded, words, TEXT) == measure_likelihood(model, vocabulary, TEXT)
    # It is a weights directory, too.
    assert_same(load_weights(tmp_path / "out").state_dict(), model.bilm.state_dict())


def test_weights_without_a_softmax(tmp_path: Path) -> None:
    model, vocabulary = make_model()
    save_weights(model.bilm, tmp_path / "bare")
    assert not has_softmax(tmp_path / "bare")
    with pytest.raises(
        ValueError, match=r"bare have no softmax .*pretrain configs/finetune.cfg OUT --paths.weights .*bare"
    ):
        load_language_model(tmp_path / "bare")
    for name in (SOFTMAX, VOCABULARY):
        save_language_model(model, vocabulary, tmp_path / "out")
        assert has_softmax(tmp_path / "out")
        (tmp_path / "out" / name).unlink()
        assert not has_softmax(tmp_path / "out")
        with pytest.raises(ValueError, match="have no softmax"):
            load_language_model(tmp_path / "out")
    with pytest.raises(ValueError, match="There is no weights directory at .*nowhere"):
        load_language_model(tmp_path / "nowhere")


def test_softmax_that_does_not_fit(tmp_path: Path) -> None:
    save_language_model(*make_model(), tmp_path / "out")
    path = tmp_path / "out" / SOFTMAX
    tensors = load_file(path)
    data = path.read_bytes()
    for kept in (0, 5, len(data) - 1):
        path.write_bytes(data[:kept])
        with pytest.raises(ValueError, match=r"softmax\.safetensors is not a safetensors file, or an incomplete one"):
            load_language_model(tmp_path / "out")
    save_file({"weight": tensors["weight"]}, path)
    with pytest.raises(ValueError, match=r"do not fit the 7 words of vocab\.txt: missing \['bias'\]"):
        load_language_model(tmp_path / "out")
    save_file({**tensors, "more": torch.zeros(1)}, path)
    with pytest.raises(ValueError, match=r"unexpected \['more'\]"):
        load_language_model(tmp_path / "out")
    save_file({**tensors, "weight": tensors["weight"][:-1].contiguous()}, path)
    with pytest.raises(ValueError, match=r"weight is \(6, 6\), expected \(7, 6\)"):
        load_language_model(tmp_path / "out")


def test_softmax_that_is_not_a_number(tmp_path: Path) -> None:
    model, vocabulary = make_model()
    with torch.no_grad():
        model.softmax.weight[0, 0] = torch.nan
    save_language_model(model, vocabulary, tmp_path / "out")
    with pytest.raises(ValueError, match="infinite or not a number"):
        load_language_model(tmp_path / "out")


def test_vocabulary_of_another_softmax(tmp_path: Path) -> None:
    model, vocabulary = make_model()
    save_language_model(model, vocabulary, tmp_path / "out")
    count_words(OTHER_TEXT, max_size=100).to_disk(tmp_path / "out" / VOCABULARY)
    with pytest.raises(ValueError, match=r"do not fit the 8 words of vocab\.txt: of another shape"):
        load_language_model(tmp_path / "out")
    (tmp_path / "out" / VOCABULARY).write_text("no vocabulary", encoding="utf8")
    with pytest.raises(ValueError, match="expected a word, a tab and its frequency"):
        load_language_model(tmp_path / "out")


@pytest.mark.parametrize("precision", [torch.float16, torch.float64])
def test_softmax_of_another_precision(tmp_path: Path, precision: torch.dtype) -> None:
    model, vocabulary = make_model()
    save_language_model(model, vocabulary, tmp_path / "out")
    path = tmp_path / "out" / SOFTMAX
    save_file({name: tensor.to(precision) for name, tensor in load_file(path).items()}, path)
    loaded, _ = load_language_model(tmp_path / "out")
    assert loaded.softmax.weight.dtype == torch.float32
    torch.testing.assert_close(loaded.softmax.weight, model.softmax.weight, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("part", ["weights", "softmax", "vocabulary"])
def test_failing_write_leaves_the_model_that_was_there(
    tmp_path: Path, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_language_model(*make_model(), tmp_path / "out")
    before = contents(tmp_path)

    def fail(*_: Any, **__: Any) -> None:
        raise OSError("no space left on device")

    if part == "vocabulary":
        monkeypatch.setattr(Vocabulary, "to_disk", fail)
    else:
        monkeypatch.setattr(weights if part == "weights" else model_files, "format_tensors", fail)
    for directory in ("out", "new"):
        with pytest.raises(OSError, match="no space left"):
            save_language_model(*make_model(7, OTHER_TEXT), tmp_path / directory)
    assert contents(tmp_path) == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_language_model_leaves_the_files_of_others(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work", encoding="utf8")
    with pytest.raises(ValueError, match=r"has other files in it, such as 'thesis\.txt'"):
        save_language_model(*make_model(), tmp_path)
    assert contents(tmp_path) == {"thesis.txt": b"years of work"}
