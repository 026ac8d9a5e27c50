"""`spacy elmo init-vectors`: static vectors of a corpus."""

from pathlib import Path

from spacy.cli._util import Arg, Opt
from wasabi import msg

from .help_texts import CORPUS_HELP, PROCESSES_HELP, SEGMENTER_HELP
from .progress import show_sentences


def init_vectors_cli(
    corpus: Path = Arg(..., help=CORPUS_HELP),
    output: Path = Arg(..., help="The directory to write"),
    lang: str = Opt(..., "--lang", "-l", help="The language of the text, and of the pipelines that use the vectors"),
    segmenter: str | None = Opt(None, "--segmenter", help=SEGMENTER_HELP.format(default="char")),
    tokenized: bool = Opt(False, "--tokenized", "-t", help="The text is tokenized, one sentence per line"),
    width: int = Opt(100, "--width", "-w", help="The width of a vector", min=1),
    rows: int = Opt(50_000, "--rows", "-r", help="Rows of the table, which words and their n-grams share", min=1),
    epochs: int = Opt(5, "--epochs", "-e", help="How often the corpus is read", min=1),
    min_count: int = Opt(10, "--min-count", "-c", help="How often a word must occur to be trained on", min=1),
    n_process: int = Opt(1, "--n-process", "-p", help=PROCESSES_HELP, min=1),
    n_threads: int = Opt(
        1,
        "--n-threads",
        help="The number of threads that train; with more than 1, every run gives other vectors",
        min=1,
    ),
) -> None:
    """Train static vectors.

    Trains floret vectors on a corpus, for tasks that read them beside ELMo:

        python -m spacy elmo init-vectors text.txt vectors --lang en

    `spacy train configs/ner.cfg` reads them with --paths.vectors vectors and
    --components.ner.model.tok2vec.embed.include_static_vectors true.
    """
    from ..pretraining.floret_vectors import train_floret_vectors

    try:
        n_words = train_floret_vectors(
            corpus,
            output,
            lang=lang,
            segmenter=segmenter,
            is_tokenized=tokenized,
            width=width,
            rows=rows,
            epochs=epochs,
            min_count=min_count,
            n_process=n_process,
            n_threads=n_threads,
            show_progress=show_sentences,
        )
    except (ValueError, OSError, ImportError) as error:
        msg.fail("Could not train the vectors", str(error), exits=1)
    msg.good(f"Wrote {output}", f"{rows:,} rows of {width} values, from {n_words:,} words, read {epochs} times")
