"""Turn words and IOB2 tags into spaCy's training format: train.conll, dev.conll and test.conll of a directory."""

from collections.abc import Iterator
from pathlib import Path

import spacy
import typer
from spacy.tokens import Doc, DocBin
from wasabi import msg


def convert_ner(source: Path, output: Path, lang: str = "en") -> None:
    """Write each sentence as a doc with its entities.

    source (Path): A directory of train.conll, dev.conll and test.conll: a word, a tab and its tag a line; lines without a
        word end a sentence.
    output (Path): The directory to write .spacy files to.
    lang (str): The language, a blank pipeline of which makes the docs.
    """
    vocab = spacy.blank(lang).vocab
    output.mkdir(parents=True, exist_ok=True)
    for part in ("train", "dev", "test"):
        path = source / f"{part}.conll"
        try:
            docs = [Doc(vocab, words=words, ents=tags) for words, tags in read_sentences(path)]
        except (OSError, ValueError) as error:
            msg.fail(f"Could not convert {path}", str(error), exits=1)
        DocBin(docs=docs).to_disk(output / f"{part}.spacy")
        n_entities = sum(len(doc.ents) for doc in docs)
        msg.good(f"{part}.spacy: {len(docs):,} docs, {sum(map(len, docs)):,} words, {n_entities:,} entities")


def read_sentences(path: Path) -> Iterator[tuple[list[str], list[str]]]:
    """Read the words and tags of each sentence.

    path (Path): The file.
    YIELDS (tuple): Words and tags.
    """
    words: list[str] = []
    tags: list[str] = []
    for number, line in enumerate([*path.read_text(encoding="utf8").split("\n"), ""], start=1):
        word, _, tag = line.partition("\t")
        if word.strip():
            if tag.strip()[:2] not in ("O", "B-", "I-"):
                raise ValueError(f"Line {number} should be a word, a tab and O, B-label or I-label, got {line!r}.")
            words.append(word)
            tags.append(tag.strip())
        elif words:
            yield words, tags
            words, tags = [], []


if __name__ == "__main__":
    typer.run(convert_ner)
