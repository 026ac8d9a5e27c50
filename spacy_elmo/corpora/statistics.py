"""Statistics of a corpus, to choose the sizes of a model before hours are spent on training it."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from .sentences import Sentence

VOCABULARY_SIZES = (10_000, 30_000, 100_000, 300_000, 800_000)
PERCENTILES = (50, 90, 99)

# With the default max_chars, a word may have this many letters, in any script.
MOST_LETTERS = 48
WORD_MARKS = 2  # of the start and end of a word
LEAST_MAX_CHARS = MOST_LETTERS + WORD_MARKS

MANY_CUT = 0.01  # of the tokens


@dataclass(frozen=True)
class CorpusStatistics:
    """The size of a corpus, and how much of it models of several sizes would cover.

    n_sentences, n_tokens, n_types (int): Sentences, words, and different words.
    max_chars (int): The maximum number of bytes of a word that the model reads, the marks of its start and end included.
    cut_tokens, cut_types (int): Words, and different words, that are longer than the model reads.
    cut_examples (list[str]): The most frequent of those words.
    sentence_lengths (dict[int, int]): By percentile, in tokens.
    word_lengths (dict[int, int]): By percentile, in bytes.
    coverage (dict[int, float]): By size of vocabulary, the fraction of tokens that are in it.
    """

    n_sentences: int
    n_tokens: int
    n_types: int
    max_chars: int
    cut_tokens: int
    cut_types: int
    cut_examples: list[str]
    sentence_lengths: dict[int, int]
    word_lengths: dict[int, int]
    coverage: dict[int, float]

    @property
    def many_are_cut(self) -> bool:
        """RETURNS (bool): Whether so many words are cut that it matters."""
        return self.cut_tokens > MANY_CUT * self.n_tokens

    def describe_cut(self) -> str:
        """RETURNS (str): How many words are cut."""
        if not self.cut_types:
            return "no word is cut"
        advice = ": a larger max_chars would help" if self.many_are_cut else ""
        words = "1 word is" if self.cut_types == 1 else f"{self.cut_types:,} words are"
        return f"{words} cut, {self.cut_tokens / self.n_tokens:.3%} of the tokens{advice}"


def compute_statistics(sentences: Iterable[Sentence], *, max_chars: int | None = None) -> CorpusStatistics:
    """Compute the statistics of a corpus.

    sentences (Iterable[Sentence]): The sentences.
    max_chars (int | None): As above. None for a default that depends on the script: letters have one to four bytes.
    RETURNS (CorpusStatistics): The statistics.
    """
    types: Counter[str] = Counter()
    sentence_lengths: Counter[int] = Counter()
    for words in sentences:
        types.update(words)
        sentence_lengths[len(words)] += 1
    if not types:
        raise ValueError("The corpus is empty: it has no sentence.")
    lengths = {word: len(word.encode("utf8", "ignore")) for word in types}  # in bytes
    word_lengths: Counter[int] = Counter()
    n_letters = 0
    for word, count in types.items():
        word_lengths[lengths[word]] += count
        n_letters += len(word) * count
    if max_chars is None:
        n_bytes = sum(length * count for length, count in word_lengths.items())
        max_chars = MOST_LETTERS * max(1, round(n_bytes / n_letters)) + WORD_MARKS
    cut = Counter({word: count for word, count in types.items() if lengths[word] > max_chars - WORD_MARKS})
    n_tokens = types.total()
    frequencies = sorted(types.values(), reverse=True)
    return CorpusStatistics(
        n_sentences=sentence_lengths.total(),
        n_tokens=n_tokens,
        n_types=len(types),
        max_chars=max_chars,
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
