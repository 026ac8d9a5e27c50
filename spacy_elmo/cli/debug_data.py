"""`spacy elmo debug-data`: what is in a corpus, and what a model would miss of it."""

from pathlib import Path

from spacy.cli._util import Arg, Opt
from tqdm import tqdm
from wasabi import msg

from .init_vocab import CORPUS_HELP, LANG_HELP, PROCESSES_HELP


def debug_data_cli(
    corpus: Path = Arg(..., help=CORPUS_HELP),
    lang: str | None = Opt(None, "--lang", "-l", help=LANG_HELP),
    n_process: int = Opt(1, "--n-process", "-p", help=PROCESSES_HELP, min=1),
    max_chars: int = Opt(
        50, "--max-chars", "-m", help="Bytes of a word that the model reads, marks of start and end included", min=3
    ),
) -> None:
    """Show what is in a corpus before hours are spent on it: how much there is, how large a vocabulary it wants, and how
    many words are longer than the model reads (a letter of most scripts other than Latin takes two or three bytes)."""
    from ..corpora.read import read_corpus
    from ..pretraining.describe import describe_corpus

    try:
        sentences = tqdm(
            read_corpus(corpus, lang=lang, n_process=n_process), unit=" sentences", desc="Reading", disable=None
        )
        description = describe_corpus(sentences, max_chars=max_chars)
    except (ValueError, OSError) as error:
        msg.fail("Could not read the corpus", str(error), exits=1)
    n_tokens = description.n_tokens
    msg.divider("Size")
    msg.text(f"{description.n_sentences:,} sentences, {n_tokens:,} tokens, {description.n_types:,} different words")
    lengths = {"Tokens in a sentence": description.sentence_lengths, "Bytes in a word": description.word_lengths}
    for name, percentiles in lengths.items():
        msg.text(f"{name}: " + ", ".join(f"{percent}% have up to {length}" for percent, length in percentiles.items()))
    msg.divider("Vocabulary")
    for size, share in description.known.items():
        msg.text(f"{size:,} words cover {share:.2%} of the tokens")
    if not description.known:
        msg.text(f"All {description.n_types:,} words fit into a small vocabulary")
    msg.divider(f"Words longer than max_chars = {max_chars}")
    if not description.cut_types:
        msg.good("None is cut")
        return
    share = description.cut_tokens / n_tokens
    detail = f"For example: {', '.join(repr(word[:60]) for word in description.examples)}"
    summary = f"{description.cut_types:,} words are cut, {share:.3%} of the tokens"
    if share > 0.01:
        msg.warn(f"{summary}: a larger max_chars would help", detail)
    else:
        msg.info(summary, detail)
