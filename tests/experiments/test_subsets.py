"""Shares of the training data: the right size, one inside the other, and the same every time."""

from pathlib import Path

import pytest
from spacy.tokens import Doc, DocBin, Span
from spacy.vocab import Vocab

from spacy_elmo.experiments.checksums import checksum
from spacy_elmo.experiments.places import parse_shares
from spacy_elmo.experiments.subsets import choose, count_docs, read_docs, write_share

TAGS = ["DET", "NOUN", "VERB"]


@pytest.mark.parametrize(
    ("n_docs", "share", "n_chosen"),
    [(200, 1, 2), (200, 100, 200), (10, 1, 1), (10, 25, 3), (10, 24, 2), (3, 0.1, 1), (1, 50, 1), (1000, 0.5, 5)],
)
def test_shares_have_the_right_size(n_docs: int, share: float, n_chosen: int) -> None:
    chosen = choose(n_docs, share)
    assert len(chosen) == len(set(chosen)) == n_chosen
    assert chosen == sorted(chosen)
    assert set(chosen) <= set(range(n_docs))


def test_larger_shares_have_all_of_the_smaller_ones() -> None:
    shares = [choose(97, share) for share in (1, 2, 5, 10, 25, 50, 100)]
    for smaller, larger in zip(shares, shares[1:], strict=False):
        assert set(smaller) < set(larger)


def test_shares_are_random_and_the_same_every_time() -> None:
    # Another choice would make trials of today and of tomorrow differ.
    assert choose(20, 25) == [0, 10, 14, 16, 18]
    assert choose(100, 10) != list(range(10))


def make_docs(n_docs: int) -> list[Doc]:
    vocab = Vocab()
    docs = []
    for i in range(n_docs):
        doc = Doc(vocab, words=["the", f"cat{i}", "runs"], spaces=[True, False, False], tags=TAGS)
        doc.set_ents([Span(doc, 1, 2, "ANIMAL")])
        doc.spans["sc"] = [Span(doc, 0, 2, "NP")]
        doc.cats = {"odd": float(i % 2)}
        docs.append(doc)
    return docs


def test_a_share_on_disk_has_its_docs_as_they_were(tmp_path: Path) -> None:
    docs = make_docs(20)
    docs.insert(3, Doc(docs[0].vocab))  # which spaCy does not train on
    docs.insert(4, Doc(docs[0].vocab, words=["no", "spaces"]))
    DocBin(docs=docs, store_user_data=True).to_disk(tmp_path / "train.spacy")
    kept = [doc for doc in docs if len(doc)]
    assert write_share(tmp_path / "train.spacy", 25, tmp_path / "25" / "train.spacy") == 5
    vocab = Vocab()
    found = list(DocBin().from_disk(tmp_path / "25" / "train.spacy").get_docs(vocab))
    expected = [kept[i] for i in choose(21, 25)]
    assert [doc.to_json() for doc in found] == [doc.to_json() for doc in expected]
    assert [doc.has_unknown_spaces for doc in found] == [doc.has_unknown_spaces for doc in expected]
    assert sorted(path.name for path in (tmp_path / "25").iterdir()) == ["train.spacy"]


def test_docs_of_a_directory_are_those_of_its_files(tmp_path: Path) -> None:
    docs = make_docs(5)
    (tmp_path / "docs").mkdir()
    DocBin(docs=docs[:2]).to_disk(tmp_path / "docs" / "a.spacy")
    DocBin(docs=docs[2:]).to_disk(tmp_path / "docs" / "b.spacy")
    texts = [doc.text for doc in read_docs(tmp_path / "docs").get_docs(docs[0].vocab)]
    assert texts == [doc.text for doc in docs]
    docs.append(Doc(docs[0].vocab))  # which spaCy does not train on
    DocBin(docs=docs, attrs=["TAG"]).to_disk(tmp_path / "docs" / "c.spacy")
    assert count_docs(tmp_path / "docs") == 10
    with pytest.raises(ValueError, match=r"c\.spacy stores other attributes .* than .*a\.spacy"):
        read_docs(tmp_path / "docs")


def test_docs_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("Ada wrote it.", encoding="utf8")
    (tmp_path / "broken.spacy").write_text("Ada wrote it.", encoding="utf8")
    (tmp_path / "nothing.spacy").write_bytes(b"")
    (tmp_path / "directory").mkdir()
    for name, message in {
        "missing.spacy": "no such file",
        "text.txt": "expected a .spacy file",
        "directory": "expected a .spacy file",
        "broken.spacy": "is not a file of docs",
        "nothing.spacy": "is not a file of docs",
    }.items():
        for read in (read_docs, count_docs):
            with pytest.raises(ValueError, match=message):
                read(tmp_path / name)


def test_checksums_are_of_what_is_in_files(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "one").write_text("1", encoding="utf8")
        (tmp_path / name / "two").write_text("2", encoding="utf8")
    assert checksum(tmp_path / "a") == checksum(tmp_path / "b")
    assert checksum(tmp_path / "a" / "one") == checksum(tmp_path / "b" / "one")
    assert checksum(tmp_path / "a" / "one") != checksum(tmp_path / "a" / "two")
    (tmp_path / "b" / "README.md").write_text("another card", encoding="utf8")
    assert checksum(tmp_path / "a") == checksum(tmp_path / "b")
    (tmp_path / "b" / "two").write_text("3", encoding="utf8")
    assert checksum(tmp_path / "a") != checksum(tmp_path / "b")
    (tmp_path / "b" / "two").write_text("2", encoding="utf8")
    (tmp_path / "b" / "two").rename(tmp_path / "b" / "three")
    assert checksum(tmp_path / "a") != checksum(tmp_path / "b")


def test_shares_as_typed() -> None:
    assert parse_shares("100") == [100]
    assert parse_shares("50, 1,2.5,50") == [1, 2.5, 50]
    # What would be in one directory is one share.
    assert parse_shares("33.3333333,33.3333334,99.9999999") == [33.3333, 100]
    for text in ("0", "101", "ten", "", "1,,2", "-5", "nan", "1,inf"):
        with pytest.raises(ValueError, match="above 0 and up to 100"):
            parse_shares(text)
