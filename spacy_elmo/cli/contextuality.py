"""`spacy elmo contextuality`: how much of each layer is context."""

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from spacy.cli._util import Arg, Opt
from tqdm import tqdm
from wasabi import msg

from .help_texts import CORPUS_HELP, RESULTS_HELP, SEGMENTER_HELP, WEIGHTS_ARG_HELP
from .segmenters import choose_segmenter

if TYPE_CHECKING:
    from ..analysis.contextuality import ContextResults


def contextuality_cli(
    weights: str = Arg(..., help=WEIGHTS_ARG_HELP),
    corpus: Path = Arg(..., help=CORPUS_HELP),
    lang: str = Opt("en", "--lang", "-l", help="The language of raw text"),
    segmenter: str | None = Opt(None, "--segmenter", help=SEGMENTER_HELP.format(default="as for the weights")),
    tokenized: bool = Opt(False, "--tokenized", "-t", help="The corpus has one tokenized sentence per line"),
    limit: int = Opt(10_000, "--limit", help="The maximum number of sentences to read; 0 for all", min=0),
    output: Path | None = Opt(None, "--output", "-o", help=RESULTS_HELP),
) -> None:
    """Measure how much of each layer is context.

    Vectors of the same word in different sentences are compared, vectors of the words of a sentence, and vectors of any two
    words. The similarity of any two words is what the other two have to be compared with:

        python -m spacy elmo contextuality en_elmo_sm text.txt
    """
    from ..experiments.formatting import format_number
    from .results import check_output, write_results

    try:
        check_output(output)
        results = contextuality(weights, corpus, lang=None if tokenized else lang, segmenter=segmenter, limit=limit)
    except (ValueError, OSError, ImportError) as error:
        msg.fail("Could not compare the layers", str(error), exits=1)
    rows = [
        (
            layer.name,
            *(format_number(cosine, 3) for cosine in (layer.same_word, layer.same_sentence, layer.random_words)),
        )
        for layer in results.layers
    ]
    header = ("Similarity", "Same word", "Same sentence", "Any two words")
    msg.table(rows, header=header, divider=True, aligns=("l", "r", "r", "r"))
    msg.text(
        f"{results.n_sentences:,} sentences, {results.n_tokens:,} tokens, {results.n_words:,} words in enough sentences to "
        "be compared with themselves"
    )
    if output is not None:
        options = [*(["--tokenized"] if tokenized else ["--lang", lang]), "--limit", limit]
        options += ["--segmenter", segmenter] if segmenter else []
        write_results(
            output,
            "contextuality",
            weights=weights,
            arguments=[Path(weights), corpus, *options],
            results=results.to_dict(),
        )


def contextuality(
    weights: str, corpus: Path, *, lang: str | None, segmenter: str | None = None, limit: int = 0
) -> "ContextResults":
    """Measure how much of each layer is context.

    weights (str): A weights directory, or the name of a bundled model.
    corpus (Path): The text.
    lang (str | None): The language of raw text, or None for tokenized text.
    segmenter (str | None): How raw Chinese text is cut into words; by default, as for the weights.
    limit (int): The maximum number of sentences to read; 0 for all.
    RETURNS (ContextResults): The similarities.
    """
    from ..analysis.contextuality import measure_context
    from ..corpora.read import read_corpus
    from ..corpora.tokenizer import check_segmenter, make_language

    if lang is None:
        check_segmenter(lang, segmenter)
        nlp = make_language("xx")  # fits weights of any language
    else:
        segmenter = choose_segmenter(weights, lang, segmenter)
        nlp = make_language(lang, segmenter)
    nlp.add_pipe("elmo", config={"weights": weights})
    sentences = islice(read_corpus(corpus, lang=lang, segmenter=segmenter), limit or None)
    with tqdm(unit=" sentences", desc="Comparing", disable=None) as bar:
        return measure_context(nlp, sentences, on_sentence=bar.update)
