"""Measure tokens per second of `elmo`, and of AllenNLP's Elmo in the same run, with the sizes of the published models.

    python benchmarks/published_sizes.py SENTENCES.txt
    python benchmarks/published_sizes.py SENTENCES.txt --peer peer/bin/python --peer-module DIRECTORY

SENTENCES.txt has one tokenized sentence per line. The weights are random, because the speed does not depend on them.
`--peer` is the Python of a separate environment with AllenNLP. `--peer-module` is a directory with a module
`allennlp_elmo` that imports AllenNLP's `Elmo`, `BiLM` and `batch_to_ids`. Timings vary, so all take turns, and the table
has the medians of the rounds and of their ratios. The share of the peak compares the products of the LSTMs with a large
product in float32, measured in every round. The difference is the largest of any layer to AllenNLP's.
"""

import argparse
import json
import statistics
import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy
import spacy
import torch
from spacy.language import Language
from spacy.tokens import Doc

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.bilm.products import Matrix, pack, write_product
from spacy_elmo.bilm.weights import save_weights
from spacy_elmo.formats import bilm_tf

PUBLISHED: dict[str, dict[str, int]] = {
    "small": {"cells": 1024, "projection": 128, "highways": 1},
    "medium": {"cells": 2048, "projection": 256, "highways": 1},
    "original": {"cells": 4096, "projection": 512, "highways": 2},
}
N_SINGLE = 60  # sentences to run one at a time
N_COMPARED = 30  # sentences to compare the vectors of


class Found(NamedTuple):
    """What was measured in one precision, in batches or one sentence at a time.

    label (str): The size, the precision and how the sentences ran.
    ours (float): Tokens per second.
    theirs, ratio (float | None): Those of AllenNLP in batches of 32, and how many times as fast `elmo` is.
    share (float): The share of the speed of a large product.
    difference (float | None): The largest difference of any layer to AllenNLP's.
    """

    label: tuple[str, str, str]
    ours: float
    theirs: float | None
    ratio: float | None
    share: float
    difference: float | None


def main() -> None:
    arguments = parse_arguments()
    sentences = read_sentences(arguments.sentences)
    print(f"{len(sentences)} sentences, {count(sentences)} tokens; torch {torch.__version__}, ", end="")
    print(f"{torch.get_num_threads()} threads; median of {arguments.rounds} rounds\n")
    print("| size | precision | | `elmo`, tokens/s | AllenNLP, batches of 32 | ratio | share of peak | difference |")
    print("|---|---|---|---|---|---|---|---|")
    for size in arguments.sizes:
        for found in measure(size, sentences, arguments):
            peer = " | | " if found.theirs is None else f" {found.theirs:,.0f} | {found.ratio:.1f}x | "
            print(f"| {' | '.join(found.label)} | {found.ours:,.0f} |{peer}{found.share:.0%} | ", end="")
            print("|" if found.difference is None else f"{found.difference:.1e} |", flush=True)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sentences", type=Path, help="one tokenized sentence per line")
    add_arguments(parser)
    parser.add_argument("--rounds", type=int, default=3)
    return parser.parse_args()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that only this comparison needs."""
    parser.add_argument("--sizes", nargs="+", default=list(PUBLISHED), choices=list(PUBLISHED))
    parser.add_argument("--peer", type=Path, help="a Python that has AllenNLP")
    parser.add_argument("--peer-module", type=Path, help="the directory of the module allennlp_elmo")


def read_sentences(path: Path) -> list[list[str]]:
    return [line.split() for line in path.read_text(encoding="utf8").splitlines() if line.strip()]


def measure(size: str, sentences: list[list[str]], arguments: argparse.Namespace) -> Iterator[Found]:
    """Measure one size. YIELDS (Found): The results of both precisions, in batches and one sentence at a time."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        bilm = make_bilm(**PUBLISHED[size])
        save_weights(bilm, directory / "weights")
        bilm_tf.write(bilm, directory / "published")
        pipelines = {precision: make_pipeline(directory / "weights", precision) for precision in ("float32", "int8")}
        ours: dict[str, list[dict[str, float]]] = {precision: [] for precision in pipelines}
        peers: list[dict[str, float]] = []
        peaks: list[float] = []
        for _ in range(arguments.rounds):
            for precision, nlp in pipelines.items():
                ours[precision].append(time_ours(nlp, sentences))
            peaks.append(measure_peak())
            if arguments.peer:
                peers.append(time_peer(directory / "published", sentences, directory / "layers.npz", arguments))
        work = count_multiplications(bilm.config, sentences) / count(sentences)
        for precision, nlp in pipelines.items():
            difference = compare(nlp, sentences, directory / "layers.npz") if peers else None
            for kind, label in (("batch", "batches"), ("single", "one sentence at a time")):
                found = [one[kind] for one in ours[precision]]
                theirs = [peer[kind] for peer in peers]
                yield Found(
                    label=(size, precision, label),
                    ours=statistics.median(found),
                    theirs=statistics.median(theirs) if peers else None,
                    ratio=statistics.median(one / other for one, other in zip(found, theirs, strict=True))
                    if peers
                    else None,
                    share=statistics.median(2 * work * one / peak for one, peak in zip(found, peaks, strict=True)),
                    difference=difference,
                )


def make_pipeline(weights: Path, precision: str) -> Language:
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"weights": str(weights), "precision": precision})
    nlp(Doc(nlp.vocab, words=["Hello"]))  # reads the weights
    return nlp


def count_multiplications(config: BiLMConfig, sentences: list[list[str]]) -> int:
    """RETURNS (int): The multiplications of the LSTMs. Words are in the cache after the first round. The first layer
    multiplies its input once for each word type."""
    n_types = len({word for sentence in sentences for word in sentence})
    n_tokens = count(sentences)
    gates, projection = 4 * config.cells * config.projection, config.cells * config.projection
    return 2 * (
        n_types * gates + (config.depth - 1) * n_tokens * gates + config.depth * n_tokens * (gates + projection)
    )


def measure_peak(width: int = 2048) -> float:
    """RETURNS (float): Operations per second of large products in float32 on this machine."""
    matrix, x_NK, out_NM = Matrix(pack(torch.randn(width, width))), torch.randn(width, width), torch.empty(width, width)
    seconds = []
    for _ in range(6):  # the first one prepares itself
        start = time.perf_counter()
        write_product(out_NM, x_NK, matrix)
        seconds.append(time.perf_counter() - start)
    return 2 * width**3 / min(seconds)


def make_bilm(cells: int, projection: int, highways: int) -> BiLM:
    config = BiLMConfig(
        char_dim=16,
        filters=((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024)),
        highways=highways,
        activation="relu",
        max_chars=50,
        projection=projection,
        cells=cells,
        depth=2,
        cell_clip=3.0,
        projection_clip=3.0,
        skip_connections=True,
    )
    return BiLM(config).initialize(0)


def time_ours(nlp: Language, sentences: list[list[str]]) -> dict[str, float]:
    """RETURNS (dict): Tokens per second, in batches and one sentence at a time."""
    docs = [Doc(nlp.vocab, words=words) for words in sentences]
    start = time.perf_counter()
    for _ in nlp.pipe(docs):
        pass
    batch = count(sentences) / (time.perf_counter() - start)
    docs = [Doc(nlp.vocab, words=words) for words in sentences[:N_SINGLE]]
    start = time.perf_counter()
    for doc in docs:
        nlp(doc)
    return {"batch": batch, "single": count(sentences[:N_SINGLE]) / (time.perf_counter() - start)}


def time_peer(
    published: Path, sentences: list[list[str]], layers: Path, arguments: argparse.Namespace
) -> dict[str, float]:
    """RETURNS (dict): The same for AllenNLP, which also writes the layers of some sentences to a file."""
    job: dict[str, Any] = {"published": str(published), "sentences": sentences, "layers": str(layers)}
    job |= {"n_single": N_SINGLE, "n_compared": N_COMPARED, "module": str(arguments.peer_module)}
    command = [str(arguments.peer), str(Path(__file__).parent / "allennlp_peer.py")]
    result = subprocess.run(command, input=json.dumps(job), capture_output=True, text=True, check=False)
    if result.returncode:
        raise RuntimeError(f"The peer failed:\n{result.stderr[-2000:]}")
    speeds: dict[str, float] = json.loads(result.stdout.splitlines()[-1])
    return speeds


def compare(nlp: Language, sentences: list[list[str]], layers: Path) -> float:
    """RETURNS (float): The largest difference to the peer's layers."""
    docs = nlp.pipe(Doc(nlp.vocab, words=words) for words in sentences[:N_COMPARED])
    with numpy.load(layers) as peer:
        return max(float(numpy.abs(doc._.elmo_layers - peer[str(i)]).max()) for i, doc in enumerate(docs))


def count(sentences: list[list[str]]) -> int:
    return sum(map(len, sentences))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
