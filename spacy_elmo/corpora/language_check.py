"""Whether a text is plainly in another language than it is said to be: by its script, and by its stop words."""

import pkgutil
import unicodedata
from collections import Counter
from collections.abc import Iterable
from itertools import islice

import spacy.lang
from spacy.util import get_lang_class

from .sentences import Sentence

SENTENCES = 2000  # that are read at most
FEWEST_WORDS = 50  # fewer, of a text or of a list of stop words, say nothing
FEWEST_LETTERS = 50  # fewer say nothing about the script. A "word" may be a sentence, if Chinese is read as English

# Stop words make up 15% to 50% of a text in most languages. Those of a related language are more than half as frequent.
USUAL_SHARE, TELLING_SHARE, TELLING_FACTOR = 0.25, 0.15, 2
# Some texts are full of names and formulas. Some languages have scripts that their stop words are not written in.
LEAST_SCRIPT_SHARE = 0.1


def find_language_problem(sentences: Iterable[Sentence], lang: str) -> str | None:
    """Find out whether a text is plainly not in a language.

    sentences (Iterable[Sentence]): The sentences of the text. Only the first ones are read.
    lang (str): The language, as spaCy writes it.
    RETURNS (str | None): What speaks against it, or None. None if spaCy has too few stop words of the language to tell.
    """
    stop_words = _find_stop_words(lang)
    words = [word.lower() for words in islice(sentences, SENTENCES) for word in words if any(map(str.isalpha, word))]
    own_scripts, scripts = _count_scripts(stop_words), _count_scripts(words)
    if len(stop_words) < FEWEST_WORDS or scripts.total() < FEWEST_LETTERS:
        return None
    script_share = sum(count for script, count in scripts.items() if script in own_scripts) / scripts.total()
    if script_share < LEAST_SCRIPT_SHARE:
        script = scripts.most_common(1)[0][0]
        return (
            f"The text does not look like {lang!r}: {script_share:.0%} of its letters are in the script of that language, "
            f"most of them are {script}."
        )
    if len(words) < FEWEST_WORDS:
        return None
    share = _share(words, stop_words)
    if share >= USUAL_SHARE:
        return None  # without reading the stop words of all languages
    others = {module.name for module in pkgutil.iter_modules(spacy.lang.__path__) if module.ispkg} - {lang}
    highest, other = max((_share(words, _find_stop_words(other)), other) for other in sorted(others))
    if highest < max(TELLING_SHARE, TELLING_FACTOR * share):
        return None
    return (
        f"The text does not look like {lang!r}: {share:.0%} of its words are stop words of that language, but "
        f"{highest:.0%} are stop words of {other!r}."
    )


def _find_stop_words(lang: str) -> set[str]:
    try:
        return set(get_lang_class(lang).Defaults.stop_words)
    except ImportError:
        return set()


def _share(words: list[str], stop_words: set[str]) -> float:
    return sum(word in stop_words for word in words) / len(words)


def _count_scripts(words: Iterable[str]) -> Counter[str]:
    """Count letters by script, which is how the name of a character begins: "LATIN SMALL LETTER A"."""
    letters = Counter(letter for word in words for letter in word if letter.isalpha())
    scripts: Counter[str] = Counter()
    for letter, count in letters.items():
        scripts[unicodedata.name(letter, "OTHER").split()[0].split("-")[0]] += count
    return scripts
