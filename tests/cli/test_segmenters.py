"""Commands that use weights cut Chinese as its training text was cut."""

from pathlib import Path

import pytest

from spacy_elmo.cli.segmenters import choose_segmenter
from spacy_elmo.pretraining.language_model import LanguageModel
from spacy_elmo.pretraining.model_files import save_language_model
from spacy_elmo.pretraining.softmax import Softmax
from spacy_elmo.pretraining.vocabulary import count_words

from ..command_line import run
from ..helpers import random_bilm


@pytest.fixture
def chinese_weights(tmp_path: Path) -> str:
    vocabulary = count_words([["数学", "是", "学科", "。"]], max_size=100)
    bilm = random_bilm(0, lang="zh", segmenter="jieba")
    softmax = Softmax(len(vocabulary), bilm.config.projection).initialize(1, vocabulary.counts)
    save_language_model(LanguageModel(bilm, softmax), vocabulary, tmp_path / "weights", lang="zh")
    return str(tmp_path / "weights")


def test_segmenter_is_that_of_the_weights(chinese_weights: str) -> None:
    assert choose_segmenter(chinese_weights, "zh", None) == "jieba"
    assert choose_segmenter(chinese_weights, "zh", "char") == "char"
    assert choose_segmenter(chinese_weights, "ja", None) is None
    assert choose_segmenter(None, "zh", None) is None


def test_commands_use_it(chinese_weights: str, tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("数学是学科。《九章算术》是书！\n", encoding="utf8")
    command = ("embed", text, tmp_path / "words", "-w", chinese_weights, "--lang", "zh", "-n", "1")
    assert " 10 tokens in " in run(*command)
    with pytest.warns(UserWarning, match="trained on words as 'jieba' cuts them"):
        assert " 15 tokens in " in run(*command, "--segmenter", "char", "-f")
    shown = run("evaluate", chinese_weights, text)
    assert "12 predictions" in shown  # 10 words and the ends of two sentences
    assert "raw text in the language 'zh', cut by 'jieba'" in shown
    assert "17 predictions" in run("evaluate", chinese_weights, text, "--segmenter", "char")
    assert "[数学]" in run("neighbours", text, "[数学]是书。", "-w", chinese_weights, "--lang", "zh", "-n", "1")
    assert "2 sentences, 10 tokens" in run("contextuality", chinese_weights, text, "--lang", "zh")
    with pytest.warns(UserWarning, match="trained on words as 'jieba' cuts them"):
        shown = run("contextuality", chinese_weights, text, "--lang", "zh", "--segmenter", "char")
    assert "2 sentences, 15 tokens" in shown
    message = "'数学' in square brackets is not one token"
    arguments = ("-w", chinese_weights, "--lang", "zh", "--segmenter", "char")
    with pytest.warns(UserWarning, match="trained on words as 'jieba' cuts them"):
        assert message in run("neighbours", text, "[数学]是书。", *arguments, code=1)


def test_given_words_need_no_segmenter(chinese_weights: str, tmp_path: Path) -> None:
    """Warnings are errors in tests: none is expected."""
    text = tmp_path / "text.txt"
    text.write_text("数 学 是 学科 。\n书 很 老 。\n", encoding="utf8")
    chinese = ("--lang", "zh", "--tokenized")
    shown = run("embed", text, tmp_path / "words", "-w", chinese_weights, *chinese, "--unit", "token", "-n", "1")
    assert " 9 tokens in " in shown
    assert "[学科]" in run("neighbours", text, "[数学]是书。", "-w", chinese_weights, *chinese)
    assert "2 sentences, 9 tokens" in run("contextuality", chinese_weights, text, *chinese)
    assert "tokenized text is cut already" in run(
        "embed", text, tmp_path / "words", *chinese, "--segmenter", "char", code=1
    )
    shown = run("contextuality", chinese_weights, text, *chinese, "--segmenter", "char", code=1)
    assert "segmenter is a setting for raw Chinese text (lang = 'zh'), not for tokenized text" in shown
