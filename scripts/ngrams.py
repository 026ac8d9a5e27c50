"""Measure the perplexity of n-gram models that predict the same words as a biLM, as a Markdown table."""

from collections.abc import Iterator
from pathlib import Path

import typer
from wasabi import msg

from spacy_elmo.analysis.ngrams import Ids, KneserNey, read_trigrams, unigram_perplexity
from spacy_elmo.corpora.read import read_corpus
from spacy_elmo.pretraining.vocabulary import Vocabulary

MARKS = {"begin": Vocabulary.BEGIN, "end": Vocabulary.END}


def ngrams(vocabulary: Path, train: Path, texts: list[Path]) -> None:
    """Print the perplexities of a unigram model, and of trigram models in both directions.

    The texts have one tokenized sentence per line, such as the sentences.txt that pretraining keeps, and may be gzipped.

    vocabulary (Path): The biLM's vocab.txt. All words that are not in it count as one.
    train (Path): The text to count n-grams in.
    texts (list[Path]): The texts to predict.
    """
    try:
        words = Vocabulary.from_disk(vocabulary)
        models = [KneserNey.count(read_text(train, words, backward=backward), len(words)) for backward in (False, True)]
        typer.echo("| text | words | unknown | unigrams | trigrams, forward | trigrams, backward |")
        typer.echo("|---|---|---|---|---|---|")
        for path in texts:
            typer.echo(f"| {' | '.join(measure(path, words, models))} |")
    except (OSError, ValueError) as error:
        msg.fail("Could not measure the perplexity", str(error), exits=1)


def measure(path: Path, vocabulary: Vocabulary, models: list[KneserNey]) -> list[str]:
    """RETURNS (list[str]): The row of the table for a text."""
    perplexities = []
    for model, backward in zip(models, (False, True), strict=True):
        trigrams_N3 = read_text(path, vocabulary, backward=backward)
        perplexities.append(model.perplexity(trigrams_N3))
    words_N = trigrams_N3[:, 2]
    unigram = unigram_perplexity(words_N, vocabulary.counts, begin=vocabulary.BEGIN)
    n_unknown = (words_N == vocabulary.UNKNOWN).mean()
    return [path.name, f"{len(words_N):,}", f"{n_unknown:.2%}", *(f"{p:,.1f}" for p in (unigram, *perplexities))]


def read_text(path: Path, vocabulary: Vocabulary, *, backward: bool) -> Ids:
    """RETURNS (Ids): trigrams_N3, each word of a text with the two before it."""
    trigrams_N3 = read_trigrams(read_ids(path, vocabulary), backward=backward, **MARKS)
    if not len(trigrams_N3):
        raise ValueError(f"{path} has no sentence. It should have one per line, with spaces between the words.")
    return trigrams_N3


def read_ids(path: Path, vocabulary: Vocabulary) -> Iterator[list[int]]:
    """YIELDS (list[int]): The ids of each sentence's words."""
    for words in read_corpus(path, lang=None):
        yield [vocabulary.id_of(word) for word in words]


if __name__ == "__main__":
    typer.run(ngrams)
