"""The vocabulary: the words that a language model predicts, the most frequent first."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import exp, log
from pathlib import Path
from typing import ClassVar

from ..files.atomic import write_file

BEGIN_SENTENCE, END_SENTENCE, UNKNOWN = "<S>", "</S>", "<UNK>"
SPECIAL = (BEGIN_SENTENCE, END_SENTENCE, UNKNOWN)
MOST_DIGITS = 18  # of a frequency: no corpus has more words, and the number fits into 64 bits


@dataclass(frozen=True)
class Vocabulary:
    """Words with their frequencies. The position of a word is its id.

    The sentence marks and the unknown word come first, then the words by falling frequency: the sampled softmax draws
    candidates by rank.

    words (list[str]): The words.
    counts (list[int]): The frequency of each in the corpus.
    """

    BEGIN: ClassVar[int] = SPECIAL.index(BEGIN_SENTENCE)
    END: ClassVar[int] = SPECIAL.index(END_SENTENCE)
    UNKNOWN: ClassVar[int] = SPECIAL.index(UNKNOWN)

    words: list[str]
    counts: list[int]
    _ids: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if len(self.words) != len(self.counts):
            raise ValueError(f"There are {len(self.words)} words, but {len(self.counts)} counts.")
        if tuple(self.words[: len(SPECIAL)]) != SPECIAL:
            raise ValueError(f"A vocabulary starts with {', '.join(SPECIAL)}; this one with {self.words[:3]!s:.200}.")
        ids = {word: i for i, word in enumerate(self.words)}
        if len(ids) != len(self.words):
            twice = Counter(self.words).most_common(1)[0][0]
            raise ValueError(f"The word {twice!r:.80} is in the vocabulary twice.")
        for i in range(len(SPECIAL) + 1, len(self.words)):
            if self.counts[i] > self.counts[i - 1]:
                raise ValueError(
                    f"The vocabulary is not sorted by frequency: {self.words[i]!r:.80} ({self.counts[i]}) comes after "
                    f"{self.words[i - 1]!r:.80} ({self.counts[i - 1]})."
                )
        # A mark that is a word in a text is not in the vocabulary.
        for mark in SPECIAL:
            del ids[mark]
        object.__setattr__(self, "_ids", ids)

    def __len__(self) -> int:
        return len(self.words)

    def id_of(self, word: str) -> int:
        """RETURNS (int): The id of a word, or of the unknown word if it is not in the vocabulary."""
        return self._ids.get(word, self.UNKNOWN)

    @property
    def n_predicted(self) -> int:
        """RETURNS (int): The number of predictions of one direction in the corpus: all words, and the end of each sentence, but
        not its start."""
        return sum(self.counts) - self.counts[self.BEGIN]

    @property
    def unigram_perplexity(self) -> float:
        """RETURNS (float): The perplexity of the corpus under a model that knows only these frequencies: the perplexity that
        a language model has to beat. The start of a sentence is not predicted, and not counted."""
        counts = [
            count for word, count in zip(self.words, self.counts, strict=True) if word != BEGIN_SENTENCE and count
        ]
        total = sum(counts)
        return exp(-sum(count / total * log(count / total) for count in counts))

    def to_disk(self, path: Path) -> None:
        """Write the vocabulary, a word and its frequency per line.

        path (Path): The file.
        """
        write_file(path, "".join(f"{word}\t{count}\n" for word, count in zip(self.words, self.counts, strict=True)))

    @classmethod
    def from_disk(cls, path: Path) -> "Vocabulary":
        """Read a vocabulary.

        path (Path): The file.
        RETURNS (Vocabulary): The vocabulary.
        """
        words, counts = [], []
        if not path.is_file():  # a device could be read for ever
            raise ValueError(f"There is no vocabulary at {path}. Make one with: python -m spacy elmo init-vocab")
        try:
            lines = path.read_text(encoding="utf8").split("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"The vocabulary {path} cannot be read: {error}.") from None
        for number, line in enumerate(lines, start=1):
            if not line:
                continue
            word, tab, count = line.rpartition("\t")
            if not tab or not count.isdecimal() or len(count) > MOST_DIGITS:
                raise ValueError(
                    f"{path}, line {number}: expected a word, a tab and its frequency, got {line!r:.80}. "
                    f"Make a vocabulary with: python -m spacy elmo init-vocab CORPUS {path.name}"
                )
            words.append(word)
            counts.append(int(count))
        try:
            return cls(words, counts)
        except ValueError as error:
            raise ValueError(
                f"The vocabulary {path} cannot be used: {error} "
                f"Make one with: python -m spacy elmo init-vocab CORPUS {path.name}"
            ) from None


def count_words(sentences: Iterable[list[str]], *, max_size: int, min_count: int = 1) -> Vocabulary:
    """Count the words of a corpus, and make its vocabulary.

    sentences (Iterable[list[str]]): The sentences' words.
    max_size (int): The largest number of words, marks included. All others count as unknown.
    min_count (int): Words with a lower frequency count as unknown.
    RETURNS (Vocabulary): The vocabulary.
    """
    if max_size < len(SPECIAL) + 1:
        raise ValueError(f"A vocabulary has {len(SPECIAL)} marks, so max_size must be {len(SPECIAL) + 1} or more.")
    n_sentences = 0
    counts: Counter[str] = Counter()
    for words in sentences:
        n_sentences += 1
        counts.update(words)
    if not n_sentences:
        raise ValueError("The corpus is empty: it has no sentence to count words in.")
    n_tokens = counts.total()
    for mark in SPECIAL:
        del counts[mark]
    # Words of the same frequency in alphabetical order, so that the vocabulary is the same every time.
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[: max_size - len(SPECIAL)]
    kept = [(word, count) for word, count in ranked if count >= min_count]
    if not kept:
        raise ValueError(
            f"No word of the corpus occurs {min_count} times or more, so there is none to predict. Lower min_count, or use a larger "
            f"text."
        )
    n_unknown = n_tokens - sum(count for _, count in kept)
    special = [(BEGIN_SENTENCE, n_sentences), (END_SENTENCE, n_sentences), (UNKNOWN, n_unknown)]
    words_and_counts = [*special, *kept]
    return Vocabulary([word for word, _ in words_and_counts], [count for _, count in words_and_counts])
