"""Runs embeddings that are killed at every point where they touch the disk, and then run again.

    python crashes.py CORPUS OUTPUTS WEIGHTS

Starting Python takes longer than such a run, so each of them is a fork. It is a script of its own: a process that tests
run in may have threads, and should not fork.
"""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet

from spacy_elmo.embedding.embed import prepare, run
from spacy_elmo.embedding.model import load_embedder
from spacy_elmo.embedding.settings import EmbeddingSettings
from spacy_elmo.embedding.workers import embed_here


class Killer:
    """Kills this process before or after its n-th operation on the disk."""

    def __init__(self, point: int) -> None:
        self.left = point
        for owner, name in (
            (os, "open"),
            (os, "fsync"),
            (os, "replace"),
            (os, "unlink"),
            (pyarrow.parquet.ParquetWriter, "write_batch"),
            (pyarrow.parquet.ParquetWriter, "close"),
        ):
            setattr(owner, name, self.wrap(getattr(owner, name)))

    def wrap(self, operation: Callable[..., Any]) -> Callable[..., Any]:
        def operate(*args: Any, **kwargs: Any) -> Any:
            self.count()
            result = operation(*args, **kwargs)
            self.count()
            return result

        return operate

    def count(self) -> None:
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def embed_in_fork(corpus: Path, output: Path, settings: EmbeddingSettings, *, point: int = 0) -> bool:
    """RETURNS (bool): Whether the embedding ended by itself."""
    child = os.fork()
    if child == 0:
        failed: list[Any] = [None]
        try:
            Killer(point)
            failed = list(run(prepare(corpus, output, settings), embed_here, lambda event: None))
        finally:
            os._exit(len(failed))
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, -signal.SIGKILL), code
    return code == 0


def main() -> None:
    corpus, outputs = Path(sys.argv[1]), Path(sys.argv[2])
    settings = EmbeddingSettings(weights=sys.argv[3], shard_size=1100).with_absolute_paths()
    load_embedder(settings)
    point = 1
    while not embed_in_fork(corpus, outputs / f"killed-at-{point:03}", settings, point=point):
        assert embed_in_fork(corpus, outputs / f"killed-at-{point:03}", settings)
        point += 1
    n_kills = 0
    while not embed_in_fork(corpus, outputs / "killed-often", settings, point=20):
        n_kills += 1
    sys.stdout.write(f"{point - 1} {n_kills}\n")


if __name__ == "__main__":
    main()
