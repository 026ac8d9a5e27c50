"""`spacy elmo debug-data`: statistics of a corpus."""

from pathlib import Path

from spacy.cli._util import Arg, Opt
from wasabi import msg

from .help_texts import CORPUS_HELP, LANG_HELP, PROCESSES_HELP, SEGMENTER_HELP
from .progress import show_sentences


def debug_data_cli(
    corpus: Path = Arg(..., help=CORPUS_HELP),
    lang: str | None = Opt(None, "--lang", "-l", help=LANG_HELP),
    segmenter: str | None = Opt(None, "--segmenter", help=SEGMENTER_HELP.format(default="char")),
    n_process: int = Opt(1, "--n-process", "-p", help=PROCESSES_HELP, min=1),
    max_chars: int | None = Opt(
        None,
        "--max-chars",
        "-m",
        help="Maximum bytes per word that the model reads, including 2 for the start and end markers; by default what "
        "`pretrain` chooses, enough for 48 letters of the script",
        min=3,
    ),
) -> None:
    """Show statistics of a corpus.

    Shows the size of the corpus, how many of its words are covered by vocabularies of several sizes, and how many words are
    cut because they are longer than max_chars. Letters of most non-Latin scripts take two or three bytes, so the default of
    max_chars depends on the script.
    """
    from ..corpora.read import read_corpus
    from ..corpora.statistics import compute_statistics

    try:
        sentences = read_corpus(corpus, lang=lang, segmenter=segmenter, n_process=n_process)
        statistics = compute_statistics(show_sentences(sentences, "Reading"), max_chars=max_chars)
    except (ValueError, OSError) as error:
        msg.fail("Could not read the corpus", str(error), exits=1)
    n_tokens = statistics.n_tokens
    msg.divider("Size")
    msg.text(f"{statistics.n_sentences:,} sentences, {n_tokens:,} tokens, {statistics.n_types:,} different words")
    lengths = {"Tokens in a sentence": statistics.sentence_lengths, "Bytes in a word": statistics.word_lengths}
    for name, percentiles in lengths.items():
        msg.text(f"{name}: " + ", ".join(f"{percent}% have up to {length}" for percent, length in percentiles.items()))
    msg.divider("Vocabulary")
    for size, fraction in statistics.coverage.items():
        msg.text(f"{size:,} words cover {fraction:.2%} of the tokens")
    if not statistics.coverage:
        msg.text(f"All {statistics.n_types:,} words fit into a small vocabulary")
    msg.divider(f"Words longer than max_chars = {statistics.max_chars}")
    if not statistics.cut_types:
        msg.good("None is cut")
        return
    detail = f"For example: {', '.join(repr(word[:60]) for word in statistics.cut_examples)}"
    report = msg.warn if statistics.many_are_cut else msg.info
    report(statistics.describe_cut(), detail)
