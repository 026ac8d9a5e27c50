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


@pytest.mark.parametrize(
    ("words", "max_chars"),
    [
        (["Ada", "wrote", "naïve", "poems"], 50),
        (["Übermäßig", "größere", "Flöße"], 50),
        (["Слово", "за", "словом", "NATO"], 98),
        (["数学", "是", "学科", "1", "。"], 146),
        (["გამარჯობა", "საქართველო"], 146),
        (["𝄞", "😀"], 194),
    ],
)
def test_default_of_max_chars_depends_on_the_script(words: list[str], max_chars: int) -> None:
    longest = max((letter for word in words for letter in word), key=lambda letter: len(letter.encode())) * 48
    statistics = compute_statistics([words, words] * 99)
    assert statistics.max_chars == max_chars
    assert statistics.describe_cut() == "no word is cut"
    if max_chars > 50:  # 48 letters fit, and 49 do not
        assert compute_statistics([words, [longest]] * 99, max_chars=max_chars).cut_types == 0
        assert compute_statistics([words, [f"{longest}字"]], max_chars=max_chars).cut_types == 1


def test_share_of_cut_words_is_described() -> None:
    few = compute_statistics([["数学"] * 999 + ["学" * 17]], max_chars=50)
    assert (few.many_are_cut, few.describe_cut()) == (False, "1 word is cut, 0.100% of the tokens")
    many = compute_statistics([["数学"] * 9 + ["学" * 17]], max_chars=50)
    assert many.describe_cut() == "1 word is cut, 10.000% of the tokens: a larger max_chars would help"


def test_statistics_of_vocabulary_sizes() -> None:
    sentences = [[f"word{i}" for i in range(12_000)], ["word1"] * 8_000]
    assert compute_statistics(sentences, max_chars=50).coverage == {10_000: pytest.approx(18_000 / 20_000)}
