"""Split a text into training, dev and test data, by whole articles at regular intervals."""

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer
from tqdm import tqdm
from wasabi import msg

from spacy_elmo.corpora.articles import read_articles
from spacy_elmo.files.atomic import write_directory

PARTS = ("train", "dev", "test")
DEV = 7  # the first article that is held out


def split_articles(texts: list[Path], output: Path, every: Annotated[int, typer.Option(min=3)] = 250) -> None:
    """Write train.txt, dev.txt and test.txt.

    texts (list[Path]): Text files, compressed (.gz, .xz) or not: one paragraph per line, and empty lines between articles.
    output (Path): The directory to write them to.
    every (int): One of this many articles is for dev, and one for test. Each file is counted separately.
    """
    try:
        counts = split_files(texts, output, every=every)
    except (OSError, ValueError) as error:
        msg.fail("Could not split the articles", str(error), exits=1)
    msg.good(f"{output}: {', '.join(f'{counts[part]:,} {part}' for part in PARTS)} articles")


def split_files(texts: list[Path], output: Path, *, every: int) -> Counter[str]:
    """Write train.txt, dev.txt and test.txt, all of them or none.

    texts (list[Path]): The text files.
    output (Path): The directory.
    every (int): One of this many articles is for dev, and one for test.
    RETURNS (Counter[str]): The number of articles in each part.
    """
    if inside := [path for path in texts if path.resolve().parent == output.resolve()]:
        raise ValueError(f"{inside[0]} is in {output}, which would be replaced. Choose another directory.")
    counts: Counter[str] = Counter()
    most = 0
    with write_directory(output, files={f"{part}.txt" for part in PARTS}) as draft:
        files = {part: (draft / f"{part}.txt").open("w", encoding="utf8") for part in PARTS}
        try:
            for path in texts:
                before = counts.total()
                articles = tqdm(read_articles(path), unit=" articles", desc=path.name, disable=None)
                for number, article in enumerate(articles):
                    part = choose_part(number, every)
                    files[part].write("\n" * bool(counts[part]) + "".join(f"{line}\n" for line in article))
                    counts[part] += 1
                most = max(most, counts.total() - before)
        finally:
            for file in files.values():
                file.close()
        if not counts:
            raise ValueError(f"There are no articles in {', '.join(map(str, texts))}: nothing but empty lines.")
        missing = [part for part in PARTS if not counts[part]]
        if missing:
            advice = f"Use --every {most} or less." if most >= 3 else "At least 3 are needed in one of the files."
            raise ValueError(
                f"There are too few articles, {counts.total()}, for a {' and a '.join(missing)} part. {advice}"
            )
    return counts


def choose_part(number: int, every: int) -> str:
    """Choose where an article goes.

    number (int): Its number in its file, from 0.
    every (int): One of this many articles is for dev, and another one, half an interval later, for test.
    RETURNS (str): "train", "dev" or "test".
    """
    position = number % every
    if position == DEV % every:
        return "dev"
    return "test" if position == (DEV + every // 2) % every else "train"


if __name__ == "__main__":
    typer.run(split_articles)
