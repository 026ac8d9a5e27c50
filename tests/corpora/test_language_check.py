"""Texts in another language than they are said to be."""

from importlib import import_module

import pytest

from spacy_elmo.corpora import language_check
from spacy_elmo.corpora.language_check import find_language_problem
from spacy_elmo.corpora.read import make_splitter

LATIN = ["da", "de", "en", "es", "fi", "fr", "hu", "id", "it", "nb", "nl", "pl", "pt", "ro", "sl", "sv", "vi"]
OTHERS = ["ar", "el", "fa", "he", "hi", "ru", "ta", "uk", "zh"]


def read(lang: str) -> list[list[str]]:
    """Read spaCy's own examples in a language, several times."""
    texts = import_module(f"spacy.lang.{lang}.examples").sentences
    split = make_splitter("xx" if lang == "vi" else lang)
    return [sentence for text in texts * 4 for sentence in split(text)]


@pytest.mark.parametrize("lang", [*LATIN, *OTHERS, "ca", "cs", "eu", "hr", "lt", "sk", "sr", "tr"])
def test_texts_in_their_own_language(lang: str) -> None:
    assert find_language_problem(read(lang), lang) is None


@pytest.mark.parametrize("lang", OTHERS)
def test_other_scripts(lang: str) -> None:
    problem = find_language_problem(read(lang), "en")
    assert problem is not None
    assert problem.startswith("The text does not look like 'en': 0% of its letters are in the script of that language")


def test_few_words_of_many_letters() -> None:
    problem = find_language_problem([["从前每个农民都把粮食送到磨坊", "磨坊主留下一小部分，这就是他的工钱"]] * 2, "en")
    assert problem is not None
    assert problem.endswith("most of them are CJK.")
    assert find_language_problem([["从前每个农民都把粮食送到磨坊"]], "en") is None


def test_the_script_of_the_text_is_named() -> None:
    problem = find_language_problem(read("ru"), "de")
    assert problem is not None
    assert problem.endswith("most of them are CYRILLIC.")


@pytest.mark.parametrize(
    ("lang", "claimed"),
    [("de", "en"), ("en", "de"), ("en", "nl"), ("en", "zh"), ("fr", "de"), ("ru", "uk"), ("es", "en")],
)
def test_other_stop_words(lang: str, claimed: str) -> None:
    problem = find_language_problem(read(lang), claimed)
    if (lang, claimed) == ("ru", "uk"):
        assert problem is None or "'ru'" in problem  # related languages
        return
    assert problem is not None
    assert f"The text does not look like {claimed!r}: " in problem
    assert f"are stop words of {lang!r}." in problem


@pytest.mark.parametrize("lang", ["xx", "nn", "ml", "nowhere"])
def test_languages_with_too_few_stop_words(lang: str) -> None:
    assert find_language_problem(read("ru"), lang) is None


def test_texts_that_are_too_short() -> None:
    assert find_language_problem([["Das", "ist", "kurz"]], "ru") is None
    assert find_language_problem([], "ru") is None
    assert find_language_problem([["1", "2", "..."]] * 100, "ru") is None


def test_words_that_are_no_language() -> None:
    assert find_language_problem([["xqzt", "vrrk"]] * 50, "en") is None


def test_only_the_beginning_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(language_check, "SENTENCES", 10)
    assert find_language_problem([*[["the", "of", "and", "xqzt", "is"]] * 10, *read("ru") * 9], "en") is None
