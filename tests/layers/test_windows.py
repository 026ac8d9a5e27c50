"""A doc as the windows that the biLM reads."""

import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc

from spacy_elmo.layers.windows import check_window, doc_windows


def make_doc(length: int, sent_starts: list[bool] | None = None) -> Doc:
    return Doc(spacy.blank("xx").vocab, words=[f"w{i}" for i in range(length)], sent_starts=sent_starts)


@given(length=st.integers(0, 200), size=st.integers(3, 40), data=st.data())
def test_windows_keep_each_token_once_and_in_context(length: int, size: int, data: st.DataObject) -> None:
    overlap = data.draw(st.integers(0, (size - 1) // 2))
    kept: list[int] = []
    for window in doc_windows(make_doc(length), size, overlap):
        assert len(window.tokens) <= size
        assert window.tokens == list(range(window.tokens[0], window.tokens[-1] + 1))
        kept.extend(window.tokens[window.keep])
        for position in window.tokens[window.keep]:
            assert window.tokens[0] <= max(0, position - overlap)
            assert window.tokens[-1] >= min(length - 1, position + overlap)
    assert kept == list(range(length))


def test_windows_are_sentences_where_set() -> None:
    doc = make_doc(5, [True, False, True, False, False])
    assert [window.tokens for window in doc_windows(doc, 320, 32)] == [[0, 1], [2, 3, 4]]


def test_windows_leave_out_whitespace() -> None:
    doc = Doc(spacy.blank("xx").vocab, words=["a", " ", "b", "\n\n"])
    assert [window.tokens for window in doc_windows(doc, 320, 32)] == [[0, 2]]


def test_window_without_tokens_of_its_own() -> None:
    with pytest.raises(ValueError, match="window = 64 and overlap = 32"):
        check_window(64, 32)
