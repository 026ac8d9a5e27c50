"""Fractions of the training data: the right size, nested, and always the same."""

from pathlib import Path

import pytest
from spacy.tokens import Doc, DocBin, Span
from spacy.vocab import Vocab

from spacy_elmo.experiments.subsets import choose_docs, count_docs, read_docs, write_subset

TAGS = ["DET", "NOUN", "VERB"]


@pytest.mark.parametrize(
    ("n_docs", "fraction", "n_chosen"),
    [(200, 1, 2), (200, 100, 200), (10, 1, 1), (10, 25, 3), (10, 24, 2), (3, 0.1, 1), (1, 50, 1), (1000, 0.5, 5)],
)
def test_fractions_have_the_right_size(n_docs: int, fraction: float, n_chosen: int) -> None:
    chosen = choose_docs(n_docs, fraction)
    assert len(chosen) == len(set(chosen)) == n_chosen
    assert chosen == sorted(chosen)
    assert set(chosen) <= set(range(n_docs))


def test_larger_fractions_contain_smaller_ones() -> None:
    fractions = [choose_docs(97, fraction) for fraction in (1, 2, 5, 10, 25, 50, 100)]
    for smaller, larger in zip(fractions, fractions[1:], strict=False):
        assert set(smaller) < set(larger)


def test_fractions_are_random_and_always_the_same() -> None:
    # Another choice would make trials of today and of tomorrow differ.
    assert choose_docs(20, 25) == [0, 10, 14, 16, 18]
    assert choose_docs(100, 10) != list(range(10))


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


def test_docs_of_a_fraction_are_unchanged(tmp_path: Path) -> None:
    docs = make_docs(20)
    docs.insert(3, Doc(docs[0].vocab))  # which spaCy does not train on
    docs.insert(4, Doc(docs[0].vocab, words=["no", "spaces"]))
    DocBin(docs=docs, store_user_data=True).to_disk(tmp_path / "train.spacy")
    kept = [doc for doc in docs if len(doc)]
    assert write_subset(tmp_path / "train.spacy", 25, tmp_path / "25" / "train.spacy") == 5
    vocab = Vocab()
    found = list(DocBin().from_disk(tmp_path / "25" / "train.spacy").get_docs(vocab))
    expected = [kept[i] for i in choose_docs(21, 25)]
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
    with pytest.raises(ValueError, match=r"c\.spacy stores other token attributes than .*a\.spacy"):
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
