"""Signals: a run finishes its step, writes a checkpoint and stops. Resumed, it is the same run."""

import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spacy_elmo.pretraining import perplexity, prepare
from spacy_elmo.pretraining.checkpoint import Checkpoint
from spacy_elmo.pretraining.perplexity import Likelihood
from spacy_elmo.pretraining.pretrain import pretrain
from spacy_elmo.pretraining.stopping import Stopped, StopSignals, catch_signals

from ..helpers import random_bilm
from .played import COUNT, Played, play
from .runs import FINETUNE, TINY, assert_same_weights, read_metrics, resume_run, stop_run

SIGNALS = [(signal.SIGTERM, 143), (signal.SIGINT, 130)]


@pytest.mark.parametrize(("number", "code"), SIGNALS)
def test_a_signal_stops_at_once_unless_it_is_deferred(number: signal.Signals, code: int) -> None:
    before = signal.getsignal(number)
    with catch_signals() as signals:
        with pytest.raises(Stopped, match=f"stopped by {number.name}") as error:
            signal.raise_signal(number)
        assert error.value.exit_code == code
    with catch_signals() as signals, signals.deferred():
        assert not signals.is_received()
        signal.raise_signal(number)
        signal.raise_signal(signal.SIGTERM)  # the first one counts
        assert signals.is_received()
    assert signal.getsignal(number) == before


def test_ignored_signals_stay_ignored() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as a shell does for commands in the background
    try:
        with catch_signals() as signals:
            signal.raise_signal(signal.SIGINT)
            assert not signals.is_received()
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_thread_gets_no_signals() -> None:
    before = signal.getsignal(signal.SIGTERM)
    found = []

    def run() -> None:
        with catch_signals() as signals:
            found.append((signals.is_received(), signal.getsignal(signal.SIGTERM)))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert found == [(False, before)]


@pytest.mark.parametrize(
    ("received", "end"),
    [
        ({}, "continued"),
        ({2: signal.SIGTERM}, "Stopped('stopped by SIGTERM')"),
        (dict.fromkeys(range(COUNT), signal.SIGINT), "Stopped('stopped by SIGINT')"),
        ({0: signal.SIGINT, 3: signal.SIGTERM}, "Stopped('stopped by SIGTERM')"),
    ],
)
def test_all_processes_stop_together(received: dict[int, int], end: str) -> None:
    def act(processes: Played) -> None:
        signals = StopSignals()
        with signals.deferred():
            if processes.rank in received:
                signals.handle(received[processes.rank], None)
            signals.raise_together(processes)

    assert play(act) == dict.fromkeys(range(COUNT), end)


def assert_resumed_run_is_the_same(tmp_path: Path, config: Path = TINY) -> None:
    """Resume the run in `parts`, and compare it with that in `whole`."""
    resume_run(config, tmp_path / "parts")
    for name in ("model-best", "model-last"):
        assert_same_weights(tmp_path / "whole" / name, tmp_path / "parts" / name)
    assert read_metrics(tmp_path / "parts") == read_metrics(tmp_path / "whole")
    assert_same_weights(tmp_path / "whole", tmp_path / "parts")  # the checkpoint


def n_steps_saved(output: Path) -> int:
    return Checkpoint.from_disk(output / "checkpoint.safetensors").n_steps_done


@pytest.fixture
def overrides(overrides: dict[str, Any]) -> dict[str, Any]:
    """Metrics every fourth step, so that most checkpoints lie between two lines of them."""
    return {**overrides, "bilm_training.log_frequency": 4, "bilm_training.eval_frequency": 6}


def raise_at_call(number: int, function: Any) -> Any:
    """Wrap a function: one of its calls first sends a SIGTERM to this process."""
    n_calls = 0

    def call(*arguments: Any, **settings: Any) -> Any:
        nonlocal n_calls
        n_calls += 1
        if n_calls == number:
            signal.raise_signal(signal.SIGTERM)
        return function(*arguments, **settings)

    return call


@pytest.mark.parametrize("carry_state", [True, False])
@pytest.mark.parametrize("step", [1, 4, 5, 6, 8])
def test_a_run_is_stopped_after_a_step(
    tmp_path: Path, overrides: dict[str, Any], step: int, carry_state: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    overrides["bilm_training.carry_state"] = carry_state
    pretrain(TINY, tmp_path / "whole", overrides=overrides)
    with monkeypatch.context() as patch:
        patch.setattr("spacy_elmo.pretraining.loop._learn", raise_at_call(step, _learn()))
        with pytest.raises(Stopped, match="SIGTERM"):
            pretrain(TINY, tmp_path / "parts", overrides=overrides)
    assert n_steps_saved(tmp_path / "parts") == step
    assert_resumed_run_is_the_same(tmp_path)


def _learn() -> Any:
    from spacy_elmo.pretraining import loop

    return loop._learn


@pytest.mark.parametrize(("evaluation", "step"), [(1, 6), (2, 8)])
def test_a_run_is_stopped_in_an_evaluation(
    tmp_path: Path, overrides: dict[str, Any], evaluation: int, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(perplexity, "MAX_BATCH_ITEMS", 60)  # so that an evaluation has several batches
    pretrain(TINY, tmp_path / "whole", overrides=overrides)
    measured: list[Likelihood] = []
    measure = perplexity._measure_batch

    def count(*arguments: Any) -> Likelihood:
        measured.append(measure(*arguments))
        return measured[-1]

    monkeypatch.setattr(perplexity, "_measure_batch", count)
    pretrain(TINY, tmp_path / "counted", overrides=overrides)
    n_batches = len(measured) // 3  # two evaluations, and the final one
    assert n_batches > 3
    measured.clear()
    with monkeypatch.context() as patch:
        stop = (evaluation - 1) * n_batches + 2
        patch.setattr(perplexity, "_measure_batch", raise_at_call(stop, count))
        with pytest.raises(Stopped):
            pretrain(TINY, tmp_path / "parts", overrides=overrides)
    assert len(measured) == stop  # not a batch more
    assert n_steps_saved(tmp_path / "parts") == step
    assert step not in [line["step"] for line in read_metrics(tmp_path / "parts")]
    assert_resumed_run_is_the_same(tmp_path)


def test_a_run_is_stopped_in_an_evaluation_and_then_killed(
    tmp_path: Path, overrides: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    pretrain(TINY, tmp_path / "whole", overrides=overrides)
    with monkeypatch.context() as patch:
        patch.setattr(perplexity, "_measure_batch", raise_at_call(1, perplexity._measure_batch))
        with pytest.raises(Stopped):
            pretrain(TINY, tmp_path / "parts", overrides=overrides)

    def die(*_: Any) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:  # after the line of step 6, and before its checkpoint
        patch.setattr(Checkpoint, "to_disk", die)
        with pytest.raises(MemoryError):
            pretrain(TINY, tmp_path / "parts", resume=True)
    assert [line["step"] for line in read_metrics(tmp_path / "parts")] == [4, 6]
    assert_resumed_run_is_the_same(tmp_path)


def test_a_run_is_stopped_in_its_final_evaluation(
    tmp_path: Path, overrides: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    result = pretrain(TINY, tmp_path / "whole", overrides=overrides)
    with monkeypatch.context() as patch:
        patch.setattr(perplexity, "_measure_batch", raise_at_call(3, perplexity._measure_batch))
        with pytest.raises(Stopped):
            pretrain(TINY, tmp_path / "parts", overrides=overrides)
    assert not (tmp_path / "parts" / "scores.json").exists()
    assert resume_run(TINY, tmp_path / "parts") == result
    assert (tmp_path / "parts" / "scores.json").exists()


def test_a_run_is_stopped_before_its_first_step(
    tmp_path: Path, finetuning: dict[str, Any], overrides: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    pretrain(TINY, tmp_path / "first", overrides=overrides)
    finetuning["paths.weights"] = str(tmp_path / "first" / "model-best")
    monkeypatch.setattr(perplexity, "_measure_batch", raise_at_call(1, perplexity._measure_batch))
    with pytest.raises(Stopped):
        pretrain(FINETUNE, tmp_path / "out", overrides=finetuning)
    assert not (tmp_path / "out" / "checkpoint.safetensors").exists()
    with pytest.raises(ValueError, match="There is no checkpoint"):
        pretrain(FINETUNE, tmp_path / "out", resume=True)


def test_a_run_is_stopped_while_it_tokenizes(
    tmp_path: Path, overrides: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(*_: Any, **__: Any) -> Iterator[list[str]]:
        yield ["one", "sentence"]
        signal.raise_signal(signal.SIGINT)
        raise AssertionError("the signal stops this at once")

    with monkeypatch.context() as patch:
        patch.setattr(prepare, "read_corpus", read)
        with pytest.raises(Stopped, match="SIGINT"):
            pretrain(TINY, tmp_path / "out", overrides=overrides)
    assert [path for path in tmp_path.joinpath("out").rglob("*") if path.is_file()] == []
    pretrain(TINY, tmp_path / "out", overrides=overrides)


@pytest.mark.parametrize("step", [2, 3, 5, 6, 7, 8])
def test_a_run_is_resumed_from_any_checkpoint_by_time(tmp_path: Path, overrides: dict[str, Any], step: int) -> None:
    pretrain(TINY, tmp_path / "whole", overrides=overrides)
    overrides["bilm_training.checkpoint_minutes"] = 1e-9  # after every step
    stop_run(step, TINY, tmp_path / "parts", overrides)
    assert n_steps_saved(tmp_path / "parts") == (step if step in (6, 8) else step - 1)
    assert_resumed_run_is_the_same(tmp_path)


def test_without_minutes_only_evaluations_write_checkpoints(tmp_path: Path, overrides: dict[str, Any]) -> None:
    overrides["bilm_training.checkpoint_minutes"] = 0
    stop_run(5, TINY, tmp_path / "out", overrides)
    assert not (tmp_path / "out" / "checkpoint.safetensors").exists()


def test_a_softmax_that_is_trained_alone_is_stopped_in_its_evaluation(
    tmp_path: Path, finetuning: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from spacy_elmo.bilm.weights import save_weights

    save_weights(random_bilm(3), tmp_path / "weights")
    finetuning |= {"paths.weights": str(tmp_path / "weights"), "bilm_training.eval_frequency": 100}
    whole = pretrain(FINETUNE, tmp_path / "whole", overrides=finetuning)
    with monkeypatch.context() as patch:  # the first call is the evaluation at step 4, the second that of all text
        patch.setattr(perplexity, "_measure_batch", raise_at_call(2, perplexity._measure_batch))
        with pytest.raises(Stopped):
            pretrain(FINETUNE, tmp_path / "parts", overrides=finetuning)
    assert n_steps_saved(tmp_path / "parts") == 4
    assert resume_run(FINETUNE, tmp_path / "parts") == whole
    assert read_metrics(tmp_path / "parts") == read_metrics(tmp_path / "whole")
