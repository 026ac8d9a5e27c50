"""Mix texts of several sources in random order, each as a whole, in part or several times."""

import random
from pathlib import Path
from typing import Annotated

import typer
from wasabi import msg

from spacy_elmo.corpora.articles import read_articles
from spacy_elmo.files.atomic import open_file

TEXTS_HELP = "Texts, compressed (.gz, .xz) or not. FILE=2 takes each line twice, FILE=0.5 a random half of the lines"


def mix_texts(
    output: Path,
    texts: Annotated[list[str], typer.Argument(help=TEXTS_HELP)],
    seed: Annotated[int, typer.Option(help="Another seed chooses other lines, in another order")] = 0,
) -> None:
    """Write the lines of several texts in random order. All lines are held in memory.

    A pretraining that stops early has then read some of every source. For tokenized sentences, order does not matter to a
    language model that starts each sentence from the same state (carry_state = false).

    output (Path): The text file to write.
    texts (list[str]): The texts, each as FILE or FILE=TIMES.
    seed (int): The seed.
    """
    randomizer = random.Random(seed)
    lines: list[str] = []
    try:
        for path, times in map(parse_text, texts):
            chosen = take_lines(path, times, randomizer)
            msg.info(f"{path}: {len(chosen):,} lines")
            lines += chosen
        randomizer.shuffle(lines)
        with open_file(output) as file:
            file.writelines(f"{line}\n" for line in lines)
    except (OSError, ValueError) as error:
        msg.fail("Could not mix the texts", str(error), exits=1)
    msg.good(f"{output}: {len(lines):,} lines")


def parse_text(text: str) -> tuple[Path, float]:
    """Read an argument.

    text (str): FILE or FILE=TIMES.
    RETURNS (tuple[Path, float]): The file, and how often to take its lines.
    """
    path, separator, times = text.rpartition("=")
    if not separator:
        return Path(text), 1.0
    try:
        number = float(times)
    except ValueError:
        return Path(text), 1.0  # a name with an equals sign
    if not 0 < number <= 100:
        raise ValueError(f"A text can be taken more than 0 and up to 100 times, got {text}.")
    return Path(path), number


def take_lines(path: Path, times: float, randomizer: random.Random) -> list[str]:
    """Take lines of a text.

    path (Path): The text file. Empty lines are left out.
    times (float): How often: 2.5 takes every line twice, and a random half of them once more.
    randomizer (Random): Chooses the lines.
    RETURNS (list[str]): The lines, at least one.
    """
    lines = [line for article in read_articles(path) for line in article]
    if not lines:
        raise ValueError(f"There is no line in {path}.")
    whole, fraction = divmod(times, 1)
    chosen = lines * int(whole) + randomizer.sample(lines, round(fraction * len(lines)))
    if not chosen:
        raise ValueError(f"{path} has {len(lines)} lines, and {times:g} of them is no line. Use a larger number.")
    return chosen


if __name__ == "__main__":
    typer.run(mix_texts)
