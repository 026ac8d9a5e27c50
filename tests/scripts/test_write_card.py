"""The card of a model, from the files of its run."""

import json
from pathlib import Path
from typing import Any

import pytest

from scripts.write_card import describe_text, write_card
from spacy_elmo.pretraining.language_model import LanguageModel
from spacy_elmo.pretraining.model_files import save_language_model
from spacy_elmo.pretraining.softmax import Softmax
from spacy_elmo.pretraining.vocabulary import count_words

from ..helpers import random_bilm
from .script_runner import run_in_one_line

TEXT: dict[str, Any] = {
    "dump": "zhwiki-latest-pages-articles.xml.bz2",
    "site": "Wikipedia",
    "database": "zhwiki",
    "url": "https://zh.wikipedia.org/wiki/Wikipedia:首页",
    "lang": "zh",
    "newest": "2024-05-01",
    "articles": 1234,
    "paragraphs": 5678,
    "redirects": 90,
    "disambiguation_pages": 12,
    "pages_without_prose": 3,
}
SCORES = {
    "perplexity_forward": 67.14,
    "perplexity_backward": 65.9,
    "perplexity_unigram": 1745.6,
    "n_predicted": 2000,
    "n_unknown": 50,
    "n_words": 3_200_000,
    "seconds": 5400.0,
}
CONFIG = """
[bilm_training]
batch_size = 64
unroll = 20
samples = 2048
precision = "bfloat16"

[bilm_training.optimizer]
name = "AdamW"
learn_rate = 0.003
"""


def save_model(directory: Path, *, lang: str | None, weights_lang: str | None = None, segmenter: Any = None) -> None:
    vocabulary = count_words([["数学", "是", "学科", "。"]], max_size=100)
    bilm = random_bilm(0, segmenter=segmenter, lang=weights_lang)
    model = LanguageModel(bilm, Softmax(len(vocabulary), bilm.config.projection).initialize(1, vocabulary.counts))
    save_language_model(model, vocabulary, directory, lang=lang, kept=frozenset({"README.md"}))


@pytest.fixture
def arguments(tmp_path: Path) -> list[str | Path]:
    """Write what a run leaves behind, and give the arguments of the script."""
    save_model(tmp_path / "model", lang="zh", segmenter="jieba")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.cfg").write_text(CONFIG, encoding="utf8")
    (tmp_path / "run" / "metrics.jsonl").write_text('{"step": 20}\n{"step": 2400}\n', encoding="utf8")
    (tmp_path / "run" / "scores.json").write_text(json.dumps(SCORES), encoding="utf8")
    (tmp_path / "text.json").write_text(json.dumps(TEXT), encoding="utf8")
    (tmp_path / "test.json").write_text(json.dumps({**SCORES, "perplexity_forward": 70.0}), encoding="utf8")
    (tmp_path / "articles").mkdir()
    (tmp_path / "articles" / "dev.txt").write_text("a\nb\n\nc\n", encoding="utf8")
    (tmp_path / "articles" / "test.txt").write_text("a\n\nb\n\nc\n", encoding="utf8")
    paths = [tmp_path / name for name in ("model", "run", "text.json", "test.json", "articles")]
    return [*paths, "zh_elmo_sm"]


def test_card_has_the_numbers_of_the_run(arguments: list[str | Path], tmp_path: Path) -> None:
    run_in_one_line(write_card, *arguments)
    card = (tmp_path / "model" / "README.md").read_text(encoding="utf8")
    for part in (
        "# zh_elmo_sm\n",
        "| language | `zh`; words: spaCy's tokenizer for `zh`, segmenter `jieba` |",
        "2 LSTM layers with a hidden size of 10 in each direction, projected to 6: vectors of 12 values, 3 layers",
        "a softmax over 7 words",
        "`zhwiki-latest-pages-articles.xml.bz2`, newest article of 2024-05-01: 1,234 articles, 5,678 paragraphs",
        "[CC BY-SA 4.0](https://creativecommons.org/licenses/by-sa/4.0/), by the authors of Wikipedia",
        "2,400 steps of 64 rows and 20 tokens, 3,200,000 words in all; AdamW, learning rate 0.003, 2,048 samples",
        "2 articles were held out for dev and 3 for test",
        "words of up to 18 bytes",
        "| time | 90 minutes |",
        "| the test articles | 2,000 | 2.5% | 70.0 | 65.9 | 1,745.6 |",
        "| the dev articles, before float16 | 2,000 | 2.5% | 67.1 | 65.9 | 1,745.6 |",
        '"segmenter": "jieba"',
        'nlp.add_pipe("cjk_sentencizer")',
    ):
        assert part in card, part
    assert "{" not in card.replace('{"nlp": {"tokenizer": {', "").replace('config={"weights"', "")


@pytest.mark.parametrize(
    ("changes", "licence", "site"),
    [
        ({"newest": "2023-06-06"}, "CC BY-SA 3.0", "[Wikipedia (zhwiki)]"),
        ({"newest": "2023-06-07"}, "CC BY-SA 4.0", "[Wikipedia (zhwiki)]"),
        (
            {"newest": ""},
            "of the text CC BY-SA, by the authors of Wikipedia, in the version that [",
            "[Wikipedia (zhwiki)]",
        ),
        ({"site": "Sample", "url": "https://example.org/"}, "see the terms of [Sample (zhwiki)]", "[Sample (zhwiki)]"),
        ({"site": "", "url": ""}, "see the terms of a wiki", "a wiki"),
    ],
)
def test_licence_depends_on_the_source(changes: dict[str, str], licence: str, site: str) -> None:
    described = describe_text({**TEXT, **changes})
    assert licence in described["licence"]
    assert described["site"].startswith(site)
    assert ("3.0" in described["licence"]) == (changes.get("newest") == "2023-06-06")


def test_card_of_tokenized_text(arguments: list[str | Path], tmp_path: Path) -> None:
    for lang, name in (("de", "de"), (None, "xx")):
        save_model(tmp_path / "model", lang=None, weights_lang=lang)
        run_in_one_line(write_card, *arguments)
        card = (tmp_path / "model" / "README.md").read_text(encoding="utf8")
        assert f"| language | `{name}`; words: those of its tokenized text |" in card
        assert f'nlp = spacy.blank("{name}")\n' in card


def test_a_card_that_was_edited_is_kept(arguments: list[str | Path], tmp_path: Path) -> None:
    card = tmp_path / "model" / "README.md"
    run_in_one_line(write_card, *arguments)
    first = card.read_text(encoding="utf8")
    (tmp_path / "run" / "metrics.jsonl").write_text('{"step": 2500}\n', encoding="utf8")
    assert "read it, and add what you know" in run_in_one_line(write_card, *arguments)
    assert card.read_text(encoding="utf8").splitlines()[:-1] == first.replace("2,400", "2,500").splitlines()[:-1]
    for edited in (first.replace("## Limits", "## Known limits"), f"{first}And more.\n", "a card\n", ""):
        card.write_text(edited, encoding="utf8")
        assert "was kept, because it was edited. To write it again, move it away" in run_in_one_line(
            write_card, *arguments
        )
        assert card.read_text(encoding="utf8") == edited


def test_missing_files_are_reported(arguments: list[str | Path], tmp_path: Path) -> None:
    (tmp_path / "text.json").write_text("[]", encoding="utf8")
    assert "text.json must have a JSON object, got []" in run_in_one_line(write_card, *arguments, code=1)
    (tmp_path / "text.json").write_text("{}", encoding="utf8")
    assert "Could not write the card of" in run_in_one_line(write_card, *arguments, code=1)
    (tmp_path / "run" / "scores.json").unlink()
    assert "scores.json" in run_in_one_line(write_card, *arguments, code=1)
    assert not (tmp_path / "model" / "README.md").exists()
