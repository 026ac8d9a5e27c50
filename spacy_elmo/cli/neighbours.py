"""`spacy elmo neighbours`: the uses of words in a text that are closest to a given use."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spacy.cli._util import Arg, Opt
from tqdm import tqdm
from wasabi import msg

from .help_texts import CORPUS_HELP, RESULTS_HELP, SEGMENTER_HELP, WEIGHTS_HELP
from .segmenters import choose_segmenter

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

CONTEXT = 36  # characters to show on either side of a word


def neighbours_cli(
    corpus: Path = Arg(..., help=CORPUS_HELP),
    sentences: list[str] = Arg(..., help='Sentences with one word in square brackets: "They [play] chess."'),
    weights: str | None = Opt(None, "--weights", "-w", help=WEIGHTS_HELP),
    lang: str = Opt("en", "--lang", "-l", help="The language of the sentences, and of the corpus if it is raw text"),
    segmenter: str | None = Opt(None, "--segmenter", help=SEGMENTER_HELP.format(default="as for the weights")),
    tokenized: bool = Opt(False, "--tokenized", "-t", help="The corpus has one tokenized sentence per line"),
    n: int = Opt(5, "--n", "-n", help="The number of neighbours to show", min=1),
    limit: int = Opt(0, "--limit", help="The maximum number of sentences of the corpus to search; 0 for all", min=0),
    layers: list[int] = Opt(
        [],
        "--layer",
        help="A layer to compare instead of Doc.tensor, where 0 is the token layer; may be given several times",
    ),
    output: Path | None = Opt(None, "--output", "-o", help=RESULTS_HELP),
) -> None:
    """Find nearest neighbours of words in context.

    Each word in square brackets is compared with all words of a corpus. Every vector depends on the word's sentence:

        python -m spacy elmo neighbours text.txt "They sat on the [bank] of the river."
    """
    from ..analysis.layer_name import layer_name
    from ..analysis.neighbours import find_neighbours, mark_use, read_use
    from ..corpora.tokenizer import make_language
    from ..models import DEFAULT, choose_model
    from .results import check_output, write_results

    try:
        check_output(output)
        chosen_segmenter = choose_segmenter(weights, lang, segmenter)
        nlp = make_language(lang, chosen_segmenter)
        nlp.add_pipe("elmo", config={"weights": weights})
        uses = [read_use(nlp, sentence) for sentence in sentences]
        docs = _embed(nlp, corpus, (None, None) if tokenized else (lang, chosen_segmenter), limit)
        chosen: list[int | None] = [*layers] or [None]
        found = find_neighbours(uses, docs, n=n, layers=chosen)
        if not found[0][0]:
            raise ValueError(f"{corpus} has no sentence to search.")
        names = ["Doc.tensor" if layer is None else layer_name(layer) for layer in chosen]
        results: list[dict[str, Any]] = [
            {
                "sentence": sentence,
                "neighbours": [
                    [
                        {"similarity": similarity, "text": mark_use(token, width=CONTEXT)}
                        for similarity, token in neighbours[i]
                    ]
                    for neighbours in found
                ],
            }
            for i, sentence in enumerate(sentences)
        ]
    except (ValueError, OSError, ImportError) as error:
        msg.fail("Could not find neighbours", str(error), exits=1)
    for use in results:
        msg.divider(use["sentence"])
        rows = [
            (name, f"{neighbour['similarity']:.3f}", neighbour["text"])
            for name, neighbours in zip(names, use["neighbours"], strict=True)
            for neighbour in neighbours
        ]
        msg.table(rows, max_col=100)
    if output is not None:
        options: list[object] = ["--n", n, "--limit", limit, "--lang", lang]
        options += ["--segmenter", segmenter] if segmenter else []
        options += ["--tokenized"] if tokenized else []
        options += [word for layer in layers for word in ("--layer", layer)]
        options += ["--weights", Path(weights)] if weights else []
        write_results(
            output,
            "neighbours",
            weights=choose_model(weights, lang) or DEFAULT,
            arguments=[corpus, *sentences, *options],
            results={"layers": names, "uses": results},
        )


def _embed(nlp: "Language", corpus: Path, tokenizer: tuple[str | None, str | None], limit: int) -> Iterator["Doc"]:
    from spacy.tokens import Doc

    from ..corpora.read import read_corpus

    lang, segmenter = tokenizer
    sentences = islice(read_corpus(corpus, lang=lang, segmenter=segmenter), limit or None)
    docs = (Doc(nlp.vocab, words=words) for words in sentences)
    yield from tqdm(nlp.pipe(docs), unit=" sentences", desc="Reading", disable=None)
