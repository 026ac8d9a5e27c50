"""`spacy elmo init-vocab`, as typed."""

from pathlib import Path

from ..command_line import run


def test_words_are_counted(tmp_path: Path) -> None:
    (tmp_path / "corpus.txt").write_text("Ada wrote it. It is far.\n", encoding="utf8")
    output = run("init-vocab", tmp_path / "corpus.txt", tmp_path / "vocab.txt", "--lang", "en", "--max-size", "5")
    assert "5 words from 8 tokens in 2 sentences" in output
    assert (tmp_path / "vocab.txt").read_text(encoding="utf8") == "<S>\t2\n</S>\t2\n<UNK>\t5\n.\t2\nAda\t1\n"


def test_chinese_words_are_counted(tmp_path: Path) -> None:
    (tmp_path / "corpus.txt").write_text("数学是学科。数学很老！\n", encoding="utf8")
    run("init-vocab", tmp_path / "corpus.txt", tmp_path / "vocab.txt", "--lang", "zh", "--segmenter", "jieba")
    lines = (tmp_path / "vocab.txt").read_text(encoding="utf8").splitlines()
    assert lines[:4] == ["<S>\t2", "</S>\t2", "<UNK>\t0", "数学\t2"]


def test_errors_are_reported(tmp_path: Path) -> None:
    assert "no corpus at" in run("init-vocab", tmp_path / "no.txt", tmp_path / "v.txt", code=1)
    (tmp_path / "corpus.txt").write_text("\n", encoding="utf8")
    assert "The corpus is empty" in run("init-vocab", tmp_path / "corpus.txt", tmp_path / "v.txt", code=1)
    assert not (tmp_path / "v.txt").exists()
