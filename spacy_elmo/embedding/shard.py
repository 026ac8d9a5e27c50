"""Embed one shard: a function of the plan, which any process on any machine can run, and run again."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import torch
from spacy.language import Language
from spacy.tokens import Doc

from ..corpora.long_texts import LONGEST_PIECE, cut_text
from ..files.atomic import draft_file
from ..layers.doc_layers import count_characters
from .columns import make_schema
from .model import Embedder, load_embedder
from .parquet import FINGERPRINT, is_whole, open_writer
from .plan import Plan, Shard
from .pooling import RowDoc, Units, pool_row
from .rows import Row
from .scan import read_shard
from .settings import EmbeddingSettings

ReportTokens = Callable[[int, int], None]  # gets the tokens of a shard that were embedded so far, and their characters
RowPart = tuple[int, Row, str | Doc]  # the number of a row, the row, and a part of it that the pipeline reads at once

BATCH_CHARS = LONGEST_PIECE


@dataclass(frozen=True, kw_only=True)
class Job:
    """What a process needs to embed any shard of a plan.

    corpus, output (Path): Where the text is, and where the shards go.
    settings (EmbeddingSettings): The settings.
    model (dict): The identity of the embedder that the plan was made with.
    fields (dict): The types of further fields.
    fingerprint (str): That of the plan.
    """

    corpus: Path
    output: Path
    settings: EmbeddingSettings
    model: dict[str, str]
    fields: dict[str, str]
    fingerprint: str


def make_job(corpus: Path, output: Path, settings: EmbeddingSettings, plan: Plan) -> Job:
    """RETURNS (Job): The job of a plan, with paths that do not depend on the current directory."""
    return Job(
        corpus=corpus.resolve(),
        output=output.resolve(),
        settings=settings,
        model=plan.model,
        fields=plan.fields,
        fingerprint=plan.fingerprint,
    )


def embed_shard(job: Job, shard: Shard, report: ReportTokens = lambda n_tokens, n_chars: None) -> int:
    """Embed a shard and put its file in place, or do nothing if that has been done.

    job (Job): The job.
    shard (Shard): The shard.
    report (ReportTokens): Called after every row, or every part of one.
    RETURNS (int): The tokens that were embedded.
    """
    path = job.output / shard.name
    if is_whole(path, job.fingerprint):
        return 0
    embedder = load_embedder(job.settings)
    if embedder.identity != job.model:
        names = ", ".join(name for name, value in job.model.items() if embedder.identity[name] != value)
        raise ValueError(
            f"The plan was made with other versions or files of: {names}. All machines need the same ones."
        )
    schema = make_schema(job.settings, job.fields, embedder.width, make_metadata(job))
    n_tokens = n_chars = 0
    embedder.clear_cache()
    with (
        _one_thread(),
        embedder.nlp.memory_zone(),
        draft_file(path) as draft,
        open_writer(draft, schema, job.fields) as write,
    ):
        rows = read_shard(job.corpus, shard, job.settings, embedder.nlp.vocab)
        for units in embed_rows(rows, embedder, job.settings):
            write(units)
            n_tokens, n_chars = n_tokens + units.n_tokens, n_chars + units.n_chars
            report(n_tokens, n_chars)
    return n_tokens


def make_metadata(job: Job) -> dict[str, str]:
    """RETURNS (dict[str, str]): What is stored in every shard."""
    return {
        FINGERPRINT.decode(): job.fingerprint,
        "spacy_elmo.settings": json.dumps(job.settings.comparable()),
        "spacy_elmo.model": json.dumps(job.model),
    }


def embed_rows(rows: Iterator[Row], embedder: Embedder, settings: EmbeddingSettings) -> Iterator[Units]:
    """Embed rows, with a bounded number of docs in memory.

    rows (Iterator[Row]): The rows.
    embedder (Embedder): The pipeline.
    settings (EmbeddingSettings): The settings.
    YIELDS (Units): The units of each row, in order.
    """
    parts = (
        (number, row, content) for number, row in enumerate(rows) for content in _cut_row(row, embedder.nlp, settings)
    )
    for _, docs in groupby(_run_pipeline(embedder.nlp, parts), key=lambda doc: doc.number):
        yield from pool_row(docs, embedder, settings.unit)


def _cut_row(row: Row, nlp: Language, settings: EmbeddingSettings) -> Iterator[str | Doc]:
    if isinstance(row.content, Doc):
        yield row.content
        return
    if settings.tokenized:
        yield Doc(nlp.vocab, words=row.content.split())  # in one piece: it has its tokens, and is one sentence
        return
    yield from cut_text(row.content)


def _run_pipeline(nlp: Language, parts: Iterator[RowPart]) -> Iterator[RowDoc]:
    for batch in _batch(parts):
        docs = nlp.pipe(content for _, _, content in batch)
        for (number, row, _), doc in zip(batch, docs, strict=True):
            yield RowDoc(number, row, doc)


def _batch(parts: Iterator[RowPart]) -> Iterator[list[RowPart]]:
    """Components may read all docs of a stream ahead, so a stream is as long as a batch."""
    batch: list[RowPart] = []
    n_chars = 0
    for part in parts:
        content = part[-1]
        batch.append(part)
        n_chars += len(content) if isinstance(content, str) else count_characters(content)
        if n_chars >= BATCH_CHARS:
            yield batch
            batch, n_chars = [], 0
    if batch:
        yield batch


@contextmanager
def _one_thread() -> Iterator[None]:
    """Compute with one thread of torch's: the rounding of sums may depend on their number."""
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(n_threads)
