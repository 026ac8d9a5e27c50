"""Embedding a corpus: resumed, in parts, refused where something differs."""

import os
import re
import resource
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from spacy_elmo.bilm.weights import save_weights
from spacy_elmo.embedding import workers
from spacy_elmo.embedding.embed import MAX_FAILED, TooManyFailuresError, prepare, run
from spacy_elmo.embedding.events import Event, Failed, Finished
from spacy_elmo.embedding.plan import PLAN_FILE, Shard
from spacy_elmo.embedding.settings import EmbeddingSettings
from spacy_elmo.embedding.shard import Job, embed_shard
from spacy_elmo.embedding.workers import embed_here

from ..helpers import random_bilm
from .corpora import TEXTS, embed, read_bytes, read_table, write_lines


@pytest.fixture
def settings(weights: str) -> dict[str, Any]:
    return {"weights": weights, "shard_size": 300}


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "corpus" / "a.txt", *TEXTS).parent


@pytest.fixture
def complete(corpus: Path, settings: dict[str, Any], tmp_path: Path) -> dict[str, bytes]:
    embed(corpus, tmp_path / "complete", **settings)
    return read_bytes(tmp_path / "complete")


def stop_after(n_shards: int) -> Any:
    def engine(job: Job, shards: Sequence[Shard], observe: Any) -> None:
        embed_here(job, shards[:n_shards], observe)
        raise KeyboardInterrupt

    return engine


def test_stopped_embedding_is_finished(
    corpus: Path, settings: dict[str, Any], complete: dict[str, bytes], tmp_path: Path
) -> None:
    embedding = prepare(corpus, tmp_path / "out", EmbeddingSettings(**settings))
    with pytest.raises(KeyboardInterrupt):
        run(embedding, stop_after(2), lambda event: None)
    times = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "out").iterdir()}
    assert len(times) == 3
    rest = prepare(corpus, tmp_path / "out", EmbeddingSettings(**settings))
    assert rest.missing == embedding.missing[2:]
    events: list[Event] = []
    assert run(rest, embed_here, events.append) == []
    assert [event.shard for event in events if isinstance(event, Finished)] == [shard.name for shard in rest.missing]
    assert read_bytes(tmp_path / "out") == complete
    assert {name: (tmp_path / "out" / name).stat().st_mtime_ns for name in times} == times
    assert read_table(tmp_path / "out")["id"].to_pylist() == [f"a.txt:{i + 1}" for i in range(30)]


def test_damaged_shard_is_written_again(
    corpus: Path, settings: dict[str, Any], complete: dict[str, bytes], tmp_path: Path
) -> None:
    path = tmp_path / "complete" / "shard-000001.parquet"
    path.write_bytes(path.read_bytes()[:-10])
    embed(corpus, tmp_path / "complete", **settings)
    assert read_bytes(tmp_path / "complete") == complete


def test_parts_together_are_the_whole(
    corpus: Path, settings: dict[str, Any], complete: dict[str, bytes], tmp_path: Path
) -> None:
    for number in (3, 1, 2):
        part = prepare(corpus, tmp_path / "out", EmbeddingSettings(**settings), part=(number, 3))
        assert run(part, embed_here, lambda event: None) == []

    assert read_bytes(tmp_path / "out") == complete


def test_parts_that_start_together_use_one_plan(
    corpus: Path,
    settings: dict[str, Any],
    complete: dict[str, bytes],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    output = tmp_path / "out"
    output.mkdir()
    list_directory = Path.iterdir

    def list_after_another_job(path: Path) -> Iterator[Path]:
        if path == output:
            (output / PLAN_FILE).write_bytes(complete[PLAN_FILE])
        return list_directory(path)

    monkeypatch.setattr(Path, "iterdir", list_after_another_job)
    embedding = prepare(corpus, output, EmbeddingSettings(**settings), part=(2, 3))
    assert [shard.name for shard in embedding.missing] == [f"shard-00000{i}.parquet" for i in (1, 4, 7)]
    assert read_bytes(output) == {PLAN_FILE: complete[PLAN_FILE]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"unit": "token"}, "unit was 'document' and is 'token'"),
        ({"dtype": "float16", "layers": 1}, "layers was 'mix' and is 1; dtype was 'float32' and is 'float16'"),
        ({"weights": None}, "the content of the weights differs"),
    ],
)
@pytest.mark.usefixtures("complete")
def test_other_settings_are_refused(
    corpus: Path, settings: dict[str, Any], tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=f"complete was begun with something else: {message}. Use what it was begun"):
        embed(corpus, tmp_path / "complete", **{**settings, **change})


def test_other_input_is_refused(
    corpus: Path, settings: dict[str, Any], complete: dict[str, bytes], tmp_path: Path
) -> None:
    output = tmp_path / "complete"
    write_lines(corpus / "b.txt", "A new file.")
    with pytest.raises(ValueError, match="b.txt is new"):
        embed(corpus, output, **settings)
    (corpus / "b.txt").unlink()
    write_lines(corpus / "a.txt", *TEXTS[1:])
    with pytest.raises(ValueError, match="a.txt had 2,035 bytes and has 1,982"):
        embed(corpus, output, **settings)
    write_lines(corpus / "a.txt", *TEXTS[:-1], TEXTS[-1].replace("Ada", "Bob"))
    with pytest.raises(ValueError, match="the content of a.txt differs"):
        embed(corpus, output, **settings)
    write_lines(corpus / "a.txt", *TEXTS)
    os.utime(corpus / "a.txt", ns=(1, 1))  # as after a copy
    embed(corpus, output, **settings)
    assert read_bytes(output) == complete
    (corpus / "a.txt").rename(corpus / "c.txt")
    with pytest.raises(ValueError, match="a.txt is missing; c.txt is new"):
        embed(corpus, output, **settings)


def test_overwrite(corpus: Path, settings: dict[str, Any], complete: dict[str, bytes], tmp_path: Path) -> None:
    write_lines(corpus / "a.txt", *TEXTS[:3])
    output = tmp_path / "complete"
    embedding = prepare(corpus, output, EmbeddingSettings(**settings), overwrite=True)
    assert {path.name for path in output.iterdir()} == {PLAN_FILE}
    run(embedding, embed_here, lambda event: None)
    assert read_table(output).num_rows == 3
    with pytest.raises(ValueError, match="--overwrite would remove what other parts have written"):
        prepare(corpus, output, EmbeddingSettings(**settings), overwrite=True, part=(1, 2))


def test_overwrite_keeps_files_that_embed_has_not_written(
    corpus: Path, settings: dict[str, Any], complete: dict[str, bytes], tmp_path: Path
) -> None:
    output = tmp_path / "complete"
    (output / "shard-merged.parquet").write_bytes(b"mine")
    prepare(corpus, output, EmbeddingSettings(**settings), overwrite=True)
    assert {path.name for path in output.iterdir()} == {PLAN_FILE, "shard-merged.parquet"}
    assert (output / "shard-merged.parquet").read_bytes() == b"mine"


def test_overwrite_where_nothing_is(corpus: Path, settings: dict[str, Any], tmp_path: Path) -> None:
    embedding = prepare(corpus, tmp_path / "out", EmbeddingSettings(**settings), overwrite=True)
    assert embedding.missing == embedding.shards
    assert {path.name for path in (tmp_path / "out").iterdir()} == {PLAN_FILE}


def test_overwrite_keeps_the_old_vectors_if_the_new_ones_are_refused(
    corpus: Path, settings: dict[str, Any], complete: dict[str, bytes], tmp_path: Path
) -> None:
    output = tmp_path / "complete"
    with pytest.raises((ValueError, OSError), match="nowhere"):
        prepare(corpus, output, EmbeddingSettings(**{**settings, "weights": "nowhere"}), overwrite=True)
    write_lines(corpus / "b.jsonl", {"txt": "no text"})
    with pytest.raises(ValueError, match="b.jsonl, line 1: expected a text as 'text', it has 'txt'"):
        prepare(corpus, output, EmbeddingSettings(**settings), overwrite=True)
    assert read_bytes(output) == complete


def test_directories_that_are_refused(corpus: Path, settings: dict[str, Any], tmp_path: Path) -> None:
    write_lines(tmp_path / "other" / "notes.txt", "Mine.")
    for output, message in [
        (tmp_path / "other", "other has other files in it, such as 'notes.txt'"),
        (tmp_path / "other" / "notes.txt", "notes.txt is a file; a directory is to be written there"),
        (corpus / "vectors", "is inside of the corpus"),
    ]:
        for overwrite in (False, True):
            with pytest.raises(ValueError, match=message):
                prepare(corpus, output, EmbeddingSettings(**settings), overwrite=overwrite)
    with pytest.raises(ValueError, match="part must be from 1/3 to 3/3, got 4/3"):
        prepare(corpus, tmp_path / "out", EmbeddingSettings(**settings), part=(4, 3))
    write_lines(tmp_path / "nothing" / "a.pdf", "PDF")
    with pytest.raises(ValueError, match="has no file that ends in .txt, .jsonl, .spacy, .parquet"):
        prepare(tmp_path / "nothing", tmp_path / "out", EmbeddingSettings(**settings))
    assert not (tmp_path / "out").exists()


def test_failed_shards_are_tried_again_and_named(
    corpus: Path,
    settings: dict[str, Any],
    complete: dict[str, bytes],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    attempts: list[str] = []

    def fail_sometimes(job: Job, shard: Shard, report: Any) -> int:
        attempts.append(shard.name)
        if shard.name == "shard-000001.parquet" or attempts.count(shard.name) < 2:
            raise OSError("no space")
        return embed_shard(job, shard, report)

    monkeypatch.setattr(workers, "embed_shard", fail_sometimes)
    embedding = prepare(corpus, tmp_path / "out", EmbeddingSettings(**settings))
    assert run(embedding, embed_here, lambda event: None) == [Failed("shard-000001.parquet", "no space")]
    assert [attempts.count(shard.name) for shard in embedding.shards][:3] == [2, 3, 2]
    assert {*complete} - {*read_bytes(tmp_path / "out")} == {"shard-000001.parquet"}


def test_full_disk(corpus: Path, settings: dict[str, Any], complete: dict[str, bytes], tmp_path: Path) -> None:
    embedding = prepare(corpus, tmp_path / "out", EmbeddingSettings(**settings))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))  # a file that is longer cannot be written
    try:
        failed = run(embedding, embed_here, lambda event: None)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert len(failed) == len(complete) - 1
    assert re.search("shard-000000.parquet could not be written: .* Is the disk full", failed[0].reason)
    assert {path.name for path in (tmp_path / "out").iterdir()} == {PLAN_FILE}
    embed(corpus, tmp_path / "out", **settings)
    assert read_bytes(tmp_path / "out") == complete


def test_many_failures_end_the_run(corpus: Path, settings: dict[str, Any], tmp_path: Path) -> None:
    embedding = prepare(corpus, tmp_path / "out", EmbeddingSettings(**{**settings, "shard_size": 10}))
    write_lines(corpus / "a.txt", *TEXTS[1:], TEXTS[0])
    with pytest.raises(
        TooManyFailuresError, match=f"{MAX_FAILED} shards failed, so the others were not tried.*a.txt changed"
    ):
        run(embedding, embed_here, lambda event: None)
    assert {path.name for path in (tmp_path / "out").iterdir()} == {PLAN_FILE}


def test_worker_with_other_weights_refuses(corpus: Path, settings: dict[str, Any], tmp_path: Path) -> None:
    embedding = prepare(corpus, tmp_path / "out", EmbeddingSettings(**settings))
    save_weights(random_bilm(5), tmp_path / "other")
    other = prepare(
        corpus, tmp_path / "other-out", EmbeddingSettings(**{**settings, "weights": str(tmp_path / "other")})
    )
    job = Job(**{**vars(embedding.job), "settings": other.job.settings})
    with pytest.raises(ValueError, match="made with other versions or files of: weights. All machines need the same"):
        embed_shard(job, embedding.missing[0])
