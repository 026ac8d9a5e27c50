"""Sentences of languages that are written without spaces."""

from pathlib import Path

import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc

from spacy_elmo.corpora.cjk_sentencizer import ENDS


def make_nlp(**config: object) -> Language:
    nlp = spacy.blank("zh")
    nlp.add_pipe("cjk_sentencizer", config=config)
    return nlp


@pytest.mark.parametrize(
    "sentences",
    [
        ["他走了。", "她来了！", "谁？"],
        ["真的吗？！", "是的。。。", "好"],  # several marks, and no mark at the end
        ["他说：“走吧。”", "她不走。"],  # closing marks belong to what they close
        ["他走了。", "《红楼梦》是小说。", "「你好！」", "（完）她来了。", "“‘走。’”", "她说。"],
        ["圆周率约为3.14，在U.S.A.也是。", "完。"],
        ["他……走了；她没走。", "完。"],
        ["半角的句号｡", "竖排的句号︒", "全角！", "half?", "完"],
    ],
)
def test_sentences(sentences: list[str]) -> None:
    doc = make_nlp()("".join(sentences))
    assert [sentence.text for sentence in doc.sents] == sentences


@pytest.mark.parametrize("text", ["", "。", "“", "。“", "。。。"])
def test_texts_of_marks_alone_are_one_sentence(text: str) -> None:
    assert len(list(make_nlp()(text).sents)) == (1 if text else 0)


def test_words_of_several_characters() -> None:
    nlp = make_nlp()
    doc = Doc(nlp.vocab, words=["数学", "很", "难", "。", "《", "数学", "》", "好"])
    assert [[token.text for token in sentence] for sentence in nlp(doc).sents] == [
        ["数学", "很", "难", "。"],
        ["《", "数学", "》", "好"],
    ]


def test_settings_are_saved(tmp_path: Path) -> None:
    nlp = make_nlp(punct_chars=["；"])
    nlp.to_disk(tmp_path)
    doc = spacy.load(tmp_path)("他走了。她来；“谁？")
    assert [sentence.text for sentence in doc.sents] == ["他走了。她来；", "“谁？"]
    assert make_nlp().get_pipe("cjk_sentencizer").punct_chars == set(ENDS)


def test_existing_boundaries_are_kept_unless_overwritten() -> None:
    for overwrite, expected in ((False, ["他", "走。来。"]), (True, ["他走。", "来。"])):
        nlp = make_nlp(overwrite=overwrite)
        doc = Doc(nlp.vocab, words=list("他走。来。"), spaces=[False] * 5, sent_starts=[1, 1, -1, -1, -1])
        assert [sentence.text for sentence in nlp(doc).sents] == expected
