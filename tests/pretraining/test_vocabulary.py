"""Counting words, and what a vocabulary file may hold."""

from pathlib import Path

import pytest

from spacy_elmo.pretraining.vocabulary import Vocabulary, count_words

SENTENCES = [["b", "a", "b"], ["c", "b", "a"], ["d"]]


def test_words_are_sorted_by_frequency_then_alphabet() -> None:
    vocabulary = count_words(SENTENCES, max_size=100)
    assert vocabulary.words == ["<S>", "</S>", "<UNK>", "b", "a", "c", "d"]
    assert vocabulary.counts == [3, 3, 0, 3, 2, 1, 1]
    assert [vocabulary.id_of(word) for word in ("b", "d", "z")] == [3, 6, 2]


def test_words_beyond_the_vocabulary_are_unknown() -> None:
    assert count_words(SENTENCES, max_size=5).counts == [3, 3, 2, 3, 2]
    assert count_words(SENTENCES, max_size=100, min_count=2).counts == [3, 3, 2, 3, 2]


def test_a_literal_mark_is_not_a_word() -> None:
    vocabulary = count_words([["a", "<S>", "<UNK>"]], max_size=100)
    assert vocabulary.words == ["<S>", "</S>", "<UNK>", "a"]
    assert vocabulary.counts == [1, 1, 2, 1]
    assert vocabulary.id_of("<S>") == vocabulary.id_of("</S>") == 2


def test_unigram_perplexity_of_even_words_is_their_number() -> None:
    # Eight kinds of predictions, each as frequent: seven words, and the end of the sentence.
    assert count_words([list("abcdefg")], max_size=100).unigram_perplexity == pytest.approx(8)
    assert count_words([["a"] * 999], max_size=100).unigram_perplexity == pytest.approx(1.008, abs=1e-3)


def test_roundtrip(tmp_path: Path) -> None:
    vocabulary = count_words([["naïve", "日本", "a#b", "naïve"]], max_size=100)
    vocabulary.to_disk(tmp_path / "new" / "vocab.txt")
    assert Vocabulary.from_disk(tmp_path / "new" / "vocab.txt") == vocabulary
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["vocab.txt"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("<S>\t1\n</S>\t1\n<UNK>\t0\na\t1\nb\t2\n", r"not sorted by frequency: 'b' \(2\) comes after 'a' \(1\)"),
        ("<S>\t1\n</S>\t1\na\t2\n", r"starts with <S>, </S>, <UNK>; this one with .*'a'"),
        ("<S>\t1\n</S>\t1\n<UNK>\t0\na\t1\na\t1\n", "'a' is in the vocabulary twice"),
        ("<S>\n</S>\n<UNK>\n", "line 1: expected a word, a tab and its frequency, got '<S>'"),
        ("", "starts with <S>"),
    ],
)
def test_files_that_are_not_a_vocabulary(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "vocab.txt").write_text(content, encoding="utf8")
    with pytest.raises(ValueError, match=message):
        Vocabulary.from_disk(tmp_path / "vocab.txt")


def test_no_word_is_frequent_enough() -> None:
    with pytest.raises(ValueError, match="No word of the corpus occurs 2 times or more"):
        count_words([["each", "word"], ["once"]], max_size=10, min_count=2)


def test_vocabulary_errors(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="There is no vocabulary at .*nowhere.txt"):
        Vocabulary.from_disk(tmp_path / "nowhere.txt")
    with pytest.raises(ValueError, match="corpus is empty"):
        count_words([], max_size=100)
    with pytest.raises(ValueError, match="max_size must be 4 or more"):
        count_words(SENTENCES, max_size=3)
