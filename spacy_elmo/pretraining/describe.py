"""What is in a corpus, before hours are spent on it."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

VOCABULARY_SIZES = (10_000, 30_000, 100_000, 300_000, 800_000)
PERCENTILES = (50, 90, 99)


@dataclass(frozen=True)
class Description:
    """The numbers that decide about the sizes of a model.

    n_sentences, n_tokens, n_types (int): How much there is.
    cut_tokens, cut_types (int): How many words are longer than the model reads.
    examples (list[str]): The most frequent of those words.
    sentence_lengths (dict[int, int]): By percentile, in tokens.
    word_lengths (dict[int, int]): By percentile, in bytes.
    known (dict[int, float]): By size of vocabulary, the share of tokens that are in it.
    """

    n_sentences: int
    n_tokens: int
    n_types: int
    cut_tokens: int
    cut_types: int
    examples: list[str]
    sentence_lengths: dict[int, int]
    word_lengths: dict[int, int]
    known: dict[int, float]


def describe_corpus(sentences: Iterable[list[str]], *, max_chars: int) -> Description:
    """Count what is in a corpus.

    sentences (Iterable[list[str]]): The sentences' words.
    max_chars (int): How many characters of a word the model reads: bytes of UTF-8, and two for the marks of its start and end.
    RETURNS (Description): The numbers.
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
    return Description(
        n_sentences=sentence_lengths.total(),
        n_tokens=n_tokens,
        n_types=len(types),
        cut_tokens=cut.total(),
        cut_types=len(cut),
        examples=[word for word, _ in cut.most_common(5)],
        sentence_lengths={percent: _percentile(sentence_lengths, percent) for percent in PERCENTILES},
        word_lengths={percent: _percentile(word_lengths, percent) for percent in PERCENTILES},
        known={size: sum(frequencies[:size]) / n_tokens for size in VOCABULARY_SIZES if size < len(types)},
    )


def _percentile(counts: Counter[int], percent: int) -> int:
    """The smallest value that at least this share of all values do not exceed."""
    rest = percent / 100 * counts.total()
    for value in sorted(counts):
        rest -= counts[value]
        if rest <= 0:
            break
    return value
