"""Ray on this machine: a worker is killed, the driver is killed, and the result is that of a local run."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from spacy_elmo.embedding.ray_tasks import find_cluster

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
