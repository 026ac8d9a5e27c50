"""Long texts in pieces."""

import pytest

from spacy_elmo.corpora.long_texts import LONGEST_PIECE, cut_text

SENTENCE = "数学是学科。"


@pytest.mark.parametrize(
    ("text", "starts"),
    [
        ("", [""]),
        ("word " * 50_000, ["word", " word", " word"]),
        (SENTENCE * 40_000, ["数学", "数学", "数学"]),
        ("数学吗？" * 60_000, ["数学", "数学", "数学"]),
        ("数" * 250_000, ["数", "数", "数"]),
    ],
)
def test_pieces_begin_after_words_and_sentences(text: str, starts: list[str]) -> None:
    pieces = list(cut_text(text))
    assert "".join(pieces) == text
    assert len(pieces) == len(starts)
    assert all(piece.startswith(start) for piece, start in zip(pieces, starts, strict=True))
    assert max(map(len, pieces)) <= LONGEST_PIECE
