"""Statistics of a corpus."""

import pytest

from spacy_elmo.corpora.statistics import compute_statistics


def test_statistics_count_words_that_are_cut() -> None:
    statistics = compute_statistics([["ab", "日本語", "ab", "x"], ["x" * 9]], max_chars=8)
    assert (statistics.n_sentences, statistics.n_tokens, statistics.n_types) == (2, 5, 4)
    assert (statistics.cut_tokens, statistics.cut_types) == (2, 2)
    assert set(statistics.cut_examples) == {"日本語", "x" * 9}
    assert statistics.sentence_lengths == {50: 1, 90: 4, 99: 4}
    assert statistics.word_lengths == {50: 2, 90: 9, 99: 9}
    with pytest.raises(ValueError, match="corpus is empty"):
        compute_statistics([], max_chars=50)


def test_statistics_of_vocabulary_sizes() -> None:
    sentences = [[f"word{i}" for i in range(12_000)], ["word1"] * 8_000]
    assert compute_statistics(sentences, max_chars=50).coverage == {10_000: pytest.approx(18_000 / 20_000)}
