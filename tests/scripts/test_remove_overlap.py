"""Paragraphs that repeat held-out articles."""

import lzma
from pathlib import Path

import pytest

from scripts.remove_overlap import filter_paragraphs, ngrams, remove_overlap

from .script_runner import run_in_one_line

TEXT = """The cat sat on the mat, and purred.
A second paragraph.

They say: THE CAT SAT -- ON a chair.

Nothing in common.
The cat sat. On the roof.
"""


@pytest.fixture
def paths(tmp_path: Path) -> tuple[Path, Path, Path]:
    (tmp_path / "text.txt.xz").write_bytes(lzma.compress(TEXT.encode()))
    (tmp_path / "test.txt").write_text("Yesterday the cat sat on the wall.\n", encoding="utf8")
    return tmp_path / "text.txt.xz", tmp_path / "out.txt", tmp_path / "test.txt"


def test_ngrams() -> None:
    assert list(ngrams("One, TWO -- three.", 2)) == [("one", "two"), ("two", "three")]
    assert list(ngrams("one two", 3)) == []


@pytest.mark.parametrize(
    ("n", "kept"),
    [
        (
            6,
            [
                "The cat sat on the mat, and purred.\nA second paragraph.",
                "They say",
                "Nothing in common.\nThe cat sat. On",
            ],
        ),
        (5, ["A second paragraph.", "They say", "Nothing in common.\n"]),
        (4, ["A second paragraph.", "Nothing in common.\n"]),
    ],
)
def test_paragraphs_with_n_words_in_a_row(paths: tuple[Path, Path, Path], n: int, kept: list[str]) -> None:
    text, output, held_out = paths
    n_kept, n_removed = filter_paragraphs(text, output, [held_out], n)
    articles = output.read_text(encoding="utf8").split("\n\n")
    assert len(articles) == len(kept)
    assert all(article.startswith(start) for article, start in zip(articles, kept, strict=True))
    assert n_kept == sum(len(article.strip().split("\n")) for article in articles)
    assert n_kept + n_removed == 5


def test_as_a_command(paths: tuple[Path, Path, Path]) -> None:
    text, output, held_out = paths
    arguments = (str(text), str(output), "--held-out", str(held_out))
    assert "Use a lower -n" in run_in_one_line(remove_overlap, *arguments, code=1)
    assert not output.exists()
    shown = run_in_one_line(remove_overlap, *arguments, "-n", "5")
    assert "out.txt: 3 paragraphs, without 2 that share 5 words in a row" in shown
    held_out.write_text("the a nothing", encoding="utf8")
    (text.parent / "short.txt").write_text("The mat.\n", encoding="utf8")
    short = (str(text.parent / "short.txt"), str(output), "--held-out", str(held_out), "-n", "1")
    assert "Nothing is left of" in run_in_one_line(remove_overlap, *short, code=1)
    assert "A second paragraph." in output.read_text(encoding="utf8")  # the old file stays
    text.write_bytes(text.read_bytes()[:-20])
    assert "text.txt.xz cannot be read" in run_in_one_line(remove_overlap, *arguments, "-n", "3", code=1)
