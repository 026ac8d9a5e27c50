"""Measure `spacy elmo embed`: its overhead over `nlp.pipe` in memory, processes compared with threads, and bytes written.

    python benchmarks/embedding.py TEXT.txt [--tokens 1000000] [--rounds 3] [--measure overhead workers units]

TEXT.txt has a paragraph of raw text per line, and may be gzipped. Timings vary, so both sides of a comparison take turns,
and the table has the medians of the rounds and of their ratios. The time to load a pipeline, and to start processes, is
left out; both are seconds, whatever the corpus.
"""

import argparse
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path

import numpy
import spacy
import torch
from spacy.language import Language

from spacy_elmo.corpora.files import open_corpus_file
from spacy_elmo.embedding.embed import Engine, prepare, run
from spacy_elmo.embedding.events import Event, Failed
from spacy_elmo.embedding.settings import EmbeddingSettings
from spacy_elmo.embedding.workers import embed_here, embed_in_processes

N_THREADS = 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=Path)
    parser.add_argument("--tokens", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--weights", help="a weights directory instead of the default weights")
    parser.add_argument("--measure", nargs="+", default=list(MEASUREMENTS), choices=list(MEASUREMENTS))
    arguments = parser.parse_args()
    texts, n_tokens = read_texts(arguments.text, arguments.tokens)
    print(f"{len(texts):,} documents, {n_tokens:,} tokens; torch {torch.__version__}; ", end="")
    print(f"medians of {arguments.rounds} rounds")
    with tempfile.TemporaryDirectory() as directory:
        work = Work(texts, n_tokens, Path(directory), arguments.weights)
        for name in arguments.measure:
            MEASUREMENTS[name](work, arguments.rounds)


class Work:
    """What every measurement embeds, and where."""

    def __init__(self, texts: list[str], n_tokens: int, directory: Path, weights: str | None) -> None:
        self.texts, self.n_tokens, self.weights = texts, n_tokens, weights
        self.corpus = directory / "corpus.txt"
        self.corpus.write_text("".join(f"{text}\n" for text in texts), encoding="utf8")
        self.outputs = (directory / f"out-{i}" for i in count())

    def make_pipeline(self) -> Language:
        """RETURNS (Language): A pipeline, with its weights read."""
        nlp = spacy.blank("en")
        nlp.add_pipe("sentencizer")
        nlp.add_pipe("elmo", config={"weights": self.weights, "keep_layers": False})
        nlp("This reads the weights.")
        return nlp

    def time_pipe(self, n_threads: int) -> float:
        """RETURNS (float): Tokens per second of `nlp.pipe`, with the mean of the vectors of every document in memory."""
        torch.set_num_threads(n_threads)
        nlp = self.make_pipeline()  # a new one, without cached words
        start = time.perf_counter()
        vectors = [doc.tensor[doc.to_array("IS_SPACE") == 0].mean(axis=0) for doc in nlp.pipe(self.texts)]
        seconds = time.perf_counter() - start
        assert numpy.stack(vectors).shape[0] == len(self.texts)
        return self.n_tokens / seconds

    def time_embed(self, engine: Engine, *, n_workers: int = 0, **settings: object) -> tuple[float, int]:
        """RETURNS (tuple[float, int]): Tokens per second of an embedding, and the bytes that it writes."""
        output = next(self.outputs)
        # So many shards that two processes end at about the same time.
        size = max(1, self.corpus.stat().st_size // 8) if n_workers else 1_000_000
        chosen = EmbeddingSettings(**{"weights": self.weights, "shard_size": size, **settings})  # type: ignore[arg-type]
        embedding = prepare(self.corpus, output, chosen)
        tokens: dict[str, int] = {}
        start, n_before = time.perf_counter(), 0

        def observe(event: Event) -> None:
            nonlocal start, n_before
            if not isinstance(event, Failed):
                if event.shard not in tokens and len(tokens) < n_workers:
                    # The time begins when all processes have started.
                    start, n_before = time.perf_counter(), sum(tokens.values()) + event.n_tokens
                tokens[event.shard] = event.n_tokens

        assert run(embedding, engine, observe) == []
        seconds = time.perf_counter() - start
        n_bytes = sum(path.stat().st_size for path in output.glob("*.parquet"))
        return (sum(tokens.values()) - n_before) / seconds, n_bytes


def read_texts(path: Path, n_tokens: int) -> tuple[list[str], int]:
    """RETURNS (tuple[list[str], int]): The first texts that have so many tokens, and their tokens."""
    texts, found, nlp = [], 0, spacy.blank("en")
    with open_corpus_file(path) as file:
        for text in iterate_texts(file.readline):
            texts.append(text)
            found += sum(not token.is_space for token in nlp.make_doc(text))
            if found >= n_tokens:
                break
    return texts, found


def iterate_texts(readline: Callable[[], bytes]) -> Iterator[str]:
    while line := readline():
        if text := line.decode().strip():
            yield text


def measure_overhead(work: Work, rounds: int) -> None:
    """One process with one thread, documents: `embed` and `nlp.pipe` in turns."""
    pairs = [(work.time_pipe(1), work.time_embed(embed_here)[0]) for _ in range(rounds)]
    print("\n| | tokens/s | overhead |\n|---|---|---|")
    print(f"| `nlp.pipe` in memory, one thread | {statistics.median(pipe for pipe, _ in pairs):,.0f} | |")
    overhead = statistics.median(pipe / embed - 1 for pipe, embed in pairs)
    print(f"| `embed`, one process | {statistics.median(embed for _, embed in pairs):,.0f} | {overhead:.1%} |")


def measure_workers(work: Work, rounds: int) -> None:
    """Two processes with one thread each, and one process with two threads, in turns."""
    engine = partial(embed_in_processes, n_workers=N_THREADS)
    pairs = [(work.time_pipe(N_THREADS), work.time_embed(engine, n_workers=N_THREADS)[0]) for _ in range(rounds)]
    print("\n| | tokens/s | ratio |\n|---|---|---|")
    print(f"| `nlp.pipe` in memory, {N_THREADS} threads | {statistics.median(pipe for pipe, _ in pairs):,.0f} | |")
    ratio = statistics.median(embed / pipe for pipe, embed in pairs)
    speed = statistics.median(embed for _, embed in pairs)
    print(f"| `embed --workers {N_THREADS}` | {speed:,.0f} | {ratio:.2f} |")


def measure_units(work: Work, rounds: int) -> None:
    """Tokens per second and bytes of each unit, one process."""
    print("\n| unit | tokens/s | bytes | bytes per token |\n|---|---|---|---|")
    for unit, dtype in (("document", "float32"), ("sentence", "float32"), ("token", "float32"), ("token", "float16")):
        found = [work.time_embed(embed_here, unit=unit, dtype=dtype) for _ in range(rounds)]
        speed, n_bytes = statistics.median(speed for speed, _ in found), found[0][1]
        print(f"| {unit}, {dtype} | {speed:,.0f} | {n_bytes:,} | {n_bytes / work.n_tokens:,.1f} |", flush=True)


MEASUREMENTS = {"overhead": measure_overhead, "workers": measure_workers, "units": measure_units}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
