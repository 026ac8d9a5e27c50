"""Measure tokens per second of `elmo`, and of AllenNLP's Elmo in the same run, with the sizes of the published models.

    python benchmarks/speed.py SENTENCES.txt
    python benchmarks/speed.py SENTENCES.txt --peer peer/bin/python --peer-module DIRECTORY

SENTENCES.txt has one tokenized sentence per line. The weights are random, because the speed does not depend on them.
`--peer` is the Python of a separate environment with AllenNLP. `--peer-module` is a directory with a module
`allennlp_elmo` that imports AllenNLP's `Elmo`, `BiLM` and `batch_to_ids`. Timings vary, so all take turns, and the table
has the medians of the rounds and of their ratios. The share of the peak compares the products of the LSTMs with a large
product in float32, measured in every round. The difference is the largest of any layer to AllenNLP's. The last table has the
time of one short sentence with the bundled model, as in bundled.py.
"""

import argparse
import json
import statistics
import subprocess
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy
import spacy
import torch
from bundled import make_ours, make_peer, print_row, time_single
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


def main() -> None:
    arguments = parse_arguments()
    sentences = [line.split() for line in arguments.sentences.read_text(encoding="utf8").splitlines() if line.strip()]
    print(f"{len(sentences)} sentences, {count(sentences)} tokens; torch {torch.__version__}, ", end="")
    print(f"{torch.get_num_threads()} threads; median of {arguments.rounds} rounds\n")
    print("| size | precision | | `elmo`, tokens/s | AllenNLP, batches of 32 | ratio | share of peak | difference |")
    print("|---|---|---|---|---|---|---|---|")
    for size in arguments.sizes:
        with tempfile.TemporaryDirectory() as directory:
            measure(size, sentences, Path(directory), arguments)
    print_latency(arguments.rounds)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sentences", type=Path, help="one tokenized sentence per line")
    parser.add_argument("--sizes", nargs="+", default=list(PUBLISHED), choices=list(PUBLISHED))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peer", type=Path, help="a Python that has AllenNLP")
    parser.add_argument("--peer-module", type=Path, help="the directory of the module allennlp_elmo")
    return parser.parse_args()


def measure(size: str, sentences: list[list[str]], directory: Path, arguments: argparse.Namespace) -> None:
    """Measure one size and print its rows of the table."""
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
        difference = f"{compare(nlp, sentences, directory / 'layers.npz'):.1e}" if peers else ""
        for name, label in (("batch", "batches"), ("single", "one sentence at a time")):
            found = [one[name] for one in ours[precision]]
            row = f"| {size} | {precision} | {label} | {statistics.median(found):,.0f} "
            if peers:
                ratio = statistics.median(one / peer[name] for one, peer in zip(found, peers, strict=True))
                row += f"| {statistics.median(peer[name] for peer in peers):,.0f} | {ratio:.1f}x "
            else:
                row += "| | "
            share = statistics.median(2 * work * one / peak for one, peak in zip(found, peaks, strict=True))
            print(f"{row}| {share:.0%} | {difference} |", flush=True)


def print_latency(n_rounds: int) -> None:
    """Measure one short sentence with the bundled model and its peer, and print them."""
    pipelines = [*(make_ours("en_elmo_sm", precision) for precision in ("float32", "int8")), make_peer()]
    singles = [[1000 * time_single(nlp) for nlp in pipelines] for _ in range(n_rounds)]
    print("\n| one short sentence | elmo, bundled model | HashEmbedCNN, 96 x 4 | ratio |")
    print("|---|---|---|---|")
    for i, precision in enumerate(("float32", "int8")):
        print_row(f"{precision}, milliseconds", singles, i, ".2f", "as long")


def make_pipeline(weights: Path, precision: str) -> Language:
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"weights": str(weights), "precision": precision})
    nlp(Doc(nlp.vocab, words=["Hello"]))  # reads the weights
    return nlp


def count_multiplications(config: BiLMConfig, sentences: list[list[str]]) -> int:
    """RETURNS (int): The multiplications of the LSTMs. Words are in the cache after the first round. The first layer
    multiplies its input once for each word type, and each direction reads one mark for each sentence."""
    n_types = len({word for sentence in sentences for word in sentence})
    n_tokens = count(sentences) + len(sentences)
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
