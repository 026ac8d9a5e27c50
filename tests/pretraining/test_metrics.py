"""The metrics of a run: lines of JSON, and sums over steps."""

import json
from pathlib import Path

import pytest
import torch

from spacy_elmo.pretraining.checkpoint import Progress
from spacy_elmo.pretraining.loop import Step
from spacy_elmo.pretraining.metrics import MetricsFile, MetricsRecorder, Totals
from spacy_elmo.pretraining.processes import Processes


def make_step(number: int, **changes: float) -> Step:
    step = Step(number, loss=6.0, n_predicted=4, n_words=3, learn_rate=0.1, grad_norm=0.5, seconds=0.5)
    return step._replace(**changes)


def test_lines_roundtrip(tmp_path: Path) -> None:
    file = MetricsFile(tmp_path / "metrics.jsonl")
    assert list(file) == []
    lines = [{"step": step, "loss": 0.1 * step} for step in (1, 2, 5)]
    for line in lines:
        file.append(line)
    assert list(file) == lines
    file.cut_after(4)
    assert list(file) == lines[:2]


def test_incomplete_last_line(tmp_path: Path) -> None:
    file = MetricsFile(tmp_path / "metrics.jsonl")
    file.path.write_text('{"step": 1}\n{"st', encoding="utf8")
    assert list(file) == [{"step": 1}]
    file.cut_after(1)
    file.append({"step": 2})
    assert list(file) == [{"step": 1}, {"step": 2}]


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"nowhere/metrics\.jsonl could not be written: .*No such file"):
        MetricsFile(tmp_path / "nowhere" / "metrics.jsonl").append({"step": 1})


@pytest.mark.parametrize("rank", [0, 1])
def test_recorder_sums_steps(tmp_path: Path, rank: int) -> None:
    progress = Progress(n_words=100, seconds=50.0)
    file = MetricsFile(tmp_path / "metrics.jsonl")
    totals = Totals()
    recorder = MetricsRecorder(file, progress, totals, Processes(rank, 1, torch.device("cpu")), steps_per_epoch=20)
    totals.add(make_step(9))
    totals.add(make_step(10, loss=2.0, learn_rate=0.2))
    line = recorder.write(10, {"perplexity": 8.0})
    assert line.pop("seconds") == pytest.approx(50, abs=5)
    assert line == {
        "step": 10,
        "epoch": 0.5,
        "words": 106,
        "words_per_second": 6.0,
        "loss": 1.0,
        "learn_rate": 0.2,
        "grad_norm": 0.5,
        "perplexity": 8.0,
    }
    assert progress.n_words == 106
    totals.add(make_step(11))
    assert recorder.write(11, {})["loss"] == 1.5  # of that step alone
    assert progress.n_words == 109
    written = [json.loads(text)["step"] for text in file.path.read_text().splitlines()] if rank == 0 else []
    assert (written, file.path.exists()) == (([10, 11], True) if rank == 0 else ([], False))


def test_totals_survive_a_checkpoint() -> None:
    totals = Totals()
    assert totals.is_empty
    totals.add(make_step(9, loss=0.1 + 0.2))
    totals.add(make_step(10, loss=0.1, learn_rate=0.2))
    assert Totals.from_tensor(totals.to_tensor()) == totals
    assert not totals.is_empty
    totals.reset()
    assert totals == Totals()
