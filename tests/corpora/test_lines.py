"""Lines of any length."""

from pathlib import Path

import pytest

from spacy_elmo.corpora import lines
from spacy_elmo.corpora.lines import read_text_lines


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("abcd efg", ["abcd efg"]),
        ("abcd efghijkl", ["abcd", "efghijkl"]),
        ("abcd efgh ijkl", ["abcd", "efgh ijkl"]),  # the tenth byte is a space
        ("abcdefghi jkl", ["abcdefghi", "jkl"]),
        ("abcdefghijkl", ["abcdefghi", "jkl"]),
        ("abcdefgh日本", ["abcdefgh", "日本"]),
    ],
)
def test_parts_of_a_long_line_are_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, parts: list[str]
) -> None:
    monkeypatch.setattr(lines, "MAX_BYTES", 10)
    (tmp_path / "a.txt").write_text(f"{line}\nend\n", encoding="utf8")
    found = list(read_text_lines(tmp_path / "a.txt"))
    assert [part.text for part in found] == [*parts, "end"]
    assert [part.number for part in found] == [1] * len(parts) + [2]
    assert [part.is_cut for part in found] == [True] * (len(parts) - 1) + [False, False]
