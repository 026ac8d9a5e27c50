"""Raw text to words and sentences, and how Chinese words are cut."""

import logging
import sys
from pathlib import Path

import pytest

from spacy_elmo.corpora.read import make_splitter, read_corpus
from spacy_elmo.corpora.tokenizer import identify_tokenizer, make_language, make_tokenizer

TEXT = "数学是利用符号语言研究数量的学科。《九章算术》写于3.5世纪？"


def test_characters_are_the_default_for_chinese() -> None:
    split = make_splitter("zh")
    assert list(split("数学很难。很难！")) == [["数", "学", "很", "难", "。"], ["很", "难", "！"]]
    assert list(make_splitter("zh", "char")(TEXT)) == list(split(TEXT))


def test_jieba_cuts_words(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        sentences = list(make_splitter("zh", "jieba")(TEXT))
    assert sentences == [
        ["数学", "是", "利用", "符号语言", "研究", "数量", "的", "学科", "。"],
        ["《", "九章算术", "》", "写于", "3.5", "世纪", "？"],
    ]
    assert not caplog.records


@pytest.mark.slow
def test_several_processes_cut_the_same_words(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text(f"{TEXT}\n" * 3, encoding="utf8")
    expected = list(read_corpus(path, lang="zh", segmenter="jieba"))
    assert len(expected) == 6
    assert list(read_corpus(path, lang="zh", segmenter="jieba", n_process=2)) == expected


def test_sentences_are_set_or_not() -> None:
    assert make_tokenizer("en").pipe_names == ["sentencizer"]
    assert make_tokenizer("zh").pipe_names == ["cjk_sentencizer"]
    assert make_language("zh", "jieba").pipe_names == []
    assert [token.text for token in make_language("zh", "jieba")("数学是学科")] == ["数学", "是", "学科"]


def test_tokenizers_that_cut_differently_have_other_identities() -> None:
    english = identify_tokenizer("en", None)
    assert english.startswith("spacy 3.")
    assert "," not in english  # as in caches of earlier releases
    chinese = [identify_tokenizer("zh", segmenter) for segmenter in (None, "jieba")]
    assert len({english, *chinese}) == 3
    assert ", jieba 0." in chinese[1]


@pytest.mark.parametrize(
    ("lang", "segmenter", "message"),
    [
        ("zh", "pkuseg", r"^segmenter must be one of char, jieba, got 'pkuseg'\.$"),
        ("zh", "", r"^segmenter must be one of char, jieba, got ''\.$"),
        ("de", "jieba", r"for raw Chinese text \(lang = 'zh'\), not for the language 'de'\. Leave it out\."),
        (None, "char", r"not for tokenized text\. Leave it out\."),
        ("klingon", None, "spaCy cannot tokenize the language 'klingon'"),
    ],
)
def test_bad_settings_are_refused(lang: str | None, segmenter: str | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_splitter(lang, segmenter)


def test_missing_jieba_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jieba", None)
    with pytest.raises(ValueError, match=r"jieba needs the package .*pip install jieba.*spacy-elmo\[chinese\].*'char'"):
        make_tokenizer("zh", "jieba")
    assert len(make_tokenizer("zh")("数学")) == 2
