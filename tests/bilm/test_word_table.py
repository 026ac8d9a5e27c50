"""Words as rows of a table."""

from spacy_elmo.bilm.characters import Mark
from spacy_elmo.bilm.word_table import N_EXTRA_ROWS, WordTable


def test_words_marks_and_unknown_words() -> None:
    table = WordTable(["the", "New York", "<bos>"])
    words = ["the", "The", "", "New York", "<bos>", Mark.BEGIN_SENTENCE, Mark.END_SENTENCE]
    assert table.find_rows(words, 50) == [0, 5, 5, 1, 2, 3, 4]
    assert max(table.find_rows(words, 50)) == 3 + N_EXTRA_ROWS - 1


def test_words_are_cut_before_they_are_looked_up() -> None:
    table = WordTable(["日本語", "日本"])
    assert table.find_rows(["日本語", "日本語の"], 5) == [0, 0]
    assert table.find_rows(["日本語", "日本語の"], 4) == [1, 1]
    assert table.find_rows(["日本語の"], 50) == [4]
