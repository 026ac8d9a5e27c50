"""`spacy elmo init-vocab`: the vocabulary of a corpus."""

from pathlib import Path
from typing import TYPE_CHECKING

from spacy.cli._util import Arg, Opt
from wasabi import msg

from .help_texts import CORPUS_HELP, LANG_HELP, PROCESSES_HELP, SEGMENTER_HELP
from .progress import show_sentences

if TYPE_CHECKING:
    from ..pretraining.vocabulary import Vocabulary


def init_vocab_cli(
    corpus: Path = Arg(..., help=CORPUS_HELP),
    output: Path = Arg(..., help="The file to write: a word and its frequency per line"),
    lang: str | None = Opt(None, "--lang", "-l", help=LANG_HELP),
    segmenter: str | None = Opt(None, "--segmenter", help=SEGMENTER_HELP.format(default="char")),
    n_process: int = Opt(1, "--n-process", "-p", help=PROCESSES_HELP, min=1),
    max_size: int = Opt(
        800_000, "--max-size", "-n", help="Maximum vocabulary size; rarer words count as unknown", min=4
    ),
    min_count: int = Opt(
        1, "--min-count", "-c", help="Minimum frequency of a word; rarer words count as unknown", min=1
    ),
) -> None:
    """Build a vocabulary.

    Counts the words of a corpus and writes them with their frequencies, most frequent first.
    """
    try:
        vocabulary = init_vocab(
            corpus,
            output,
            lang=lang,
            segmenter=segmenter,
            n_process=n_process,
            max_size=max_size,
            min_count=min_count,
        )
    except (ValueError, OSError) as error:
        msg.fail("Could not make the vocabulary", str(error), exits=1)
    n_tokens = sum(vocabulary.counts[2:])
    n_unknown = vocabulary.counts[2]
    msg.good(
        f"Wrote {output}",
        f"{len(vocabulary):,} words from {n_tokens:,} tokens in {vocabulary.counts[0]:,} sentences; "
        f"{n_unknown / n_tokens:.2%} of the tokens are unknown; unigram perplexity {vocabulary.unigram_perplexity:,.1f}",
    )


def init_vocab(
    corpus: Path,
    output: Path,
    *,
    lang: str | None,
    segmenter: str | None = None,
    n_process: int,
    max_size: int,
    min_count: int,
) -> "Vocabulary":
    """Count the words of a corpus, and write them.

    corpus (Path): The corpus.
    output (Path): The file to write.
    lang (str | None): The language of raw text, or None for tokenized text.
    segmenter (str | None): How Chinese text is cut into words.
    n_process (int): The number of processes that tokenize.
    max_size (int): The maximum vocabulary size.
    min_count (int): The minimum frequency of a word.
    RETURNS (Vocabulary): The vocabulary.
    """
    from ..corpora.read import read_corpus
    from ..pretraining.vocabulary import count_words

    sentences = read_corpus(corpus, lang=lang, segmenter=segmenter, n_process=n_process)
    vocabulary = count_words(show_sentences(sentences, "Counting words"), max_size=max_size, min_count=min_count)
    vocabulary.to_disk(output)
    return vocabulary
