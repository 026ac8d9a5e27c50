"""`spacy elmo debug-data`, as typed."""

from pathlib import Path

from ..command_line import run


def test_statistics_are_shown(tmp_path: Path) -> None:
    (tmp_path / "corpus.txt").write_text("Ada wrote it. It is far.\n", encoding="utf8")
    output = run("debug-data", tmp_path / "corpus.txt", "--max-chars", "6")
    assert "1 sentences, 6 tokens, 6 different words" in output
    assert "Tokens in a sentence: 50% have up to 6" in output
    assert "1 word is cut, 16.667% of the tokens: a larger max_chars would help" in output
    assert "'wrote'" in output
    output = run("debug-data", tmp_path / "corpus.txt", "--lang", "en")
    assert "2 sentences, 8 tokens" in output
    assert "None is cut" in output


def test_chinese(tmp_path: Path) -> None:
    (tmp_path / "corpus.txt").write_text("数学是学科。《九章算术》很老！\n", encoding="utf8")
    output = run("debug-data", tmp_path / "corpus.txt", "--lang", "zh")
    assert "2 sentences, 15 tokens" in output
    assert "max_chars = 146" in output
    output = run("debug-data", tmp_path / "corpus.txt", "--lang", "zh", "--segmenter", "jieba", "--max-chars", "8")
    assert "2 sentences, 10 tokens" in output
    assert "1 word is cut, 10.000% of the tokens: a larger max_chars would help" in output
    assert "'九章算术'" in output


def test_errors_are_reported(tmp_path: Path) -> None:
    assert "no corpus at" in run("debug-data", tmp_path / "no.txt", code=1)
    (tmp_path / "corpus.txt").write_text("Ada .", encoding="utf8")
    assert "for raw Chinese text" in run("debug-data", tmp_path / "corpus.txt", "--segmenter", "jieba", code=1)
    (tmp_path / "image.png").write_bytes(b"")
    assert "has an unsupported corpus format" in run("debug-data", tmp_path / "image.png", code=1)
