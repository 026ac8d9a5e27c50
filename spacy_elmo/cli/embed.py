"""`spacy elmo embed`: vectors of a whole corpus, as Parquet."""

import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from spacy.cli._util import Arg, Opt
from tqdm import tqdm
from wasabi import msg

from .help_texts import SEGMENTER_HELP, WEIGHTS_HELP
from .segmenters import choose_segmenter

if TYPE_CHECKING:
    from ..embedding.embed import Embedding, Engine
    from ..embedding.events import Event, Observer

ENGINES = ("local", "ray")


def embed_cli(
    corpus: Path = Arg(
        ...,
        help="Text (.txt), JSON lines (.jsonl) or Parquet with a text each, or docs (.spacy), gzipped or not, or a directory of them",
    ),
    output: Path = Arg(..., help="The directory for the vectors"),
    unit: str = Opt("document", "--unit", "-u", help="What gets a vector: document, sentence or token"),
    layers: str = Opt("mix", "--layers", "-L", help="mix, mean, top, the index of a layer, or all"),
    dtype: str = Opt("float32", "--dtype", help="float32 or float16"),
    weights: str | None = Opt(None, "--weights", "-w", help=WEIGHTS_HELP),
    precision: str = Opt(
        "float32", "--precision", "-p", help="How the language model computes: float32, or int8, which is faster"
    ),
    pipeline: str | None = Opt(
        None, "--pipeline", "-P", help="A pipeline to load instead of a blank one. It gets an elmo if it has none"
    ),
    lang: str = Opt("en", "--lang", "-l", help="The language of raw text"),
    segmenter: str | None = Opt(None, "--segmenter", help=SEGMENTER_HELP.format(default="as for the weights")),
    tokenized: bool = Opt(False, "--tokenized", "-t", help="Each text is one tokenized sentence"),
    no_text: bool = Opt(False, "--no-text", help="Write no texts beside the vectors"),
    text_field: str = Opt("text", "--text-field", help="The field with the text, in JSON lines and Parquet"),
    id_field: str = Opt("id", "--id-field", help="The field with the id, in JSON lines and Parquet"),
    fields: str | None = Opt(
        None, "--fields", help="Further fields to keep, separated by commas; by default all, with '' none"
    ),
    shard_size: int = Opt(1_000_000, "--shard-size", help="The characters of text in a file of the output"),
    skip_bad_rows: bool = Opt(False, "--skip-bad-rows", help="Leave out rows that have no text"),
    workers: int | None = Opt(
        None, "--workers", "-n", help="The number of processes on this machine; by default one per core", min=1
    ),
    engine: str = Opt("local", "--engine", "-e", help="local, or ray for a Ray cluster"),
    ray_address: str | None = Opt(
        None, "--ray-address", help="The address of a Ray cluster; by default RAY_ADDRESS, or else Ray on this machine"
    ),
    part: str = Opt("1/1", "--part", help="The part of the work to do, such as 3/100, for jobs of a batch system"),
    plan_only: bool = Opt(False, "--plan-only", help="Check the corpus and write the plan, and stop"),
    overwrite: bool = Opt(False, "--overwrite", "-f", help="Replace an existing embedding in the output directory"),
) -> None:
    """Embed a corpus: vectors as Parquet.

    Writes one vector for each document, sentence or token, to files that pyarrow, pandas, Polars and DuckDB read:

        python -m spacy elmo embed texts.jsonl vectors --unit sentence

    If the command is stopped, in whatever way, the same command finishes the work. Finished files are kept.
    """
    from ..embedding.embed import TooManyFailuresError, prepare, run
    from ..embedding.settings import EmbeddingSettings

    try:
        settings = EmbeddingSettings(
            unit=unit,  # type: ignore[arg-type]  # checked there
            layers=int(layers) if re.fullmatch(r"-?\d+", layers) else layers,
            dtype=dtype,  # type: ignore[arg-type]
            weights=weights,
            precision=precision,  # type: ignore[arg-type]
            pipeline=pipeline,
            lang=lang,
            segmenter=segmenter if tokenized or pipeline else choose_segmenter(weights, lang, segmenter),
            tokenized=tokenized,
            text=not no_text,
            text_field=text_field,
            id_field=id_field,
            fields=None if fields is None else tuple(name for name in fields.split(",") if name),
            shard_size=shard_size,
            skip_bad_rows=skip_bad_rows,
        )
        address = _check_engine(engine, ray_address, workers)
        with tqdm(unit="B", unit_scale=True, desc="Checking the corpus", disable=None, leave=False) as bar:
            embedding = prepare(
                corpus, output, settings, part=_parse_part(part), overwrite=overwrite, report=bar.update
            )
        _describe(embedding)
        if plan_only:
            return
        chosen = _choose_engine(engine, min(workers or _count_cores(), len(embedding.missing)), address)
        with _show_progress(embedding) as observe:
            failed = run(embedding, chosen, observe)
    except (ValueError, OSError, ImportError, TooManyFailuresError) as error:
        _fail("Could not embed the corpus", str(error))
    except KeyboardInterrupt:
        msg.warn("Stopped", "The same command finishes the work.", exits=130)
    if failed:
        reasons = "\n".join(f"{event.shard}: {event.reason}" for event in failed)
        _fail(
            f"{len(failed)} of {len(embedding.shards)} shards failed", f"{reasons}\nThe same command tries them again."
        )
    msg.good(f"{output} has all vectors" + ("" if part == "1/1" else f" of part {part}"))
    msg.text(f'Read them: pyarrow.dataset.dataset("{output}").to_table()')


def _fail(title: str, details: str) -> NoReturn:
    """Print an error whose details have several lines, which `msg.fail` would join."""
    msg.fail(title)
    for line in details.splitlines():
        msg.text(line)
    sys.exit(1)


def _parse_part(part: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d+)/(\d+)", part)
    if not found:
        raise ValueError(f"--part must be like 3/100, got {part!r}.")
    return int(found[1]), int(found[2])


def _count_cores() -> int:
    """RETURNS (int): The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _check_engine(name: str, ray_address: str | None, n_workers: int | None) -> str | None:
    """RETURNS (str | None): The address of a Ray cluster. An engine that is not there is better found at once."""
    from ..embedding.ray_tasks import find_cluster

    if name not in ENGINES:
        raise ValueError(f"--engine must be one of {', '.join(ENGINES)}, got {name!r}.")
    if name != "ray":
        if ray_address is not None:
            raise ValueError(
                f"--ray-address is for --engine ray, got --engine {name}. Add --engine ray, or leave out --ray-address."
            )
        return None
    address = find_cluster(ray_address)
    if address is not None and n_workers is not None:
        raise ValueError(f"The Ray cluster at {address} has its own number of processes. Leave out --workers.")
    return address


def _choose_engine(name: str, n_workers: int, ray_address: str | None) -> "Engine":
    from ..embedding.ray_tasks import embed_on_ray
    from ..embedding.workers import embed_here, embed_in_processes

    if name == "ray":
        return partial(embed_on_ray, address=ray_address, n_workers=n_workers)
    return embed_here if n_workers <= 1 else partial(embed_in_processes, n_workers=n_workers)


def _describe(embedding: "Embedding") -> None:
    plan, missing = embedding.plan, embedding.missing
    n_rows, n_chars = sum(shard.n_rows for shard in plan.shards), sum(shard.n_chars for shard in plan.shards)
    msg.info(f"Documents: {n_rows:,}, characters: {n_chars:,}, shards: {len(plan.shards):,}")
    if plan.n_bad_rows:
        msg.warn(f"Bad rows that are left out: {plan.n_bad_rows:,}")
        for row in plan.bad_rows:
            msg.text(row)
    if len(embedding.shards) < len(plan.shards):
        msg.text(f"Shards of this part: {len(embedding.shards):,}")
    if len(missing) < len(embedding.shards):
        msg.text(f"Finished already: {len(embedding.shards) - len(missing):,}")


@contextmanager
def _show_progress(embedding: "Embedding") -> Iterator["Observer"]:
    """Show a bar with tokens per second and the time that is left."""
    from ..embedding.events import Finished, Progressed

    sizes = {shard.name: shard.n_chars for shard in embedding.missing}
    reached: dict[str, tuple[int, int]] = {}  # for each shard that was begun: tokens and characters
    n_tokens, start = 0, time.monotonic()
    with tqdm(total=sum(sizes.values()), unit=" characters", unit_scale=True, desc="Embedding", disable=None) as bar:

        def observe(event: "Event") -> None:
            nonlocal n_tokens
            if isinstance(event, Progressed | Finished):
                n_chars = sizes[event.shard] if isinstance(event, Finished) else event.n_chars
                tokens_before, chars_before = reached.get(event.shard, (0, 0))  # fewer follow if a shard is tried again
                reached[event.shard] = event.n_tokens, n_chars
                n_tokens += event.n_tokens - tokens_before
                bar.set_postfix_str(f"{n_tokens / (time.monotonic() - start):,.0f} tokens/s", refresh=False)
                bar.update(n_chars - chars_before)

        yield observe
    if embedding.missing:
        seconds = time.monotonic() - start
        msg.text(f"{n_tokens:,} tokens in {seconds:,.1f} seconds, {n_tokens / seconds:,.0f} per second")
