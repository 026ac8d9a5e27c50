"""Raw text to words and sentences: a blank pipeline, the same for pretraining, evaluation and embedding."""

import logging
import warnings
from importlib import import_module
from importlib.metadata import version

from spacy.language import Language
from spacy.util import get_lang_class

# How Chinese text is cut into words. spaCy's third one, pkuseg, needs a model, and a pipeline that brings it.
SEGMENTERS = ("char", "jieba")
DEFAULT_SEGMENTERS = {"zh": "char"}  # spaCy's own
WITHOUT_SPACES = ("zh", "ja")


def make_tokenizer(lang: str, segmenter: str | None = None) -> Language:
    """Make a pipeline that sets words and sentences.

    lang (str): A language that spaCy supports.
    segmenter (str | None): For Chinese, "char" (each character is a word) or "jieba"; None for spaCy's default, which is
        "char". Other languages have no choice.
    RETURNS (Language): The pipeline.
    """
    nlp = make_language(lang, segmenter)
    nlp.add_pipe("cjk_sentencizer" if lang in WITHOUT_SPACES else "sentencizer")
    return nlp


def make_language(lang: str, segmenter: str | None = None) -> Language:
    """Make a pipeline that sets words, but no sentences.

    lang (str): A language that spaCy supports.
    segmenter (str | None): As for `make_tokenizer`.
    RETURNS (Language): The pipeline.
    """
    check_segmenter(lang, segmenter)
    try:
        language = get_lang_class(lang)
        if segmenter is None:
            return language()
        tokenizer = {"@tokenizers": "spacy.zh.ChineseTokenizer", "segmenter": segmenter}
        return language.from_config({"nlp": {"tokenizer": tokenizer}})
    except ImportError as error:
        raise ValueError(
            f"spaCy cannot tokenize the language {lang!r}: {error} For a language that it does not know, 'xx' fits any."
        ) from None


def check_segmenter(lang: str | None, segmenter: str | None) -> None:
    """Refuse a segmenter that is unknown, not installed, or not for this language.

    lang (str | None): The language of raw text, or None for tokenized text.
    segmenter (str | None): The segmenter.
    """
    if segmenter is None:
        return
    if lang != "zh":
        text = "tokenized text" if lang is None else f"the language {lang!r}"
        raise ValueError(f"segmenter is a setting for raw Chinese text (lang = 'zh'), not for {text}. Leave it out.")
    if segmenter not in SEGMENTERS:
        raise ValueError(f"segmenter must be one of {', '.join(SEGMENTERS)}, got {segmenter!r}.")
    if segmenter == "jieba":
        _import_jieba()


def identify_tokenizer(lang: str, segmenter: str | None) -> str:
    """RETURNS (str): What decides how raw text is cut, besides its language: with the same, a text gives the same words."""
    parts = [f"spacy {version('spacy')}"]
    if lang in WITHOUT_SPACES:
        parts.append("cjk_sentencizer")
    if segmenter == "jieba":
        parts.append(f"jieba {version('jieba')}")
    return ", ".join(parts)


def _import_jieba() -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about its own code, on newer versions of Python
            jieba = import_module("jieba")
    except ImportError as error:
        raise ValueError(
            f"The segmenter jieba needs the package of that name, and importing it failed: {error}. Install it with "
            f"`pip install jieba`, or as an extra: `pip install 'spacy-elmo[chinese]'`. The segmenter 'char' needs nothing."
        ) from None
    jieba.setLogLevel(logging.WARNING)  # it would report each start
