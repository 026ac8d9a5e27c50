"""Runs embeddings that are killed at every point where they touch the disk, and then run again.

    python -m tests.embedding.crashes CORPUS OUTPUTS WEIGHTS

Starting Python takes longer than such a run, so each of them is a fork. It is a script of its own: a process that tests
run in may have threads, and should not fork.
"""

import os
import sys
from pathlib import Path

import pyarrow.parquet

from spacy_elmo.embedding.embed import prepare, run
from spacy_elmo.embedding.model import load_embedder
from spacy_elmo.embedding.settings import EmbeddingSettings
from spacy_elmo.embedding.workers import embed_here

from ..faults import Fault, run_in_fork

OPERATIONS = [
    *((os, name) for name in ("open", "fsync", "replace", "unlink")),
    *((pyarrow.parquet.ParquetWriter, name) for name in ("write_batch", "close")),
]


def embed_in_fork(corpus: Path, output: Path, settings: EmbeddingSettings, *, point: int = 0) -> bool:
    """RETURNS (bool): Whether the embedding ended by itself."""

    def embed() -> None:
        assert not list(run(prepare(corpus, output, settings), embed_here, lambda event: None))

    outcome = run_in_fork(embed, Fault("kill", point), OPERATIONS)
    assert outcome in ("killed", "done", "not reached"), outcome
    return outcome != "killed"


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
