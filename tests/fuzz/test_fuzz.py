"""The fuzzer itself, and a short run of it."""

import gzip
import json
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from .mutate import mutate
from .runner import check_input
from .targets import LEGACY, ROOT, TARGETS, Target


@pytest.mark.parametrize("name", TARGETS)
def test_files_that_are_not_damaged_are_read(name: str, tmp_path: Path) -> None:
    TARGETS[name].write(tmp_path)
    TARGETS[name].read(tmp_path)


@pytest.mark.slow
def test_short_run_finds_nothing() -> None:
    command = [sys.executable, "-W", "ignore", "-m", "tests.fuzz", "--inputs", "1500"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout[-5000:] + result.stderr[-5000:]
    assert result.stdout.endswith("1,500 inputs, 0 findings {}\n")


def read_with(error: Exception | None) -> Target:
    def read(directory: Path) -> None:
        if error is not None:
            raise error

    return Target(write=lambda directory: None, read=read)


def test_errors_that_are_not_ours_are_found(tmp_path: Path) -> None:
    directory, files = tmp_path / "input", {"a": b"1"}
    assert check_input(read_with(None), files, directory) is None
    assert check_input(read_with(ValueError(f"{directory}/a cannot be read")), files, directory) is None
    assert not directory.exists()
    for error in (
        KeyError("a"),
        ValueError("it does not say which file"),
        UnicodeDecodeError("utf8", b"", 0, 1, str(directory)),
        RecursionError(str(directory)),
        MemoryError(),
        ValueError(str(directory) + "a" * 100_000),
    ):
        assert check_input(read_with(error), files, directory) is not None, error


@pytest.mark.parametrize(
    "data",
    [
        b"a few\nwords\n",
        json.dumps({"a": [1, {"b": "a text that is long enough"}]}).encode(),
        gzip.compress(b'{"text": "a"}\n'),
        (LEGACY / "weights" / "model.safetensors").read_bytes(),
        (LEGACY / "pipelines" / "listeners" / "elmo" / "model").read_bytes(),
    ],
    ids=["text", "JSON", "gzip", "safetensors", "msgpack"],
)
def test_mutations_are_repeatable_and_reach_inside(data: bytes) -> None:
    found = [mutate(data, Random(i)) for i in range(200)]
    assert found == [mutate(data, Random(i)) for i in range(200)]
    assert len(set(found)) > 50
    if data[:2] == b"\x1f\x8b":
        assert any(gzip.decompress(other) != gzip.decompress(data) for other in found if _is_gzip(other))


def _is_gzip(data: bytes) -> bool:
    try:
        return bool(gzip.decompress(data)) or True
    except Exception:
        return False
