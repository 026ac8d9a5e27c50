"""`spacy elmo demo`: the nearest neighbours of a word in each of its senses."""

from pathlib import Path

from spacy.cli._util import Opt
from wasabi import msg

N_NEIGHBOURS = 4


def demo_cli(
    word: str = Opt("play", "--word", help="The ambiguous word to show: play, bank, spring, bat or match"),
    weights: Path | None = Opt(
        None, "--weights", "-w", help="A weights directory; by default the bundled model en_elmo_sm"
    ),
) -> None:
    """Show a word's neighbours in each of its senses.

    The vector of a word depends on its sentence. So the nearest neighbours of a word differ from sense to sense.
    """
    import spacy

    from ..analysis.nearest_uses import count_same_sense, first_of_each_sense, read_uses
    from ..analysis.neighbours import find_neighbours, mark_use
    from ..analysis.vectors import stack_vectors
    from ..layers.similarity import cosine

    try:
        nlp = spacy.blank("en")
        nlp.add_pipe("elmo", config={"weights": str(weights) if weights else None})
        uses, others = read_uses(nlp)
        examples = first_of_each_sense(uses, word)
    except (OSError, ValueError) as error:
        msg.fail("Could not run the demo", str(error), exits=1)
    tokens = [use.token for use in uses]
    docs = [*(token.doc for token in tokens), *others]
    (found,) = find_neighbours([use.token for use in examples], docs, n=N_NEIGHBOURS)
    for use, neighbours in zip(examples, found, strict=True):
        msg.divider(f"{mark_use(use.token)}  ({use.sense})")
        msg.table([(f"{similarity:.3f}", mark_use(token)) for similarity, token in neighbours], max_col=80)
    one, other = (use.token for use in examples)
    msg.info(f'Similarity of the two: {cosine(one, other):.3f}. A static vector of "{word}" would give 1.000.')
    n_same = count_same_sense(uses, stack_vectors(tokens))
    words = ", ".join(sorted({use.word for use in uses}))
    msg.info(f"The nearest other use of the same word has the same sense for {n_same} of {len(uses)} uses of {words}.")
    msg.good('Next: nlp.add_pipe("elmo") in your own pipeline')
    msg.text("The neighbours of any word in your text: python -m spacy elmo neighbours TEXT.txt 'They [play] chess.'")
    msg.text("Train entities on it, in a checkout:     python -m spacy project run ner")
