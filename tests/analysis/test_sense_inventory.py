"""First senses, from WordNet's index or from a table."""

from pathlib import Path

import pytest

from spacy_elmo.analysis.sense_inventory import read_inventory

INDEX = """bank%1:14:00:: 08420278 2 20
bank%1:17:01:: 09213565 1 25
bank%2:40:00:: 02343595 1 0
bright%3:00:00:: 00278551 1 16
bright%5:00:00:intelligent:00 01335156 3 5
quick%5:00:00:fast:00 00979366 1 9
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "senses"


def test_index_of_wordnet(path: Path) -> None:
    path.write_text(INDEX, encoding="utf8")
    name, first, keys = read_inventory(path)
    assert name == "senses"
    assert first == {
        ("bank", "NOUN"): "bank%1:17:01::",
        ("bank", "VERB"): "bank%2:40:00::",
        ("bright", "ADJ"): "bright%3:00:00::",
        ("quick", "ADJ"): "quick%5:00:00:fast:00",  # the first sense may be a satellite
    }
    assert keys is not None
    assert len(keys) == 6
    assert "bank%1:14:00::" in keys


def test_table(path: Path) -> None:
    path.write_text("Bank\tNOUN\tmoney\nbank\tVERB\tbank%2:40:00::\n\n", encoding="utf8")
    inventory = read_inventory(path)
    assert inventory.first == {("bank", "NOUN"): "money", ("bank", "VERB"): "bank%2:40:00::"}
    assert inventory.keys is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\n", "senses has no first senses: it is empty"),
        (
            "bank money\n",
            r"senses, line 1: expected a lemma, its part of speech and a key, separated by tabs, or a line of",
        ),
        (f"{INDEX}bank\tNOUN\tx\n", r"line 7: expected a line as in WordNet's index.sense, got"),
    ],
)
def test_files_that_cannot_be_used(path: Path, text: str, message: str) -> None:
    path.write_text(text, encoding="utf8")
    with pytest.raises(ValueError, match=message):
        read_inventory(path)
