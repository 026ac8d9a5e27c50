"""Ray on this machine: a worker is killed, the driver is killed, and the result is that of a local run. And clusters that
change, which are played."""

import os
import signal
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from spacy_elmo.embedding.events import Event, Finished
from spacy_elmo.embedding.plan import Shard
from spacy_elmo.embedding.ray_tasks import embed_on_ray, find_cluster

from .corpora import TEXTS, embed, read_bytes, write_lines
from .processes import find_descendants, wait_until

SHARD_SIZE = 60_000  # about half a second


def start(corpus: Path, output: Path, weights: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-W", "ignore", "-m", "spacy", "elmo", "embed", str(corpus), str(output)]
    options = ["--engine", "ray", "--workers", "2", "--weights", weights, "--shard-size", str(SHARD_SIZE)]
    environment = {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"}
    return subprocess.Popen(
        [*command, *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    )


def kill_worker(driver: int) -> None:
    """Kill a process of Ray's that embeds a shard."""
    busy = [pid for pid, line in find_descendants(driver).items() if line.startswith("ray::embed_shard")]
    os.kill(busy[0], signal.SIGKILL)


@pytest.mark.slow
def test_result_is_that_of_a_local_run(weights: str, tmp_path: Path) -> None:
    corpus, output = write_lines(tmp_path / "a.txt", *TEXTS * 150), tmp_path / "out"
    with start(corpus, output, weights) as driver:
        wait_until(lambda: list(output.glob(".shard-*")))
        kill_worker(driver.pid)
        wait_until(lambda: list(output.glob("shard-*")))
        driver.kill()
        driver.communicate()
    assert 0 < len(list(output.glob("shard-*"))) < 6
    with start(corpus, output, weights) as driver:
        printed, _ = driver.communicate()
    assert driver.returncode == 0, printed
    assert "Finished already: " in printed
    embed(corpus, tmp_path / "expected", weights=weights, shard_size=SHARD_SIZE)
    assert read_bytes(output) == read_bytes(tmp_path / "expected")


class PlayedRay:
    """Takes the place of Ray: the task that was submitted first ends first.

    resources (dict[str, float]): What the cluster has before the first task ends, before the second one, and so on. The last
        one stays.
    """

    exceptions = SimpleNamespace(RayError=RuntimeError)

    def __init__(self, *resources: dict[str, float]) -> None:
        self._resources = deque(resources)
        self.n_running: list[int] = []  # whenever the driver waits

    def init(self, *arguments: Any, **settings: Any) -> None:
        pass

    def shutdown(self) -> None:
        pass

    def cluster_resources(self) -> dict[str, float]:
        return self._resources.popleft() if len(self._resources) > 1 else self._resources[0]

    def remote(self, **options: Any) -> Callable[[Any], Any]:
        return lambda function: SimpleNamespace(remote=lambda job, shard: shard.name)

    def wait(self, running: list[str]) -> tuple[list[str], list[str]]:
        self.n_running.append(len(running))
        return running[:1], running[1:]

    def get(self, task: str) -> int:
        return int(task[6:12])


@pytest.mark.parametrize(
    ("resources", "n_running"),
    [
        ([{"CPU": 2.0}], [4, 4, 4, 4, 4, 3, 2, 1]),
        ([{"CPU": 1.0}, {"CPU": 1.0}, {"CPU": 3.0}], [2, 2, 6, 5, 4, 3, 2, 1]),  # it grows
        ([{"CPU": 3.0}, {"CPU": 1.0}], [6, 5, 4, 3, 2, 2, 2, 1]),  # it shrinks
        ([{"memory": 1e9}], [2, 2, 2, 2, 2, 2, 2, 1]),  # no CPUs yet: tasks that wait let a cluster grow
        ([{"CPU": 0.5}], [2, 2, 2, 2, 2, 2, 2, 1]),
    ],
    ids=str,
)
def test_tasks_that_are_submitted_follow_the_size_of_the_cluster(
    resources: list[dict[str, float]], n_running: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    ray = PlayedRay(*resources)
    monkeypatch.setattr("spacy_elmo.embedding.ray_tasks.import_ray", lambda: ray)
    shards = [Shard(name=f"shard-{i:06}.parquet", pieces=[], n_rows=1, n_chars=1, digest="") for i in range(8)]
    events: list[Event] = []
    embed_on_ray(None, shards, events.append, address=None, n_workers=1)
    assert events == [Finished(shard.name, i) for i, shard in enumerate(shards)]
    assert ray.n_running == n_running


def test_address_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # and nobody listens
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        for given in (address, f"ray://{address}"):
            with pytest.raises(ConnectionError, match=f"Ray does not answer at {given}: .* Is the cluster running"):
                find_cluster(given)
        monkeypatch.setenv("RAY_ADDRESS", address)
        with pytest.raises(ConnectionError, match=f"Ray does not answer at {address}"):
            find_cluster(None)
    monkeypatch.delenv("RAY_ADDRESS")
    assert find_cluster(None) is None


def test_ray_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match=r"needs ray here.* `pip install ray`, or as an extra: .*spacy-elmo\[ray\]"):
        find_cluster(None)
