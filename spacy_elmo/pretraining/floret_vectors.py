"""Static vectors of a corpus, for a task that reads them beside ELMo, as the paper's models do.

floret hashes words and their character n-grams into a small table, so every word has a vector, known or not.
"""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import spacy
from spacy.training.initialize import convert_vectors

from ..corpora.files import check_outside
from ..files.atomic import write_directory
from .prepare import ShowProgress, prepare_corpus

HASHES = 2  # rows of the table that are added for each n-gram
SHORTEST, LONGEST = 4, 5  # characters of an n-gram

PIPELINE_FILES = {"config.cfg", "meta.json", "tokenizer", "vocab"}


def train_floret_vectors(
    source: Path,
    output: Path,
    *,
    lang: str,
    segmenter: str | None = None,
    is_tokenized: bool = False,
    width: int = 100,
    rows: int = 50_000,
    epochs: int = 5,
    min_count: int = 10,
    n_process: int = 1,
    n_threads: int = 1,
    show_progress: ShowProgress | None = None,
) -> int:
    """Train floret vectors, and write them as an empty pipeline that `[initialize] vectors` can name.

    source (Path): The corpus, in any format that `read_corpus` reads.
    output (Path): The directory to write.
    lang (str): The language of the text, and of the pipeline.
    segmenter (str | None): How Chinese text is cut into words, as for `make_tokenizer`.
    is_tokenized (bool): Whether the text has one tokenized sentence per line.
    width (int): The width of a vector.
    rows (int): Rows of the table.
    epochs (int): How often the corpus is read.
    min_count (int): How often a word must occur to be trained on.
    n_process (int): The number of processes that tokenize.
    n_threads (int): The number of threads that train. With more than one, every run gives other vectors.
    show_progress (ShowProgress | None): Shows the progress of tokenizing.
    RETURNS (int): The number of words that were read, in each epoch.
    """
    floret = _import_floret()
    check_outside(output, source)
    nlp = spacy.blank(lang)
    with write_directory(output, files=PIPELINE_FILES) as draft, TemporaryDirectory(dir=draft) as temporary:
        corpus = prepare_corpus(
            source,
            Path(temporary) / "corpus",
            lang=None if is_tokenized else lang,
            segmenter=segmenter,
            n_process=n_process,
            show_progress=show_progress,
        )
        try:
            model = floret.train_unsupervised(
                str(corpus.path),
                model="cbow",
                mode="floret",
                hashCount=HASHES,
                bucket=rows,
                minn=SHORTEST,
                maxn=LONGEST,
                minCount=min_count,
                dim=width,
                neg=10,
                epoch=epochs,
                thread=n_threads,
                verbose=0 if show_progress is None else 2,
            )
        except ValueError as error:  # "Empty vocabulary"
            raise ValueError(
                f"floret found too little text in {source}: {error} It has {corpus.n_tokens:,} words, and each must occur at "
                f"least {min_count} times. A lower min_count may help."
            ) from None
        table = Path(temporary) / "vectors.floret"
        model.save_floret_vectors(str(table))
        convert_vectors(nlp, table, truncate=0, prune=-1, mode="floret")
        nlp.to_disk(draft)
    return corpus.n_tokens


def _import_floret() -> Any:
    try:
        import floret
    except ImportError as error:
        raise ImportError(
            f"Static vectors need floret, and importing it failed: {error}. Install it with `pip install floret`, or as an "
            f"extra: `pip install 'spacy-elmo[vectors]'`."
        ) from error
    return floret
