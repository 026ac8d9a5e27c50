"""Embed a corpus: make or read the plan, find the shards that are missing, and let an engine embed them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from .compare import check_plan
from .events import Event, Failed, Observer
from .extras import import_arrow
from .model import load_embedder
from .parquet import is_whole
from .plan import PLAN_FILE, SHARD_NAME, Plan, Shard, read_plan
from .scan import Report, make_plan
from .settings import EmbeddingSettings
from .shard import Job, make_job

Engine = Callable[[Job, Sequence[Shard], Observer], None]

MAX_FAILED = 10  # if so many shards fail, the others would as well


@dataclass(frozen=True, kw_only=True)
class Embedding:
    """A corpus that is planned, and perhaps partly embedded.

    job (Job): What every shard needs.
    plan (Plan): All shards.
    shards (list[Shard]): Those of this part.
    missing (list[Shard]): Those of this part that are not embedded yet.
    """

    job: Job
    plan: Plan
    shards: list[Shard]
    missing: list[Shard]


class TooManyFailuresError(RuntimeError):
    """So many shards have failed that the others were not tried."""


def prepare(
    corpus: Path,
    output: Path,
    settings: EmbeddingSettings,
    *,
    part: tuple[int, int] = (1, 1),
    overwrite: bool = False,
    report: Report = lambda n_bytes: None,
) -> Embedding:
    """Make the plan of an embedding, or check the existing one.

    corpus (Path): A file or a directory.
    output (Path): The directory of the shards. It is empty, does not exist, or has the same embedding, complete or not.
    settings (EmbeddingSettings): What to embed.
    part (tuple[int, int]): Which part of the shards, from 1, and the number of parts.
    overwrite (bool): Whether to remove an existing embedding.
    report (Report): Called with the bytes of the corpus that are read.
    RETURNS (Embedding): What there is to do.
    """
    import_arrow()
    settings = settings.with_absolute_paths()
    number, n_parts = part
    if not 1 <= number <= n_parts:
        raise ValueError(f"part must be from 1/{n_parts} to {n_parts}/{n_parts}, got {number}/{n_parts}.")
    if overwrite and n_parts > 1:
        raise ValueError(
            "--overwrite would remove what other parts have written. Use it once without --part, with --plan-only, and start "
            "the parts afterwards."
        )
    _check_directory(corpus, output)
    model = load_embedder(settings).identity
    plan = None if overwrite else read_plan(output)
    if plan is None:
        plan = make_plan(corpus, settings, model, report)
        if overwrite and output.is_dir():
            _remove(output)  # only now: a corpus or settings that are refused leave the old vectors
        plan.to_disk(output)
    else:
        check_plan(plan, corpus, output, settings, model, report)
    # Neighbours are of similar difficulty, so each part gets every n-th shard.
    shards = plan.shards[number - 1 :: n_parts]
    missing = [shard for shard in shards if not is_whole(output / shard.name, plan.fingerprint)]
    return Embedding(job=make_job(corpus, output, settings, plan), plan=plan, shards=shards, missing=missing)


def _check_directory(corpus: Path, output: Path) -> None:
    if corpus.is_dir() and output.resolve().is_relative_to(corpus.resolve()):
        raise ValueError(
            f"{output} is inside of the corpus {corpus}, and would become a part of it. Choose another directory."
        )
    if output.exists() and not output.is_dir():
        raise ValueError(f"{output} is a file; a directory is to be written there. Choose another path.")
    # One listing: another part may write the plan at the same time.
    names = {path.name for path in output.iterdir() if not path.name.startswith(".")} if output.is_dir() else set()
    if names and PLAN_FILE not in names:
        raise ValueError(f"{output} has other files in it, such as {min(names)!r}. Choose another directory.")


def _remove(output: Path) -> None:
    for path in sorted(output.iterdir()):
        if SHARD_NAME.fullmatch(path.name):
            path.unlink()
    (output / PLAN_FILE).unlink(missing_ok=True)  # last, so that a directory with shards always has a plan


def run(embedding: Embedding, engine: Engine, observe: Observer) -> list[Failed]:
    """Embed what is missing.

    embedding (Embedding): What there is to do.
    engine (Engine): What embeds shards.
    observe (Observer): Gets what happens.
    RETURNS (list[Failed]): The shards that failed, after all others were embedded.
    """
    failed: list[Failed] = []

    def count_failures(event: Event) -> None:
        observe(event)
        if isinstance(event, Failed):
            failed.append(event)
            if len(failed) >= MAX_FAILED:
                raise TooManyFailuresError(
                    f"{len(failed)} shards failed, so the others were not tried. The last one: {event.reason}"
                )

    if embedding.missing:
        engine(embedding.job, embedding.missing, count_failures)
    return failed
