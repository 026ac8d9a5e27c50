"""`spacy elmo demo`: the same word in two senses gets different vectors."""

from pathlib import Path
from typing import NamedTuple

from spacy.cli._util import Opt
from wasabi import msg

SENTENCES = [
    ("verb", "The children play in the garden every afternoon ."),
    ("verb", "They play chess with their neighbours on Sundays ."),
    ("noun", "She wrote a play about two rival kings ."),
    ("noun", "The theatre is rehearsing a new play this month ."),
]
WORD = "play"


class Use(NamedTuple):
    """One use of the word.

    sense (str): What it is there.
    sentence (str): Where it stands.
    similarities (list[float]): How close it is to each of the uses, itself included.
    """

    sense: str
    sentence: str
    similarities: list[float]


def demo_cli(
    weights: Path | None = Opt(None, "--weights", "-w", help="A weights directory instead of the default weights"),
) -> None:
    """Show what ELMo does: the word "play", as a verb and as a noun, gets a vector for each of its uses."""
    try:
        uses = demo(str(weights) if weights else None)
    except ValueError as error:
        msg.fail("Could not run the demo", str(error), exits=1)
    msg.divider(f'One word, {len(uses)} uses of it: how similar are the vectors of "{WORD}"?')
    rows = [
        (i, use.sense, use.sentence, *(f"{similarity:.3f}" for similarity in use.similarities))
        for i, use in enumerate(uses, start=1)
    ]
    msg.table(rows, header=("", "", "", *(str(i) for i in range(1, len(uses) + 1))), divider=True, max_col=60)
    msg.good("A static vector would give 1.000 everywhere: here each use has its own, from its sentence")
    msg.text('Next: nlp.add_pipe("elmo") in a pipeline of your own, or python -m spacy project run ner to train on it')


def demo(weights: str | None = None) -> list[Use]:
    """Compare the uses of a word.

    weights (str | None): A weights directory, or None for the default.
    RETURNS (list[Use]): Its uses.
    """
    import spacy

    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"weights": weights})
    tokens = [next(token for token in nlp(sentence) if token.text == WORD) for _, sentence in SENTENCES]
    return [
        Use(sense, sentence, [token.similarity(other) for other in tokens])
        for (sense, sentence), token in zip(SENTENCES, tokens, strict=True)
    ]
