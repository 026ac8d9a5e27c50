"""Convert words with IOB tags to spaCy's training format."""

import re
from collections.abc import Iterator
from pathlib import Path

import spacy
import typer
from spacy.tokens import Doc, DocBin
from wasabi import msg


def convert_ner(source: Path, output: Path, lang: str = "en") -> None:
    """Write each sentence as a doc with its entities.

    source (Path): A directory with train.conll, dev.conll and test.conll: a word, a tab and its tag per line. A line without
        a word ends a sentence.
    output (Path): The directory to write .spacy files to.
    lang (str): The language of the docs.
    """
    vocab = spacy.blank(lang).vocab
    parts = {}
    for part in ("train", "dev", "test"):
        path = source / f"{part}.conll"
        try:
            parts[part] = [Doc(vocab, words=words, ents=tags) for words, tags in read_sentences(path)]
            if not parts[part]:
                raise ValueError(f"There is no sentence in {path.name}.")
        except (OSError, ValueError) as error:
            msg.fail(f"Could not convert {path}", str(error), exits=1)
    output.mkdir(parents=True, exist_ok=True)
    for part, docs in parts.items():
        DocBin(docs=docs).to_disk(output / f"{part}.spacy")
        n_entities = sum(len(doc.ents) for doc in docs)
        msg.good(f"{part}.spacy: {len(docs):,} docs, {sum(map(len, docs)):,} words, {n_entities:,} entities")


def read_sentences(path: Path) -> Iterator[tuple[list[str], list[str]]]:
    """Read the words and tags of each sentence.

    path (Path): The file, with tags in IOB2 or in IOB1, where B- is used only after an entity with the same label.
    YIELDS (tuple): Words, and tags in IOB2.
    """
    words: list[str] = []
    tags: list[str] = []
    for number, line in enumerate([*path.read_text(encoding="utf8").split("\n"), ""], start=1):
        word, _, tag = line.partition("\t")
        if word.strip():
            tag = tag.strip()
            if not re.fullmatch("O|[BI]-.+", tag):
                raise ValueError(f"Line {number} must be a word, a tab and O, B-label or I-label, got {line!r}.")
            continues = bool(tags) and tags[-1][1:] == tag[1:]
            words.append(word)
            tags.append(f"B{tag[1:]}" if tag[0] == "I" and not continues else tag)
        elif words:
            yield words, tags
            words, tags = [], []


if __name__ == "__main__":
    typer.run(convert_ner)
