"""`spacy elmo demo`, as typed."""

import re
from pathlib import Path

from spacy_elmo.bilm.weights import save_weights

from ..command_line import run
from ..helpers import random_bilm


def test_demo_distinguishes_senses(tmp_path: Path) -> None:
    output = run("demo")
    assert "The children [play] in the garden every afternoon. (verb)" in output
    assert "She wrote a [play] about two rival kings. (noun)" in output
    between = re.search(r"Similarity of the two: (\d\.\d{3})", output)
    assert between
    assert 0.3 < float(between[1]) < 0.8
    right = re.search(r"same sense for (\d+) of 60 uses", output)
    assert right
    assert int(right[1]) > 40  # by chance, 5 of the 11 other uses would be right: 27
    assert "Next: " in output
    assert "(river)" in run("demo", "--word", "bank")
    save_weights(random_bilm(), tmp_path / "weights")
    assert run("demo", "--weights", tmp_path / "weights") != output
    assert "no weights directory" in run("demo", "--weights", tmp_path / "nothing", code=1)
    (tmp_path / "weights" / "model.safetensors").write_bytes(b"half")
    message = run("demo", "--weights", tmp_path / "weights", code=1)
    assert "Could not run the demo" in message
    assert "model.safetensors" in message
    assert "play, bank, spring, bat, match" in run("demo", "--word", "table", code=1)
