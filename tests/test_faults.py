"""Commands on disks that are full or broken, and commands that are killed: see faulty_commands.py."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

# The command, the distance of the operations that fail, and the least number of faults.
COMMANDS = [
    ("convert", 7, 20),
    ("convert-to-bilm-tf", 7, 20),
    ("bundle_model", 7, 20),
    ("compare", 7, 20),
    ("to_disk", 7, 20),
    ("pretrain", 2001, 15),
    ("trials", 401, 15),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "every", "least"), COMMANDS, ids=[name for name, _, _ in COMMANDS])
def test_old_or_new_after_a_fault_and_new_after_the_next_run(name: str, every: int, least: int, tmp_path: Path) -> None:
    command = [sys.executable, "-W", "ignore", "-m", "tests.faulty_commands", name, tmp_path / "faults", str(every)]
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[1])
    assert result.returncode == 0, result.stderr
    found = re.search(r": (\d+) faults", result.stdout)
    assert found is not None
    assert int(found[1]) >= least
    for kind in ("kill: killed", "ENOSPC: failed", "EIO: failed", "full: failed", "killed while writing: killed"):
        assert kind in result.stdout
