"""An embedding that is killed, wherever, and run again equals one that was not."""

import subprocess
import sys
from pathlib import Path

import pytest

from .corpora import TEXTS, embed, read_bytes, write_lines


@pytest.mark.slow
def test_killed_at_every_operation_on_the_disk(weights: str, tmp_path: Path) -> None:
    corpus = write_lines(tmp_path / "a.txt", *TEXTS)
    embed(corpus, tmp_path / "expected", weights=weights, shard_size=1100)
    expected = read_bytes(tmp_path / "expected")
    assert len(expected) == 3  # two shards and the plan
    command = [sys.executable, "-W", "ignore", "-m", "tests.embedding.crashes", corpus, tmp_path / "outputs", weights]
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2])
    assert result.returncode == 0, result.stderr
    n_points, n_kills = map(int, result.stdout.split())
    assert n_points > 30
    assert n_kills > 1
    outputs = list((tmp_path / "outputs").iterdir())
    assert len(outputs) == n_points + 2
    for output in outputs:
        assert read_bytes(output) == expected, output.name
        assert list(output.glob(".shard*")) == [], output.name
