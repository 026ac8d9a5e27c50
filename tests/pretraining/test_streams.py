"""Rows that read a corpus in a circle, spelled out for corpora of a few words."""

import tracemalloc
from itertools import islice
from pathlib import Path

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from spacy_elmo.bilm.characters import Mark, Word
from spacy_elmo.pretraining.streams import NO_TARGET, Batch, Streams
from spacy_elmo.pretraining.vocabulary import Vocabulary, count_words

from .runs import make_text

S, E = Mark.BEGIN_SENTENCE, Mark.END_SENTENCE
BEGIN, END, UNKNOWN = Vocabulary.BEGIN, Vocabulary.END, Vocabulary.UNKNOWN

# What one direction of one row does at a step: the word it reads, and the id it predicts.
Steps = list[tuple[Word, int]]

TEXT = [["a", "b", "a"], ["c"], ["b", "c", "a", "d"]]
# <S>, </S>, <UNK>, a, b, c, d
VOCABULARY = count_words(TEXT, max_size=100)
A, B, C, D = (VOCABULARY.id_of(word) for word in "abcd")


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("streams")


def write_corpus(directory: Path, text: list[list[str]]) -> Path:
    path = directory / "sentences.txt"
    path.write_bytes("".join(" ".join(words) + "\n" for words in text).encode("utf8"))
    return path


def open_streams(
    path: Path,
    *,
    n_rows: int,
    unroll: int,
    rows: range | None = None,
    with_end: bool = True,
    vocabulary: Vocabulary = VOCABULARY,
) -> Streams:
    rows = range(n_rows) if rows is None else rows
    return Streams(path, vocabulary, n_rows=n_rows, rows=rows, unroll=unroll, with_end=with_end)


def steps_of(batches: list[Batch], row: int, direction: int) -> Steps:
    """Read what one row and direction does in some batches."""
    steps: Steps = []
    for batch in batches:
        unroll, n_rows = batch.starts_TB.shape
        assert batch.types_AN.shape == batch.targets_AN.shape == (2, unroll * n_rows)
        assert len(set(batch.types)) == len(batch.types)
        for step in range(unroll):
            token = step * n_rows + row
            steps.append((batch.types[batch.types_AN[direction, token]], int(batch.targets_AN[direction, token])))
    return steps


def starts_of(batches: list[Batch], row: int) -> list[bool]:
    return [bool(start) for batch in batches for start in batch.starts_TB[:, row]]


def take(streams: Streams, n: int) -> list[Batch]:
    return list(islice(streams, n))


def circle(
    text: list[list[str]], first: int, with_end: bool, vocabulary: Vocabulary
) -> tuple[Steps, Steps, list[bool]]:
    """Spell out what both directions do from one sentence until the one before it, and where sentences start."""
    forward: Steps = []
    backward: Steps = []
    starts: list[bool] = []
    for words in [*text[first:], *text[:first]]:
        ids = [vocabulary.id_of(word) for word in words]
        forward += zip([S, *words], [*ids, END], strict=True)
        backward += zip([E, *words[::-1]], [*ids[::-1], BEGIN], strict=True)
        starts += [True] + [False] * len(words)
        if with_end:
            forward.append((E, NO_TARGET))
            backward.append((S, NO_TARGET))
            starts.append(False)
    return forward, backward, starts


# By hand


def test_one_row_with_ends(directory: Path) -> None:
    streams = open_streams(write_corpus(directory, TEXT), n_rows=1, unroll=7)
    assert streams.marks_in_a_sentence == 2
    batches = take(streams, 2)
    sentence_1: Steps = [(S, A), ("a", B), ("b", A), ("a", END), (E, NO_TARGET)]
    sentence_2: Steps = [(S, C), ("c", END), (E, NO_TARGET)]
    sentence_3: Steps = [(S, B), ("b", C), ("c", A), ("a", D), ("d", END), (E, NO_TARGET)]
    assert steps_of(batches, row=0, direction=0) == sentence_1 + sentence_2 + sentence_3
    sentence_1 = [(E, A), ("a", B), ("b", A), ("a", BEGIN), (S, NO_TARGET)]
    sentence_2 = [(E, C), ("c", BEGIN), (S, NO_TARGET)]
    sentence_3 = [(E, D), ("d", A), ("a", C), ("c", B), ("b", BEGIN), (S, NO_TARGET)]
    assert steps_of(batches, row=0, direction=1) == sentence_1 + sentence_2 + sentence_3
    starts = [i for i, start in enumerate(starts_of(batches, row=0)) if start]
    assert starts == [0, 5, 8]
    # <S> a b a </S> <S> c | </S> <S> b c a d </S>
    assert [batch.n_words for batch in batches] == [4, 4]
    assert batches[0].types == [S, "a", "b", E, "c"]


def test_one_row_without_ends(directory: Path) -> None:
    streams = open_streams(write_corpus(directory, TEXT), n_rows=1, unroll=11, with_end=False)
    assert streams.marks_in_a_sentence == 1
    batches = take(streams, 1)
    assert steps_of(batches, row=0, direction=0) == [
        *[(S, A), ("a", B), ("b", A), ("a", END)],
        *[(S, C), ("c", END)],
        *[(S, B), ("b", C), ("c", A), ("a", D), ("d", END)],
    ]
    assert steps_of(batches, row=0, direction=1) == [
        *[(E, A), ("a", B), ("b", A), ("a", BEGIN)],
        *[(E, C), ("c", BEGIN)],
        *[(E, D), ("d", A), ("a", C), ("c", B), ("b", BEGIN)],
    ]
    assert [i for i, start in enumerate(starts_of(batches, row=0)) if start] == [0, 4, 6]
    assert batches[0].n_words == 8
    # And again from the start.
    assert streams.positions.tolist() == [[0, 0]]
    assert steps_of(take(streams, 1), row=0, direction=0) == steps_of(batches, row=0, direction=0)


def test_two_rows_side_by_side(directory: Path) -> None:
    # 16 bytes: the second row starts at the first line that does not start before byte 8, which is the third.
    batch = take(open_streams(write_corpus(directory, TEXT), n_rows=2, unroll=3), 1)[0]
    assert [batch.types[i] for i in batch.types_AN[0]] == [S, S, "a", "b", "b", "c"]
    assert batch.targets_AN[0].tolist() == [A, B, B, C, A, A]
    assert [batch.types[i] for i in batch.types_AN[1]] == [E, E, "a", "d", "b", "a"]
    assert batch.targets_AN[1].tolist() == [A, D, B, A, A, C]
    assert batch.starts_TB.tolist() == [[True, True], [False, False], [False, False]]
    assert batch.n_words == 4


# The circle


def test_rows_start_at_equal_distances(directory: Path) -> None:
    path = write_corpus(directory, [["a", "b", "c"]] * 12)  # 6 bytes a line
    assert open_streams(path, n_rows=4, unroll=1).positions.tolist() == [[0, 0], [18, 0], [36, 0], [54, 0]]
    # In the middle of a line, the next one is taken; after the last, the first.
    assert open_streams(path, n_rows=5, unroll=1).positions[:, 0].tolist() == [0, 18, 30, 48, 60]
    path = write_corpus(directory, [["a"], ["b"] * 20])
    assert open_streams(path, n_rows=4, unroll=1).positions[:, 0].tolist() == [0, 0, 0, 0]
    path = write_corpus(directory, [["a"] * 4, ["b"] * 20])
    assert open_streams(path, n_rows=6, unroll=1).positions[:, 0].tolist() == [0, 8, 0, 0, 0, 0]


@pytest.mark.parametrize("with_end", [True, False])
@pytest.mark.parametrize("n_rows", [1, 2, 3, 7])
def test_every_row_reads_the_corpus_in_a_circle(directory: Path, n_rows: int, with_end: bool) -> None:
    path = write_corpus(directory, TEXT)
    line_starts = [0, 6, 8]
    streams = open_streams(path, n_rows=n_rows, unroll=5, with_end=with_end)
    firsts = [line_starts.index(int(start)) for start in streams.positions[:, 0]]
    batches = take(streams, 8)
    for row, first in enumerate(firsts):
        forward, backward, starts = circle(TEXT, first, with_end, VOCABULARY)
        n_times = 40 // len(forward) + 1
        assert steps_of(batches, row, 0) == (forward * n_times)[:40]
        assert steps_of(batches, row, 1) == (backward * n_times)[:40]
        assert starts_of(batches, row) == (starts * n_times)[:40]


words = st.text(st.sampled_from("abé日"), min_size=1, max_size=3)
texts = st.lists(st.lists(words, min_size=1, max_size=5), min_size=1, max_size=6)


@given(text=texts, n_rows=st.integers(1, 5), unroll=st.integers(1, 9), with_end=st.booleans())
def test_batches_of_any_length_cut_the_same_streams(
    directory: Path, text: list[list[str]], n_rows: int, unroll: int, with_end: bool
) -> None:
    vocabulary = count_words(text, max_size=5)
    path = write_corpus(directory, text)
    short = open_streams(path, n_rows=n_rows, unroll=unroll, with_end=with_end, vocabulary=vocabulary)
    long = open_streams(path, n_rows=n_rows, unroll=6 * unroll, with_end=with_end, vocabulary=vocabulary)
    line_starts = numpy.cumsum([0, *(len(" ".join(line).encode("utf8")) + 1 for line in text)]).tolist()
    firsts = [line_starts.index(int(start)) for start in short.positions[:, 0]]
    batches, whole = take(short, 6), take(long, 1)
    for row, first in enumerate(firsts):
        for direction, steps in enumerate(circle(text, first, with_end, vocabulary)[:2]):
            expected = (steps * (6 * unroll))[: 6 * unroll]
            assert steps_of(batches, row, direction) == steps_of(whole, row, direction) == expected
        assert starts_of(batches, row) == starts_of(whole, row)
    n_words = [sum(not isinstance(batch.types[i], Mark) for i in batch.types_AN[0]) for batch in batches]
    assert [batch.n_words for batch in batches] == n_words
    assert whole[0].n_words == sum(n_words)
    assert_array_equal(short.positions, long.positions)


# Resuming, and dividing the rows


@pytest.mark.parametrize("with_end", [True, False])
@pytest.mark.parametrize("n_before", [0, 1, 2, 5])
def test_positions_resume_exactly(directory: Path, n_before: int, with_end: bool) -> None:
    path = write_corpus(directory, TEXT)
    streams = open_streams(path, n_rows=3, unroll=4, with_end=with_end)
    take(streams, n_before)
    positions = streams.positions.copy()
    expected = take(streams, 6)
    fresh = open_streams(path, n_rows=3, unroll=4, with_end=with_end)
    take(fresh, 3)  # it was somewhere else, in the middle of sentences
    fresh.positions = positions
    assert_array_equal(fresh.positions, positions)
    for batch, other in zip(take(fresh, 6), expected, strict=True):
        assert batch.types == other.types
        assert_array_equal(batch.types_AN, other.types_AN)
        assert_array_equal(batch.targets_AN, other.targets_AN)
        assert_array_equal(batch.starts_TB, other.starts_TB)
        assert batch.n_words == other.n_words
    assert_array_equal(fresh.positions, streams.positions)


def test_positions_count_what_was_read(directory: Path) -> None:
    streams = open_streams(write_corpus(directory, TEXT), n_rows=2, unroll=5)
    take(streams, 1)
    assert streams.positions.tolist() == [[6, 0], [8, 5]]
    take(streams, 1)
    assert streams.positions.tolist() == [[8, 2], [0, 4]]
    assert streams.positions.dtype == numpy.int64


def test_positions_must_be_those_of_the_rows(directory: Path) -> None:
    streams = open_streams(write_corpus(directory, TEXT), n_rows=3, unroll=2)
    with pytest.raises(ValueError, match=r"Expected the positions of 3 rows, got \(2, 2\)\."):
        streams.positions = numpy.zeros((2, 2), dtype="int64")


@pytest.mark.parametrize("with_end", [True, False])
def test_two_halves_are_the_whole(directory: Path, with_end: bool) -> None:
    path = write_corpus(directory, TEXT)
    whole = take(open_streams(path, n_rows=4, unroll=3, with_end=with_end), 7)
    halves = [
        take(open_streams(path, n_rows=4, rows=rows, unroll=3, with_end=with_end), 7)
        for rows in (range(0, 2), range(2, 4))
    ]
    for row in range(4):
        half = halves[row // 2]
        assert half[0].starts_TB.shape == (3, 2)
        for direction in (0, 1):
            assert steps_of(half, row % 2, direction) == steps_of(whole, row, direction)
        assert starts_of(half, row % 2) == starts_of(whole, row)
    assert [one.n_words + other.n_words for one, other in zip(*halves, strict=True)] == [b.n_words for b in whole]


# Odd texts


def test_corpus_of_one_line(directory: Path) -> None:
    path = write_corpus(directory, [["a"]])
    batches = take(open_streams(path, n_rows=3, unroll=4, with_end=False), 2)
    for row in range(3):
        assert steps_of(batches, row, 0) == [(S, A), ("a", END)] * 4
        assert steps_of(batches, row, 1) == [(E, A), ("a", BEGIN)] * 4
        assert starts_of(batches, row) == [True, False] * 4
    assert [batch.n_words for batch in batches] == [6, 6]


def test_literal_marks_are_words(directory: Path) -> None:
    path = write_corpus(directory, [["<S>", "a", "</S>"]])
    batch = take(open_streams(path, n_rows=1, unroll=5), 1)[0]
    assert steps_of([batch], 0, 0) == [(S, UNKNOWN), ("<S>", A), ("a", UNKNOWN), ("</S>", END), (E, NO_TARGET)]
    assert [type(word) for word in batch.types] == [Mark, str, str, str, Mark]
    assert batch.n_words == 3


def test_words_beyond_ascii_and_beyond_the_vocabulary(directory: Path) -> None:
    text = [["naïve", "日本", "🦆"], ["日本", "zebra"]]
    vocabulary = count_words([["日本", "naïve", "日本"]], max_size=100)
    streams = open_streams(write_corpus(directory, text), n_rows=2, unroll=7, with_end=False, vocabulary=vocabulary)
    batches = take(streams, 1)
    known = vocabulary.id_of("日本"), vocabulary.id_of("naïve")
    assert known == (3, 4)
    assert steps_of(batches, 0, 0) == [
        *[(S, 4), ("naïve", 3), ("日本", UNKNOWN), ("🦆", END)],
        *[(S, 3), ("日本", UNKNOWN), ("zebra", END)],
    ]
    assert steps_of(batches, 0, 1) == [
        *[(E, UNKNOWN), ("🦆", 3), ("日本", 4), ("naïve", BEGIN)],
        *[(E, UNKNOWN), ("zebra", 3), ("日本", BEGIN)],
    ]


def test_memory_does_not_grow_with_the_corpus(tmp_path: Path) -> None:
    def peak(n_sentences: int) -> int:
        path = make_text(tmp_path / "text.txt", n_sentences, seed=0)
        vocabulary = count_words([["the", "cat"]], max_size=10)
        tracemalloc.start()
        streams = iter(Streams(path, vocabulary, n_rows=8, rows=range(8), unroll=10, with_end=True))
        for _ in range(n_sentences // 8):
            next(streams)
        used = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return used

    peak(100)  # what is made once
    small, large = peak(100), peak(5000)
    assert (tmp_path / "text.txt").stat().st_size > 3 * large
    assert large < 1.5 * small
