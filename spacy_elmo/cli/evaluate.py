"""`spacy elmo evaluate`: the perplexity of a text under a language model."""

import json
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

from spacy.cli._util import Arg, Opt
from wasabi import msg

from .help_texts import CORPUS_HELP, PROCESSES_HELP, SEGMENTER_HELP
from .progress import show_sentences
from .segmenters import choose_segmenter

if TYPE_CHECKING:
    from ..pretraining.perplexity import Likelihood


def evaluate_cli(
    model: str = Arg(
        ...,
        help="A language model: a directory, such as model-best of a run, or the name of a bundled model",
    ),
    corpus: Path = Arg(..., help=CORPUS_HELP),
    lang: str | None = Opt(
        None, "--lang", "-l", help="The language of raw text; by default that of the model's training text"
    ),
    segmenter: str | None = Opt(None, "--segmenter", help=SEGMENTER_HELP.format(default="as for the weights")),
    tokenized: bool = Opt(
        False,
        "--tokenized",
        "-t",
        help="The corpus is tokenized, one sentence per line, even if the training text was not",
    ),
    n_process: int = Opt(1, "--n-process", "-p", help=PROCESSES_HELP, min=1),
    output: Path | None = Opt(None, "--output", "-o", help="Also write the results to this file, as JSON"),
) -> None:
    """Measure perplexity.

    The perplexity of a text under a language model: forward, backward and the mean of the two, with the full softmax. Each
    sentence is read on its own.
    """
    from ..models import find_existing_weights
    from ..pretraining.model_files import tokenizer_lang_of
    from .results import check_output, write_output

    try:
        check_output(output)
        directory = find_existing_weights(model)
        lang = None if tokenized else lang or tokenizer_lang_of(directory)
        segmenter = segmenter if lang is None else choose_segmenter(model, lang, segmenter)
        likelihood = evaluate(directory, corpus, lang=lang, segmenter=segmenter, n_process=n_process)
        scores = likelihood.perplexities
    except (ValueError, OSError) as error:
        msg.fail("Could not evaluate the model", str(error), exits=1)
    msg.table(
        [(name, f"{value:,.2f}") for name, value in scores.items()],
        header=("", "Perplexity"),
        divider=True,
        aligns=("l", "r"),
    )
    fraction = likelihood.n_unknown / likelihood.n_predicted
    msg.text(
        f"{likelihood.n_predicted:,} predictions in each direction, the ends of sentences included; "
        f"{likelihood.n_unknown:,} of them ({fraction:.2%}) are unknown words, which count as one"
    )
    tokenization = "one tokenized sentence per line" if lang is None else f"raw text in the language {lang!r}"
    tokenization += f", cut by {segmenter!r}" if segmenter else ""
    msg.text(f"Text was read as {tokenization}; docs (.spacy) keep their tokens")
    if output is not None:
        if not isfinite(scores["mean"]):
            reason = f"The perplexity is {scores['mean']}, which JSON cannot hold: the model has diverged."
            msg.fail("Could not write the results", f"{reason} {output} was not written.", exits=1)
        write_output(output, json.dumps(likelihood.to_dict(), indent=2) + "\n")


def evaluate(
    model: Path, corpus: Path, *, lang: str | None = None, segmenter: str | None = None, n_process: int = 1
) -> "Likelihood":
    """Measure the likelihood of a text under a language model.

    model (Path): The model's directory.
    corpus (Path): The text.
    lang (str | None): The language of raw text, or None for tokenized text.
    segmenter (str | None): How Chinese text is cut into words.
    n_process (int): The number of processes that tokenize.
    RETURNS (Likelihood): The likelihood.
    """
    from ..corpora.read import read_corpus
    from ..pretraining.model_files import load_language_model
    from ..pretraining.perplexity import measure_likelihood

    language_model, vocabulary = load_language_model(model)
    sentences = read_corpus(corpus, lang=lang, segmenter=segmenter, n_process=n_process)
    return measure_likelihood(language_model, vocabulary, show_sentences(sentences, "Predicting"))
