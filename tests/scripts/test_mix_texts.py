"""Several texts in random order."""

import gzip
from collections import Counter
from pathlib import Path

import pytest

from scripts.mix_texts import mix_texts, parse_text

from .script_runner import run_in_one_line

A = [f"a{i}" for i in range(100)]
B = [f"b{i} ä" for i in range(10)]


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    (tmp_path / "a.txt").write_text("\n\n".join(A), encoding="utf8")
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress("\n".join(B).encode()))
    return tmp_path


def mix(directory: Path, *arguments: str | Path) -> list[str]:
    run_in_one_line(mix_texts, directory / "out.txt", *arguments)
    return (directory / "out.txt").read_text(encoding="utf8").splitlines()


def test_whole_texts_in_another_order(texts: Path) -> None:
    lines = mix(texts, texts / "a.txt", texts / "b.txt.gz")
    assert sorted(lines) == sorted(A + B)
    assert lines != A + B
    assert any(line in A for line in lines[: len(B)])
    assert lines == mix(texts, texts / "a.txt", texts / "b.txt.gz")
    assert lines != mix(texts, texts / "a.txt", texts / "b.txt.gz", "--seed", "1")


def test_fractions_and_repetitions(texts: Path) -> None:
    lines = Counter(mix(texts, f"{texts / 'a.txt'}=0.25", f"{texts / 'b.txt.gz'}=2.5"))
    assert Counter(lines[line] for line in A) == {0: 75, 1: 25}
    assert Counter(lines[line] for line in B) == {2: 5, 3: 5}


def test_names_with_equals_signs() -> None:
    assert parse_text("a=b.txt") == (Path("a=b.txt"), 1.0)
    assert parse_text("a=b.txt=3") == (Path("a=b.txt"), 3.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a.txt=0"], "more than 0 and up to 100 times, got a.txt=0"),
        (["a.txt=nan"], "more than 0 and up to 100 times, got a.txt=nan"),
        (["none.txt"], "none.txt cannot be read"),
        (["empty.txt"], "There is no line in empty.txt"),
        (["a.txt=0.001"], "a.txt has 100 lines, and 0.001 of them is no line"),
    ],
)
def test_refused(arguments: list[str], message: str, texts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(texts)
    Path("empty.txt").write_text("\n\n")
    assert message in run_in_one_line(mix_texts, "out.txt", *arguments, code=1)
    assert not Path("out.txt").exists()
