"""Write the card of a language model that was pretrained on a Wikipedia: README.md of its directory, filled in from the run.

A card that somebody has edited is kept: its last line has a checksum of what this script wrote.
"""

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import typer
from confection import Config
from wasabi import msg

from spacy_elmo.bilm.weights import load_weights
from spacy_elmo.corpora.articles import read_articles
from spacy_elmo.corpora.tokenizer import WITHOUT_SPACES
from spacy_elmo.files.atomic import write_file
from spacy_elmo.pretraining.model_files import tokenizer_lang_of, vocabulary_of
from spacy_elmo.pretraining.output import METRICS, RUN_CONFIG, SCORES

CARD = "README.md"
NEW_LICENCE = "2023-06-07"  # since then, the text of Wikipedia is under version 4.0

TEMPLATE = """# {name}

A bidirectional language model (biLM) for spacy-elmo, ELMo as a plugin of spaCy. It was pretrained on {site}.

| | |
|---|---|
| language | `{lang}`; words: {words} |
| what it is | a character CNN of {n_filters:,} filters, {depth} LSTM layers with a hidden size of {cells} in each direction, projected to {projection}: vectors of {width} values, {n_layers} layers |
| size | {n_parameters:.1f} million parameters, and a softmax over {n_words:,} words; {n_mb:.1f} MB on disk |
| text | `{dump}`{dated}: {articles:,} articles, {paragraphs:,} paragraphs of prose; {redirects:,} redirects and {disambiguation_pages:,} disambiguation pages were left out; {n_dev:,} articles were held out for dev and {n_test:,} for test |
| licence | {licence} |
| training | {steps:,} steps of {batch_size} rows and {unroll} tokens, {n_read:,} words in all; {optimizer}, learning rate {learn_rate:g}, {softmax}, {precision} products; words of up to {max_bytes} bytes |
| time | {minutes:,.0f} minutes |

## Perplexity

With all {n_words:,} words as candidates. Unknown words count as one word, and each sentence is on its own.

| text | words and ends of sentences | unknown | forward | backward | unigrams |
|---|---|---|---|---|---|
{rows}

## Use it

```python
import spacy

{example}
nlp.add_pipe("{sentencizer}")
nlp.add_pipe("elmo", config={{"weights": "PATH/TO/THIS/DIRECTORY"}})
```

## Limits

It has read encyclopedic prose only. It has the biases of that text about people and groups. What it is good for was not
measured here: compare a task with and without it, as the page on tasks in spacy-elmo's documentation shows.
"""


def write_card(model: Path, run: Path, text: Path, perplexity: Path, articles: Path, name: str) -> None:
    """Write the card.

    model (Path): The language model, such as `scripts/bundle_model.py` writes it. The card becomes its README.md.
    run (Path): The directory of the pretraining run.
    text (Path): What `scripts/extract_wikipedia.py` wrote about the text, as JSON.
    perplexity (Path): What `spacy elmo evaluate` wrote about the test articles, as JSON.
    articles (Path): The directory with the held-out articles, dev.txt and test.txt.
    name (str): The name of the model.
    """
    try:
        values = {**describe_model(model), **describe_run(run), **describe_text(read_json(text))}
        scores = {"test articles": read_json(perplexity), "dev articles, before float16": read_json(run / SCORES)}
        n_dev, n_test = (sum(1 for _ in read_articles(articles / f"{part}.txt")) for part in ("dev", "test"))
        rows = "\n".join(describe_scores(part, each) for part, each in scores.items())
        if was_edited(model / CARD):
            msg.warn(f"{model / CARD} was kept, because it was edited. To write it again, move it away")
            return
        write_file(model / CARD, sign(TEMPLATE.format(name=name, n_dev=n_dev, n_test=n_test, rows=rows, **values)))
    except (OSError, ValueError, KeyError) as error:
        msg.fail(f"Could not write the card of {model}", f"{type(error).__name__}: {error}", exits=1)
    msg.good(f"{model / CARD}: read it, and add what you know about the model")


def sign(card: str) -> str:
    """RETURNS (str): A card with a checksum in its last line, a comment."""
    return f"{card}\n<!-- Written by scripts/write_card.py: {sha256(card.encode('utf8')).hexdigest()} -->\n"


def was_edited(path: Path) -> bool:
    """RETURNS (bool): Whether there is a card that is not as this script wrote it."""
    if not path.exists():
        return False
    card = path.read_text(encoding="utf8")
    return card != sign(card.rpartition("\n<!--")[0])


def describe_model(directory: Path) -> dict[str, Any]:
    """RETURNS (dict): The sizes of a model, its language, and how to make a pipeline for it."""
    bilm = load_weights(directory)
    sizes = bilm.config
    tokenizer_lang, segmenter = tokenizer_lang_of(directory), sizes.segmenter
    lang = tokenizer_lang or sizes.lang or "xx"
    words = "those of its tokenized text"
    if tokenizer_lang:
        words = f"spaCy's tokenizer for `{tokenizer_lang}`" + (f", segmenter `{segmenter}`" if segmenter else "")
    tokenizer = {"@tokenizers": "spacy.zh.ChineseTokenizer", "segmenter": segmenter}
    config = f", config={json.dumps({'nlp': {'tokenizer': tokenizer}})}" if segmenter else ""
    return {
        "lang": lang,
        "words": words,
        "example": f'nlp = spacy.blank("{lang}"{config})',
        "sentencizer": "cjk_sentencizer" if lang in WITHOUT_SPACES else "sentencizer",
        "n_filters": sizes.n_filters,
        "depth": sizes.depth,
        "cells": sizes.cells,
        "projection": sizes.projection,
        "width": sizes.width,
        "n_layers": sizes.depth + 1,
        "max_bytes": sizes.max_chars - 2,  # without the marks of a word's start and end
        "n_parameters": sum(parameter.numel() for parameter in bilm.parameters()) / 1e6,
        "n_words": len(vocabulary_of(directory)),
        "n_mb": sum(path.stat().st_size for path in directory.iterdir() if path.name != CARD) / 1e6,
    }


def describe_run(run: Path) -> dict[str, Any]:
    """RETURNS (dict): The settings of a run, and how far it went."""
    training = Config().from_disk(run / RUN_CONFIG)["bilm_training"]
    *_, last = (run / METRICS).read_text(encoding="utf8").splitlines()
    scores = read_json(run / SCORES)
    return {
        **{key: training[key] for key in ("batch_size", "unroll", "precision")},
        "softmax": f"{training['samples']:,} samples" if training["samples"] else "full softmax",
        "optimizer": training["optimizer"]["name"],
        "learn_rate": training["optimizer"]["learn_rate"],
        "steps": json.loads(last)["step"],
        "n_read": scores["n_words"],
        "minutes": scores["seconds"] / 60,
    }


def describe_text(text: dict[str, Any]) -> dict[str, Any]:
    """RETURNS (dict): The source of a text, its size and its licence."""
    site = text["site"] or "a wiki"
    if text["url"]:
        site = f"[{site} ({text['database'] or text['lang']})]({text['url']})"
    licence = f"see the terms of {site}, which hold for its text"
    if ".wikipedia.org/" in text["url"] and not text["newest"]:
        licence = f"of the text CC BY-SA, by the authors of Wikipedia, in the version that {site} names; of the weights the same"
    elif ".wikipedia.org/" in text["url"]:
        version = "4.0" if text["newest"] >= NEW_LICENCE else "3.0"
        address = f"https://creativecommons.org/licenses/by-sa/{version}/"
        licence = f"of the text [CC BY-SA {version}]({address}), by the authors of Wikipedia; of the weights the same"
    counts = {name: text[name] for name in ("articles", "paragraphs", "redirects", "disambiguation_pages")}
    dated = f", newest article of {text['newest']}" if text["newest"] else ""
    return {"site": site, "dump": text["dump"], "dated": dated, "licence": licence, **counts}


def describe_scores(part: str, scores: dict[str, Any]) -> str:
    """RETURNS (str): A row of the table of perplexities."""
    unknown = scores["n_unknown"] / scores["n_predicted"]
    values = [f"{scores[f'perplexity_{name}']:,.1f}" for name in ("forward", "backward", "unigram")]
    return f"| the {part} | {scores['n_predicted']:,} | {unknown:.1%} | {' | '.join(values)} |"


def read_json(path: Path) -> dict[str, Any]:
    """RETURNS (dict): The object in a JSON file."""
    data = json.loads(path.read_text(encoding="utf8"))
    if not isinstance(data, dict):
        raise ValueError(f"{path} must have a JSON object, got {data!r:.80}.")
    return data


if __name__ == "__main__":
    typer.run(write_card)
