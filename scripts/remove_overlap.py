"""Remove the paragraphs of a text that repeat held-out articles, so that the articles can test a model that was trained on it."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from tqdm import tqdm
from wasabi import msg

from spacy_elmo.corpora.articles import read_articles
from spacy_elmo.files.atomic import open_file

HELD_OUT_HELP = "A text of held-out articles, such as the dev.txt and test.txt of split_articles.py. Can be repeated"


def remove_overlap(
    text: Path,
    output: Path,
    held_out: Annotated[list[Path], typer.Option(help=HELD_OUT_HELP)],
    n: Annotated[int, typer.Option("-n", min=1)] = 13,
) -> None:
    """Write a text without the paragraphs that share words in a row with held-out articles.

    text (Path): The text file, compressed (.gz, .xz) or not: one paragraph per line, and empty lines between articles.
    output (Path): The text file to write.
    held_out (list[Path]): The held-out articles, in the same form.
    n (int): The number of words in a row. Case and punctuation do not count.
    """
    try:
        n_kept, n_removed = filter_paragraphs(text, output, held_out, n)
    except (OSError, ValueError) as error:
        msg.fail(f"Could not filter {text}", str(error), exits=1)
    msg.good(f"{output}: {n_kept:,} paragraphs, without {n_removed:,} that share {n} words in a row")


def filter_paragraphs(text: Path, output: Path, held_out: list[Path], n: int) -> tuple[int, int]:
    """Write a text without the paragraphs that share words in a row with held-out articles, all of it or nothing.

    text, output (Path): The text file to read, and the one to write.
    held_out (list[Path]): The held-out articles.
    n (int): The number of words in a row.
    RETURNS (tuple[int, int]): The number of paragraphs that were kept, and of those that were removed.
    """
    known = {
        gram for path in held_out for article in read_articles(path) for line in article for gram in ngrams(line, n)
    }
    if not known:
        raise ValueError(f"No paragraph of {', '.join(map(str, held_out))} has {n} words or more. Use a lower -n.")
    n_kept = n_removed = 0
    with open_file(output) as file:
        for article in tqdm(read_articles(text), unit=" articles", desc=text.name, disable=None):
            kept = [line for line in article if known.isdisjoint(ngrams(line, n))]
            if kept:
                file.write("\n" * bool(n_kept) + "".join(f"{line}\n" for line in kept))
            n_kept += len(kept)
            n_removed += len(article) - len(kept)
        if not n_kept:
            raise ValueError(f"Nothing is left of {text}: {n_removed:,} paragraphs, and all of them overlap.")
    return n_kept, n_removed


def ngrams(line: str, n: int) -> Iterator[tuple[str, ...]]:
    """YIELDS (tuple[str, ...]): Each n words in a row of a line, in lower case."""
    words = re.findall(r"\w+", line.lower())
    return zip(*(words[start:] for start in range(n)), strict=False)


if __name__ == "__main__":
    typer.run(remove_overlap)
