"""`spacy elmo neighbours`, as typed."""

from pathlib import Path

import pytest

from ..command_line import run


def test_neighbours(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("They play chess . He saw the play .\n\nCats sleep .\n", encoding="utf8")
    output = run("neighbours", tmp_path / "text.txt", "We [play] cards.", "A [play] ended.", "-n", "2", "--layer", "0")
    assert output.count("layer 0 1.000") == 4  # the token layer knows the word and no context
    assert "We [play] cards." in output
    assert "They [play] chess ." in output
    output = run("neighbours", tmp_path / "text.txt", "We [play] cards.", "-n", "3")
    assert "1.000" not in output
    assert output.index("They [play] chess .") < output.index("He saw the [play] .")
    assert "Cats" not in run("neighbours", tmp_path / "text.txt", "We [play].", "-n", "9", "--limit", "1")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["We play cards."], "one word in square brackets"),
        (["We [play] [cards]."], "one word in square brackets"),
        (["We [play cards]."], "'play cards' in square brackets is not one token"),
        (["We [pl]ay cards."], "'pl' in square brackets is not one token"),
        (["We [play].", "--layer", "3"], "no layer 3: the layers are 0 to 2"),
        (["We [play].", "--lang", "nolang"], "nolang"),
        (["We [play].", "--weights", "nothing"], "no weights directory"),
    ],
)
def test_neighbours_report_errors(tmp_path: Path, arguments: list[str], message: str) -> None:
    (tmp_path / "text.txt").write_text("They play chess .\n", encoding="utf8")
    assert message in run("neighbours", tmp_path / "text.txt", *arguments, code=1)


def test_neighbours_in_an_empty_text(tmp_path: Path) -> None:
    assert "nothing.txt" in run("neighbours", tmp_path / "nothing.txt", "We [play].", code=1)
    (tmp_path / "empty.txt").write_text("\n", encoding="utf8")
    assert "no sentence to search" in run("neighbours", tmp_path / "empty.txt", "We [play].", code=1)
