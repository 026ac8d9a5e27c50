"""`spacy elmo demo`: a word in two senses, and which uses of words are closest to each."""

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from spacy.cli._util import Opt
from wasabi import msg

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

SENTENCES = Path(__file__).with_name("demo.tsv")  # a word, its sense, a sentence; or only a sentence
N_SHOWN = 4


class Use(NamedTuple):
    """One use of a word in the sentences of the demo.

    word (str): The word.
    sense (str): What it is there.
    token (Token): The word, in its doc.
    """

    word: str
    sense: str
    token: "Token"


def demo_cli(
    word: str = Opt("play", "--word", help="The word to look at, of those that the sentences have in two senses"),
    weights: Path | None = Opt(None, "--weights", "-w", help="A weights directory instead of the default weights"),
) -> None:
    """Show what ELMo does: a word gets a vector of its own in each sentence, so that its senses have different neighbours."""
    from ..analysis.neighbours import find_neighbours, mark_use
    from ..layers.similarity import cosine

    try:
        uses, others = read_uses(str(weights) if weights else None)
        chosen = first_of_each_sense(uses, word)
    except (OSError, ValueError) as error:
        msg.fail("Could not run the demo", str(error), exits=1)
    docs = [*(use.token.doc for use in uses), *others]
    (found,) = find_neighbours([use.token for use in chosen], docs, n=N_SHOWN)
    for use, neighbours in zip(chosen, found, strict=True):
        msg.divider(f"{mark_use(use.token)}  ({use.sense})")
        msg.table([(f"{similarity:.3f}", mark_use(token)) for similarity, token in neighbours], max_col=80)
    one, other = (use.token for use in chosen)
    msg.info(f'Similarity of the two: {cosine(one, other):.3f}. A static vector of "{word}" would give 1.000.')
    n_right = count_same_sense(uses, [use.token.vector for use in uses])
    words = sorted({use.word for use in uses})
    msg.info(
        f"The closest use of the same word has the same sense for {n_right} of {len(uses)} uses of {', '.join(words)}."
    )
    msg.good('Next: nlp.add_pipe("elmo") in a pipeline of your own')
    msg.text("The neighbours of any word in your text: python -m spacy elmo neighbours TEXT.txt 'They [play] chess.'")
    msg.text("Train entities on it, in a checkout:     python -m spacy project run ner")


def read_uses(weights: str | None = None) -> tuple[list[Use], list["Doc"]]:
    """Read the sentences of the demo.

    weights (str | None): A weights directory, or None for the default.
    RETURNS (tuple[list[Use], list[Doc]]): The uses of words in two senses, and docs without such a word.
    """
    import spacy

    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"weights": weights})
    with SENTENCES.open(encoding="utf8", newline="") as file:
        rows = list(csv.reader(file, delimiter="\t"))
    uses, others = [], []
    for (word, sense, _), doc in zip(rows, nlp.pipe(sentence for *_, sentence in rows), strict=True):
        if word:
            uses.append(Use(word, sense, next(token for token in doc if token.text == word)))
        else:
            others.append(doc)
    return uses, others


def first_of_each_sense(uses: list[Use], word: str) -> list[Use]:
    """RETURNS (list[Use]): The first use of a word in each of its senses."""
    firsts = {use.sense: use for use in reversed(uses) if use.word == word}
    if not firsts:
        words = ", ".join(dict.fromkeys(use.word for use in uses))
        raise ValueError(f"The demo has no sentences with {word!r}; it has some with: {words}.")
    return [*reversed(firsts.values())]


def count_same_sense(uses: list[Use], vectors: list[Any]) -> int:
    """Count the uses whose closest other use of the same word has the same sense.

    uses (list[Use]): The uses.
    vectors (list[NDArray]): A vector for each.
    RETURNS (int): How many there are.
    """
    units = [vector / ((vector**2).sum() ** 0.5 or 1.0) for vector in vectors]

    def closest(i: int) -> int:
        rest = [j for j, other in enumerate(uses) if other.word == uses[i].word and j != i]
        return max(rest, key=lambda j: float(units[i] @ units[j]))

    return sum(uses[closest(i)].sense == use.sense for i, use in enumerate(uses))
