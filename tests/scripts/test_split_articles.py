"""Articles to train on, and articles that are held out."""

import gzip
from pathlib import Path

import pytest

from scripts.split_articles import choose_part, split_articles, split_files
from spacy_elmo.corpora.articles import read_articles

from .script_runner import run_in_one_line


def write_articles(path: Path, n_articles: int) -> list[str]:
    articles = [f"Article {i} of {path.name}.\nIts second line." for i in range(n_articles)]
    text = "\n\n\n".join(articles)  # it does not matter how many empty lines there are
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return articles


@pytest.mark.parametrize("every", [3, 4, 5, 7, 25, 125, 250])
def test_every_article_is_in_one_part_in_order(tmp_path: Path, every: int) -> None:
    first = write_articles(tmp_path / "a.txt", 260)
    second = write_articles(tmp_path / "b.txt.gz", 2 * every + 1)
    counts = split_files([tmp_path / "a.txt", tmp_path / "b.txt.gz"], tmp_path / "out", every=every)
    expected: dict[str, list[str]] = {"train": [], "dev": [], "test": []}
    for articles in (first, second):
        for number, article in enumerate(articles):
            expected[choose_part(number, every)].append(article)
    for part, articles in expected.items():
        found = ["\n".join(lines) for lines in read_articles(tmp_path / "out" / f"{part}.txt")]
        assert found == articles
        assert counts[part] == len(articles)
    parts = [choose_part(number, every) for number in range(every)]
    assert (parts.count("dev"), parts.count("test")) == (1, 1)


def test_articles_of_the_bundled_model_are_held_out() -> None:
    held_out = {number: choose_part(number, 250) for number in range(500) if choose_part(number, 250) != "train"}
    assert held_out == {7: "dev", 132: "test", 257: "dev", 382: "test"}


@pytest.mark.parametrize(
    ("n_articles", "every", "message"),
    [
        (0, 250, "There are no articles in .*a.txt: nothing but empty lines"),
        (7, 250, "too few articles, 7, for a dev and a test part. Use --every 7 or less"),
        (100, 250, "too few articles, 100, for a test part. Use --every 100 or less"),
        (2, 3, "too few articles, 2, for a test part. At least 3 are needed"),
    ],
)
def test_too_few_articles(tmp_path: Path, n_articles: int, every: int, message: str) -> None:
    write_articles(tmp_path / "a.txt", n_articles)
    with pytest.raises(ValueError, match=message):
        split_files([tmp_path / "a.txt"], tmp_path / "out", every=every)
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", None, "a.txt cannot be read: .*No such file"),
        ("a.txt", b"caf\xe9", "a.txt is not UTF-8"),
        ("a.txt.gz", b"plain", "a.txt.gz cannot be read: Not a gzipped file"),
        ("a.txt.gz", gzip.compress(b"one\n\n" * 999, mtime=0)[:-20], "a.txt.gz cannot be read: Compressed file ended"),
    ],
)
def test_texts_that_cannot_be_read(tmp_path: Path, name: str, content: bytes | None, message: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        split_files([tmp_path / name], tmp_path / "out", every=3)
    assert not (tmp_path / "out").exists()


def test_articles_are_not_split_over_themselves(tmp_path: Path) -> None:
    write_articles(tmp_path / "train.txt", 9)
    before = (tmp_path / "train.txt").read_bytes()
    with pytest.raises(ValueError, match=r"train\.txt is in .*, which would be replaced"):
        split_files([tmp_path / "train.txt"], tmp_path, every=3)
    assert (tmp_path / "train.txt").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["train.txt"]


def test_split_articles_as_a_command(tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt"):
        write_articles(tmp_path / name, 9)
    arguments = (tmp_path / "a.txt", tmp_path / "b.txt", tmp_path / "out")
    output = run_in_one_line(split_articles, *arguments, "--every", "9")
    assert "14 train, 2 dev, 2 test articles" in output
    assert "Use --every 9 or less" in run_in_one_line(split_articles, *arguments, code=1)
    run_in_one_line(split_articles, *arguments, "--every", "2", code=2)  # nothing would be left to train on
