"""From the files of a dataset to spaCy's training format."""

from pathlib import Path

import pytest
import spacy
from spacy.tokens import DocBin

from scripts.convert_ner import convert_ner, read_sentences
from scripts.convert_textcat import convert_textcat

from .script_runner import run_in_one_line

SCRIPTS = {"ner": convert_ner, "textcat": convert_textcat}
PARTS = ("train", "dev", "test")


def write_tags(path: Path, *tags: str) -> Path:
    """Write a sentence."""
    path.write_text("".join(f"w{i}\t{tag}\n" for i, tag in enumerate(tags)), encoding="utf8")
    return path


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ("I-PER I-PER O I-LOC", "B-PER I-PER O B-LOC"),
        ("I-PER I-LOC B-LOC I-LOC", "B-PER B-LOC B-LOC I-LOC"),
        ("B-PER I-PER O B-LOC B-LOC I-LOC", "B-PER I-PER O B-LOC B-LOC I-LOC"),
        ("B-I-X I-I-X O I-I-X", "B-I-X I-I-X O B-I-X"),
        ("B-PER I-LOC", "B-PER B-LOC"),
    ],
)
def test_tags_become_iob2(tags: str, expected: str, tmp_path: Path) -> None:
    ((words, found),) = read_sentences(write_tags(tmp_path / "train.conll", *tags.split()))
    assert words == [f"w{i}" for i in range(len(found))]
    assert found == expected.split()


def test_an_entity_ends_with_its_sentence(tmp_path: Path) -> None:
    (tmp_path / "train.conll").write_text("Ada\tI-PER\n\nLovelace\tI-PER\n", encoding="utf8")
    assert [tags for _, tags in read_sentences(tmp_path / "train.conll")] == [["B-PER"], ["B-PER"]]


@pytest.mark.parametrize("tag", ["", "I-", "B", "PER", "S-PER"])
def test_invalid_tags(tag: str, tmp_path: Path) -> None:
    path = write_tags(tmp_path / "train.conll", "O", tag)
    with pytest.raises(ValueError, match="Line 2 must be a word, a tab and O, B-label or I-label"):
        list(read_sentences(path))


def test_entities_are_written(tmp_path: Path) -> None:
    for part in PARTS:
        write_tags(tmp_path / f"{part}.conll", "I-PER", "I-PER", "O", "I-LOC")
    answer = run_in_one_line(convert_ner, tmp_path, tmp_path / "out")
    assert "dev.spacy: 1 docs, 4 words, 2 entities" in answer
    (doc,) = DocBin().from_disk(tmp_path / "out" / "train.spacy").get_docs(spacy.blank("en").vocab)
    assert [(ent.text, ent.label_) for ent in doc.ents] == [("w0 w1", "PER"), ("w3", "LOC")]


def test_categories_are_written(tmp_path: Path) -> None:
    for part in PARTS:
        (tmp_path / f"{part}.txt").write_text("good It works.\nbad It does not.\n", encoding="utf8")
    assert "test.spacy: 2 docs of 2 classes" in run_in_one_line(convert_textcat, tmp_path, tmp_path / "out")
    docs = DocBin().from_disk(tmp_path / "out" / "train.spacy").get_docs(spacy.blank("en").vocab)
    assert [(doc.text, doc.cats) for doc in docs] == [
        ("It works.", {"bad": 0.0, "good": 1.0}),
        ("It does not.", {"bad": 1.0, "good": 0.0}),
    ]


@pytest.mark.parametrize("name", ["sst5", "sst5_phrases"])
def test_tokenized_categories_are_cut_at_spaces(name: str, tmp_path: Path) -> None:
    source = tmp_path / name
    source.mkdir()
    for part in PARTS:
        (source / f"{part}.txt").write_text("0 does n't 1\xa01/2 work .\n4 it  works\n", encoding="utf8")
    run_in_one_line(convert_textcat, source, tmp_path / "out")
    docs = list(DocBin().from_disk(tmp_path / "out" / "train.spacy").get_docs(spacy.blank("en").vocab))
    assert [token.text for token in docs[0]] == ["does", "n't", "1\xa01/2", "work", "."]
    assert [token.text for token in docs[1]] == ["it", "works"]
    assert docs[1].cats == {"very negative": 0.0, "very positive": 1.0}


@pytest.mark.parametrize(
    ("script", "whole", "broken", "message"),
    [
        ("ner", "Ada\tB-PER\n", "", "There is no sentence in dev.conll"),
        ("ner", "Ada\tB-PER\n", "\n\n", "There is no sentence in dev.conll"),
        ("ner", "Ada\tB-PER\n", "Ada PER\n", "Line 1 must be a word"),
        ("textcat", "good It works.\n", "", "There is no line in dev.txt"),
        ("textcat", "good It works.\n", "good\n", "Line 1 must be a label"),
        ("textcat", "good It works.\n", "bad It does not.\n", "The labels ['bad'] do not occur in"),
    ],
)
def test_nothing_is_written_if_one_part_cannot_be_read(
    script: str, whole: str, broken: str, message: str, tmp_path: Path
) -> None:
    suffix = {"ner": "conll", "textcat": "txt"}[script]
    for part in PARTS:
        (tmp_path / f"{part}.{suffix}").write_text(broken if part == "dev" else whole, encoding="utf8")
    answer = run_in_one_line(SCRIPTS[script], tmp_path, tmp_path / "out", code=1)
    assert f"dev.{suffix}" in answer
    assert message in answer
    assert not (tmp_path / "out").exists()
