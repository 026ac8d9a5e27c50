"""How much of a vector is context: how alike the vectors of a word are in different sentences (Ethayarajh 2019).

For each layer: the similarity of uses of the same word in different sentences (self-similarity), of the words of a sentence to
its mean (intra-sentence similarity), and of any two words of different sentences (anisotropy), against which the other two are
to be seen. Similarities are cosines. Means over pairs come from sums of unit vectors, so no pair is left out, and memory
depends on the number of different words only.

Shape suffixes: L layer, T token, W width of a layer, V width of a combination of layers.
"""

import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy
from spacy.language import Language

from .vectors import Floats, embed_sentences, layer_combinations, unit_vectors

MIN_SENTENCES = 5  # of a word, as in the paper of Ethayarajh


@dataclass(frozen=True)
class LayerContext:
    """The similarities of one combination of layers, from -1 to 1.

    name (str): Its name.
    layers (list[int]): The layers that it reads.
    same_word (float | None): Of uses of the same word in different sentences: the mean of all words with enough of them;
        None if there are none.
    same_sentence (float | None): Of the words of a sentence to their mean; None if no sentence has two words.
    random_words (float): Of two words of different sentences.
    """

    name: str
    layers: list[int]
    same_word: float | None
    same_sentence: float | None
    random_words: float


@dataclass(frozen=True)
class ContextResults:
    """The similarities of all layers.

    n_sentences, n_tokens (int): The size of the text, without repeated sentences.
    n_words (int): The number of different words in enough sentences.
    layers (list[LayerContext]): The similarities.
    """

    n_sentences: int
    n_tokens: int
    n_words: int
    layers: list[LayerContext]

    def to_dict(self) -> dict[str, Any]:
        """RETURNS (dict): The results, to be written as JSON."""
        sizes = {"sentences": self.n_sentences, "tokens": self.n_tokens, "words": self.n_words}
        return {**sizes, "layers": [asdict(layer) for layer in self.layers]}


class PairSums:
    """Sums of unit vectors. The squared length of a sum is the sum of the cosines of all pairs, each vector with itself too.

    words (set[str]): The words to compare with themselves.
    """

    def __init__(self, words: set[str]) -> None:
        self._words = words
        self._of_word: dict[str, Floats] = {}
        self._n_of_word: Counter[str] = Counter()
        self._of_all: Floats = numpy.zeros(())
        self._n_of_all = 0
        self._pairs_in_sentences = 0.0
        self._n_pairs_in_sentences = 0
        self._to_means: list[float] = []

    def add(self, words: Sequence[str], vectors_TV: Floats) -> None:
        """Add a sentence.

        words (Sequence[str]): Its words.
        vectors_TV (NDArray): Their vectors.
        """
        units_TV = unit_vectors(vectors_TV)
        for word, i in {word: i for i, word in enumerate(words) if word in self._words}.items():  # a word once
            self._of_word[word] = self._of_word.get(word, 0) + units_TV[i]
            self._n_of_word[word] += 1
        sum_V = units_TV.sum(axis=0, dtype="float64")
        self._of_all = self._of_all + sum_V
        self._n_of_all += len(words)
        self._pairs_in_sentences += float(sum_V @ sum_V)
        self._n_pairs_in_sentences += len(words) ** 2
        if len(words) > 1:
            (mean_V,) = unit_vectors(vectors_TV.mean(axis=0, keepdims=True))
            self._to_means.append(float((units_TV @ mean_V).mean()))

    @property
    def same_word(self) -> float | None:
        """RETURNS (float | None): The mean of all words of the mean cosine of two of a word's uses."""
        if not self._of_word:
            return None
        counts = {word: self._n_of_word[word] for word in self._of_word}
        return statistics.fmean(
            (float(sum_V @ sum_V) - counts[word]) / (counts[word] * (counts[word] - 1))
            for word, sum_V in self._of_word.items()
        )

    @property
    def same_sentence(self) -> float | None:
        """RETURNS (float | None): The mean of all sentences of the mean cosine of a token and the mean of its sentence."""
        return statistics.fmean(self._to_means) if self._to_means else None

    @property
    def random_words(self) -> float:
        """RETURNS (float): The mean cosine of two tokens of different sentences."""
        pairs = float(self._of_all @ self._of_all) - self._pairs_in_sentences
        return pairs / (self._n_of_all**2 - self._n_pairs_in_sentences)


def measure_context(
    nlp: Language, sentences: Iterable[Sequence[str]], *, on_sentence: Callable[[], object] = lambda: None
) -> ContextResults:
    """Measure how much of the vectors of each layer is context.

    nlp (Language): The pipeline, with an `elmo` component that keeps its layers.
    sentences (Iterable[Sequence[str]]): The words of each sentence. A repeated sentence counts once.
    on_sentence (Callable): Called after each sentence whose vectors were compared.
    RETURNS (ContextResults): The similarities.
    """
    # A repeated sentence is the same context again.
    different = list(dict.fromkeys(map(tuple, sentences)))
    if len(different) < 2:
        raise ValueError(f"To compare words of different sentences, two are needed, got {len(different)}.")
    counts = Counter(word for sentence in different for word in set(sentence))
    words = {word for word, count in counts.items() if count >= MIN_SENTENCES}
    sums: dict[str, PairSums] = {}
    for layers_LTW, sentence in embed_sentences(nlp, ((sentence, sentence) for sentence in different)):
        combinations = layer_combinations(len(layers_LTW))
        for name, (_, combine) in combinations.items():
            sums.setdefault(name, PairSums(words)).add(sentence, combine(layers_LTW))
        on_sentence()
    return ContextResults(
        n_sentences=len(different),
        n_tokens=sum(map(len, different)),
        n_words=len(words),
        layers=[
            LayerContext(name, layers, sums[name].same_word, sums[name].same_sentence, sums[name].random_words)
            for name, (layers, _) in combinations.items()
        ],
    )
