"""Nearest uses: whether the use of a word that is closest to another one has the same sense."""

import csv
import statistics
from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy
from spacy.language import Language
from spacy.tokens import Doc, Token

from ..corpora.long_texts import LONG_WORD
from .vectors import Combine, Floats, doc_layers, layer_combinations, unit_vectors

# Sentences of our own, tab-separated: a word, its sense and a sentence. Without a word, the sentence is a distractor.
USES_FILE = Path(__file__).with_name("nearest_uses.tsv")

# Uses of a word whose mean similarity differs from 1 by less than this have the same vector, up to rounding.
SAME_VECTOR = 0.005


class Use(NamedTuple):
    """One use of an ambiguous word.

    word (str): The word.
    sense (str): Its sense in this sentence.
    token (Token): The word, in its doc.
    """

    word: str
    sense: str
    token: Token


class UseScore(NamedTuple):
    """How well vectors separate the senses of words.

    n_same_sense (int | None): The number of uses whose nearest other use has the same sense; None if all uses of each
        word have the same vector, so that none of them is the nearest.
    similarities (dict): For each word, the mean similarity of its uses in the same sense, and in different senses.
    """

    n_same_sense: int | None
    similarities: dict[str, tuple[float, float]]


def read_uses(nlp: Language, path: Path = USES_FILE) -> tuple[list[Use], list[Doc]]:
    """Read sentences with ambiguous words and run a pipeline on them.

    nlp (Language): The pipeline, with an `elmo` component.
    path (Path): The sentences, tab-separated: a word, its sense and a sentence with that word; or two empty fields and
        a sentence.
    RETURNS (tuple[list[Use], list[Doc]]): The uses of the words, and the docs of the other sentences.
    """
    try:
        with path.open(encoding="utf8", newline="") as file:
            rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    except (csv.Error, UnicodeDecodeError) as error:
        raise ValueError(f"{path} cannot be read as tab-separated UTF-8: {error}.") from error
    for number, row in enumerate(rows, start=1):
        if len(row) != 3 or LONG_WORD.search(row[2]):
            raise ValueError(
                f"Line {number} of {path} must be a word, its sense and a sentence, separated by tabs, got {row!r:.200}."
            )
    uses, others = [], []
    for (word, sense, sentence), doc in zip(rows, nlp.pipe(sentence for *_, sentence in rows), strict=True):
        if not word:
            others.append(doc)
            continue
        token = next((token for token in doc if token.text == word), None)
        if token is None:
            raise ValueError(f"The sentence {sentence!r:.200} in {path} has no token {word!r:.80}.")
        uses.append(Use(word, sense, token))
    if not uses:
        raise ValueError(
            f"{path} has no sentence with a word and its sense. Each line should have the three, separated by tabs."
        )
    return uses, others


def first_of_each_sense(uses: Sequence[Use], word: str) -> list[Use]:
    """Choose examples of a word.

    uses (Sequence[Use]): The uses of all words.
    word (str): The word.
    RETURNS (list[Use]): The first use of the word in each of its senses.
    """
    firsts = {use.sense: use for use in reversed(uses) if use.word == word}
    if not firsts:
        words = ", ".join(dict.fromkeys(use.word for use in uses))
        raise ValueError(f"There are no sentences with {word!r}. The words are: {words}.")
    return [*reversed(firsts.values())]


def use_combinations(n_layers: int) -> dict[str, Combine]:
    """List ways to make one vector of a token's layers.

    n_layers (int): The number of layers.
    RETURNS (dict[str, Combine]): Functions by name: those of all analyses, then two more means.
    """
    return {
        **{name: combine for name, (_, combine) in layer_combinations(n_layers).items()},
        "mean of normalized layers": lambda layers_LNW: _layer_norm(layers_LNW).mean(0),
        "mean of the LSTM layers": lambda layers_LNW: layers_LNW[1:].mean(0),
    }


def combine_layers(uses: Sequence[Use], combine: Combine) -> Floats:
    """Make the vectors of uses from their layers.

    uses (Sequence[Use]): The uses.
    combine (Combine): Makes one vector of a token's layers.
    RETURNS (NDArray): vectors_NV, one for each use.
    """
    vectors_NV: Floats = combine(numpy.stack([doc_layers(use.token.doc)[:, use.token.i] for use in uses], axis=1))
    return vectors_NV


def count_same_sense(uses: Sequence[Use], vectors_NW: Floats) -> int:
    """Count the uses whose nearest other use of the same word has the same sense.

    uses (Sequence[Use]): The uses, at least two of each word.
    vectors_NW (NDArray): A vector for each use.
    RETURNS (int): The count.
    """
    units_NW = unit_vectors(vectors_NW)

    def nearest(i: int) -> int:
        rest = [j for j, other in enumerate(uses) if other.word == uses[i].word and j != i]
        if not rest:
            raise ValueError(f"There is only one sentence with {uses[i].word!r}, so it has no nearest other use.")
        return max(rest, key=lambda j: float(units_NW[i] @ units_NW[j]))

    return sum(uses[nearest(i)].sense == use.sense for i, use in enumerate(uses))


def score_uses(uses: Sequence[Use], vectors_NW: Floats) -> UseScore:
    """Score how well vectors separate the senses of words.

    uses (Sequence[Use]): The uses. Each word has at least two senses, and one of them at least two uses.
    vectors_NW (NDArray): A vector for each use.
    RETURNS (UseScore): The score.
    """
    units_NW = unit_vectors(vectors_NW)
    # For each word, the similarities of pairs of uses, by whether their sense is the same.
    pairs: dict[str, dict[bool, list[float]]] = defaultdict(lambda: {True: [], False: []})
    for (i, one), (j, other) in combinations(enumerate(uses), 2):
        if one.word == other.word:
            pairs[one.word][one.sense == other.sense].append(float(units_NW[i] @ units_NW[j]))
    if lone := [word for word in dict.fromkeys(use.word for use in uses) if not all(pairs[word].values())]:
        raise ValueError(f"Each word needs two senses, and one of them two sentences. Add sentences with: {lone}.")
    means = {word: (statistics.mean(of_word[True]), statistics.mean(of_word[False])) for word, of_word in pairs.items()}
    differ = any(abs(mean - 1) >= SAME_VECTOR for both in means.values() for mean in both)
    return UseScore(count_same_sense(uses, vectors_NW) if differ else None, means)


def _layer_norm(layers_LNW: Floats) -> Floats:
    centred_LNW = layers_LNW - layers_LNW.mean(axis=-1, keepdims=True)
    normalized_LNW: Floats = centred_LNW / layers_LNW.std(axis=-1, keepdims=True)
    return normalized_LNW
