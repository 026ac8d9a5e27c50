"""Statistics of a corpus, to choose the sizes of a model before hours are spent on training it."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from .sentences import Sentence

VOCABULARY_SIZES = (10_000, 30_000, 100_000, 300_000, 800_000)
PERCENTILES = (50, 90, 99)


@dataclass(frozen=True)
class CorpusStatistics:
    """The size of a corpus, and how much of it models of several sizes would cover.

    n_sentences, n_tokens, n_types (int): Sentences, words, and different words.
    cut_tokens, cut_types (int): Words, and different words, that are longer than the model reads.
    cut_examples (list[str]): The most frequent of those words.
    sentence_lengths (dict[int, int]): By percentile, in tokens.
    word_lengths (dict[int, int]): By percentile, in bytes.
    coverage (dict[int, float]): By size of vocabulary, the fraction of tokens that are in it.
    """

    n_sentences: int
    n_tokens: int
    n_types: int
    cut_tokens: int
    cut_types: int
    cut_examples: list[str]
    sentence_lengths: dict[int, int]
    word_lengths: dict[int, int]
    coverage: dict[int, float]


def compute_statistics(sentences: Iterable[Sentence], *, max_chars: int) -> CorpusStatistics:
    """Compute the statistics of a corpus.

    sentences (Iterable[Sentence]): The sentences.
    max_chars (int): The maximum number of bytes of a word that the model reads, the marks of its start and end included.
    RETURNS (CorpusStatistics): The statistics.
    """
    types: Counter[str] = Counter()
    sentence_lengths: Counter[int] = Counter()
    for words in sentences:
        types.update(words)
        sentence_lengths[len(words)] += 1
    if not types:
        raise ValueError("The corpus is empty: it has no sentence.")
    word_lengths: Counter[int] = Counter()
    cut: Counter[str] = Counter()
    for word, count in types.items():
        length = len(word.encode("utf8", "ignore"))
        word_lengths[length] += count
        if length > max_chars - 2:
            cut[word] = count
    n_tokens = types.total()
    frequencies = sorted(types.values(), reverse=True)
    return CorpusStatistics(
        n_sentences=sentence_lengths.total(),
        n_tokens=n_tokens,
        n_types=len(types),
        cut_tokens=cut.total(),
        cut_types=len(cut),
        cut_examples=[word for word, _ in cut.most_common(5)],
        sentence_lengths={percent: _percentile(sentence_lengths, percent) for percent in PERCENTILES},
        word_lengths={percent: _percentile(word_lengths, percent) for percent in PERCENTILES},
        coverage={size: sum(frequencies[:size]) / n_tokens for size in VOCABULARY_SIZES if size < len(types)},
    )


def _percentile(counts: Counter[int], percent: int) -> int:
    """Find the smallest value that at least this percentage of all values do not exceed."""
    rest = percent / 100 * counts.total()
    for value in sorted(counts):
        rest -= counts[value]
        if rest <= 0:
            break
    return value
