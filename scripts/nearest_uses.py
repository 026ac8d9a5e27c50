"""Score how well layers, and combinations of layers, separate the senses of words, as a Markdown table."""

from pathlib import Path

import numpy
import spacy
import typer
from wasabi import msg

from spacy_elmo.analysis.nearest_uses import USES_FILE, combine_layers, read_uses, score_uses, use_combinations
from spacy_elmo.analysis.vectors import doc_layers


def nearest_uses(sentences: Path = USES_FILE, weights: str | None = None) -> None:
    """Print, for each kind of vector, how often the nearest other use of a word has the same sense.

    The columns of the words are the mean similarity of uses in the same sense, and in different senses.

    sentences (Path): A tab-separated file of a word, its sense and a sentence; by default the sentences of `spacy elmo demo`.
    weights (str | None): A weights directory instead of the default weights.
    """
    nlp = spacy.blank("en")
    try:
        nlp.add_pipe("elmo", config={"weights": weights})
        uses, others = read_uses(nlp, sentences)
        docs = [*(use.token.doc for use in uses), *others]
        n_layers = len(doc_layers(docs[0]))
        scores = {
            name: score_uses(uses, combine_layers(uses, combine))
            for name, combine in use_combinations(n_layers).items()
        }
    except (OSError, ValueError) as error:
        msg.fail("Could not score the senses", str(error), exits=1)
    sizes = (numpy.mean([abs(doc_layers(doc)[i]).mean() for doc in docs]) for i in range(n_layers))
    typer.echo(f"Mean absolute values of the layers: {', '.join(f'{size:.2f}' for size in sizes)}\n")
    words = sorted({use.word for use in uses})
    typer.echo(f"| vectors | nearest use has the same sense | {' | '.join(words)} |")
    typer.echo(f"|---|---|{'---|' * len(words)}")
    for name, score in scores.items():
        cells = [f"{same:.2f} / {different:.2f}" for same, different in map(score.similarities.__getitem__, words)]
        n_same = "–" if score.n_same_sense is None else f"{score.n_same_sense} of {len(uses)}"
        typer.echo(f"| {name} | {n_same} | {' | '.join(cells)} |")


if __name__ == "__main__":
    typer.run(nearest_uses)
