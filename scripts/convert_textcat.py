"""Convert labelled lines to spaCy's training format."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import spacy
import typer
from spacy.tokens import Doc, DocBin
from wasabi import msg


@dataclass(frozen=True)
class LineFormat:
    """How to read the lines of a dataset.

    tokenized (bool): Whether the text is tokenized, with spaces between tokens.
    names (dict[str, str]): New names of labels.
    """

    tokenized: bool = False
    names: dict[str, str] = field(default_factory=dict)


SST5 = LineFormat(
    tokenized=True,
    names={"0": "very negative", "1": "negative", "2": "neutral", "3": "positive", "4": "very positive"},
)
# By the name of the dataset's directory. All other datasets are raw text, and keep the names of their labels.
LINE_FORMATS = {"sst5": SST5, "sst5_phrases": SST5}


def convert_textcat(source: Path, output: Path, lang: str = "en") -> None:
    """Write each line as a doc with one category.

    source (Path): A directory with train.txt, dev.txt and test.txt: a label, a space or tab and a text per line.
    output (Path): The directory to write .spacy files to.
    lang (str): The language of the tokenizer.
    """
    nlp = spacy.blank(lang)
    how = LINE_FORMATS.get(source.name, LineFormat())
    labels: list[str] = []
    parts = {}
    for part in ("train", "dev", "test"):
        path = source / f"{part}.txt"
        try:
            parts[part] = lines = list(read_lines(path))
            if not lines:
                raise ValueError(f"There is no line in {path.name}.")
            labels = labels or sorted({label for label, _ in lines})  # the labels of the training data
            unknown = {label for label, _ in lines} - set(labels)
            if unknown:
                raise ValueError(
                    f"The labels {sorted(unknown)} do not occur in {source / 'train.txt'}, which has {labels}."
                )
        except (OSError, ValueError) as error:
            msg.fail(f"Could not convert {path}", str(error), exits=1)
    output.mkdir(parents=True, exist_ok=True)
    for part, lines in parts.items():
        docs = DocBin()
        for label, text in lines:
            # At spaces only: a token may have a no-break space inside.
            words = [word for word in text.split(" ") if word]
            doc = Doc(nlp.vocab, words=words) if how.tokenized else nlp.make_doc(text)
            doc.cats = {how.names.get(other, other): float(other == label) for other in labels}
            docs.add(doc)
        docs.to_disk(output / f"{part}.spacy")
        msg.good(f"{part}.spacy: {len(docs):,} docs of {len(labels)} classes")


def read_lines(path: Path) -> Iterator[tuple[str, str]]:
    """Read labels and texts.

    path (Path): The file.
    YIELDS (tuple): The label and the text.
    """
    for number, line in enumerate(path.read_text(encoding="utf8").split("\n"), start=1):
        parts = line.split(maxsplit=1)
        if len(parts) == 1:
            raise ValueError(f"Line {number} must be a label and a text, got {line!r}.")
        if parts:
            yield parts[0], parts[1].strip()


if __name__ == "__main__":
    typer.run(convert_textcat)
