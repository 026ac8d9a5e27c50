"""Processes of this machine, which may be killed."""

import multiprocessing
import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from spacy_elmo.embedding.embed import prepare, run
from spacy_elmo.embedding.events import Event, Progressed
from spacy_elmo.embedding.settings import EmbeddingSettings
from spacy_elmo.embedding.workers import embed_in_processes

from .corpora import TEXTS, embed, read_bytes, write_lines
from .processes import find_descendants, is_running, wait_until

SHARD_SIZE = 60_000  # about half a second


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "a.txt", *TEXTS * 100)


@pytest.mark.slow
def test_killed_worker_is_replaced(corpus: Path, weights: str, tmp_path: Path) -> None:
    settings = EmbeddingSettings(weights=weights, shard_size=SHARD_SIZE)
    killed: list[int] = []

    def kill_one(event: Event) -> None:
        if isinstance(event, Progressed) and not killed:
            victim = multiprocessing.active_children()[0]
            assert victim.pid is not None
            victim.kill()
            killed.append(victim.pid)

    embedding = prepare(corpus, tmp_path / "out", settings)
    assert len(embedding.missing) == 4
    assert run(embedding, partial(embed_in_processes, n_workers=2), kill_one) == []
    assert killed
    assert multiprocessing.active_children() == []
    embed(corpus, tmp_path / "expected", weights=weights, shard_size=SHARD_SIZE)
    assert read_bytes(tmp_path / "out") == read_bytes(tmp_path / "expected")


@pytest.mark.slow
def test_killed_command_is_finished_by_the_same_command(corpus: Path, weights: str, tmp_path: Path) -> None:
    output = tmp_path / "out"
    command = [sys.executable, "-W", "ignore", "-m", "spacy", "elmo", "embed", corpus, output, "--workers", "2"]
    options = ["--weights", weights, "--shard-size", str(SHARD_SIZE)]
    with subprocess.Popen([*map(str, command), *options], stdout=subprocess.DEVNULL) as process:
        wait_until(lambda: list(output.glob(".shard-*")))
        workers = [pid for pid, line in find_descendants(process.pid).items() if "spawn_main" in line]
        os.kill(process.pid, signal.SIGKILL)
        assert len(workers) == 2
    wait_until(lambda: not any(map(is_running, workers)))
    assert len(list(output.glob("shard-*"))) < 4
    embed(corpus, output, weights=weights, shard_size=SHARD_SIZE)
    embed(corpus, tmp_path / "expected", weights=weights, shard_size=SHARD_SIZE)
    assert read_bytes(output) == read_bytes(tmp_path / "expected")
    assert list(output.glob(".shard-*")) == []
