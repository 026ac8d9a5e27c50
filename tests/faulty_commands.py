"""Runs commands on disks that fail, kills them, and runs them again.

    python -m tests.faulty_commands COMMAND DIRECTORY [EVERY]

A command replaces an old output by a new one. After a fault, its output is the old one or the new one. After it has run
again, its output is the new one, and nothing else is left. EVERY is the distance of the operations that fail; 1 for all.
"""

import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import spacy
import torch
from spacy.tokens import Doc, DocBin

from scripts.bundle_model import bundle_model
from spacy_elmo.bilm.weights import save_weights
from spacy_elmo.cli.convert import convert
from spacy_elmo.experiments.comparison import compare_trial_sets, write_comparison
from spacy_elmo.experiments.trial_set import read_trial_sets
from spacy_elmo.pretraining.checkpoint import Checkpoint
from spacy_elmo.pretraining.model_files import load_language_model
from spacy_elmo.pretraining.output import BEST, CHECKPOINT, LAST
from spacy_elmo.pretraining.pretrain import pretrain

from .experiments.tagger import TAGGER_CONFIG, make_trials, run_all
from .experiments.written_trials import write_trials
from .faults import Fault, Kind, run_in_fork
from .helpers import make_elmo_nlp, random_bilm
from .pretraining.runs import TINY, make_overrides, read_metrics, read_tensors
from .scripts.test_bundle_model import save_model

BYTES = [0, 1, 10, 100, 1000, 3000, 10_000]

Run = Callable[[Path], object]
Describe = Callable[[Path], Any]


@dataclass(frozen=True)
class Command:
    """A command and its outputs.

    old, new (Run): Write the old and the new output to a directory.
    describe (Describe): Says what is in that directory; whatever is not ours or depends on time is left out.
    check (Run | None): Checks a directory after a fault, for commands that write more than one thing.
    """

    old: Run
    new: Run
    describe: Describe
    check: Run | None = None


def read_files(directory: Path) -> dict[str, bytes]:
    """Read all files but drafts."""
    files = (path for path in directory.rglob("*") if path.is_file())
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in files
        if not any(part.startswith(".") for part in path.relative_to(directory).parts)
    }


def find_drafts(directory: Path) -> list[str]:
    return [str(path) for path in directory.rglob(".*") if path.name != ".lock"]


def make_convert(inputs: Path, target: str) -> Command:
    for seed in (1, 2):
        save_weights(random_bilm(seed), inputs / str(seed))
    old, new = (lambda output, seed=seed: convert([inputs / str(seed)], output / "out", to=target) for seed in (1, 2))
    return Command(old, new, read_files)


def make_bundle(inputs: Path) -> Command:
    for seed in (1, 2):
        save_model(inputs / str(seed), seed)

    def old(output: Path) -> None:
        bundle_model(inputs / "1", output / "out")
        (output / "out" / "README.md").write_text("a card", encoding="utf8")

    return Command(old, lambda output: bundle_model(inputs / "2", output / "out"), read_files)


def make_compare(inputs: Path) -> Command:
    sets = [write_trials(inputs / name, {100.0: [score]}) for name, score in (("a", 0.5), ("b", 0.6), ("c", 0.7))]
    old, new = (
        lambda output, pair=pair: write_comparison(compare_trial_sets(read_trial_sets(pair)), output / "out")
        for pair in (sets[:2], sets[1:])
    )
    return Command(old, new, read_files)


def make_to_disk(inputs: Path) -> Command:
    pipelines = []
    for seed in (1, 2):
        save_weights(random_bilm(seed), inputs / str(seed))
        pipelines.append(make_elmo_nlp(str(inputs / str(seed))))
        pipelines[-1]("a")
    # spaCy writes the other files of a pipeline, in place.
    old, new = (lambda output, nlp=nlp: nlp.get_pipe("elmo").to_disk(output, exclude=["vocab"]) for nlp in pipelines)
    return Command(old, new, read_files)


def make_pretrain(inputs: Path) -> Command:
    overrides = make_overrides(inputs)

    def run(output: Path) -> None:
        has_checkpoint = (output / CHECKPOINT).exists()
        pretrain(TINY, output, overrides=overrides, resume=has_checkpoint, overwrite=not has_checkpoint)

    def check(output: Path) -> None:
        if (output / CHECKPOINT).exists():
            Checkpoint.from_disk(output / CHECKPOINT)
        for name in (BEST, LAST):
            if (output / name).exists():
                load_language_model(output / name)

    def describe(output: Path) -> Any:
        if not (output / "scores.json").exists():
            return None
        tensors = {name: {key: t.tolist() for key, t in read_tensors(output / name).items()} for name in (BEST, LAST)}
        return tensors, read_metrics(output)

    return Command(lambda output: output.mkdir(parents=True, exist_ok=True), run, describe, check)


def make_trials_of_a_tagger(inputs: Path) -> Command:
    nlp = spacy.blank("xx")
    (inputs / "tagger.cfg").write_text(TAGGER_CONFIG, encoding="utf8")
    for part in ("train", "dev", "test"):
        docs = [Doc(nlp.vocab, words=["the", "cat", "sees"], tags=["DET", "NOUN", "VERB"]) for _ in range(4)]
        DocBin(docs=docs).to_disk(inputs / f"{part}.spacy")

    def describe(output: Path) -> Any:
        metrics = [path.relative_to(output) for path in output.rglob("metrics.json")]
        return sorted(map(str, metrics)), {
            name: data for name, data in read_files(output).items() if name.endswith((".spacy", "labels/tagger.json"))
        }

    return Command(
        lambda output: output.mkdir(parents=True, exist_ok=True),
        lambda output: run_all(make_trials(inputs, fractions=[50.0, 100.0], output=output)),
        describe,
        read_trial_sets_if_any,
    )


def read_trial_sets_if_any(output: Path) -> None:
    if list(output.rglob("metrics.json")):
        read_trial_sets([output, output.parent / "expected"])


COMMANDS: dict[str, Callable[[Path], Command]] = {
    "convert": lambda inputs: make_convert(inputs, "spacy-elmo"),
    "convert-to-bilm-tf": lambda inputs: make_convert(inputs, "bilm-tf"),
    "bundle_model": make_bundle,
    "compare": make_compare,
    "to_disk": make_to_disk,
    "pretrain": make_pretrain,
    "trials": make_trials_of_a_tagger,
}


def faults(kind: Kind, every: int) -> Iterator[Fault]:
    if kind in ("full", "killed while writing"):
        yield from (Fault(kind, n_bytes) for n_bytes in BYTES)
    else:
        yield from (Fault(kind, point) for point in count(1, every))


def main() -> None:
    name, directory, every = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 1
    torch.set_num_threads(1)
    (directory / "inputs").mkdir(parents=True)
    command = COMMANDS[name](directory / "inputs")
    template, expected = directory / "old", directory / "expected"
    assert run_in_fork(lambda: (command.old(template), command.old(expected), command.new(expected)), None) == "done"
    old, new = command.describe(template), command.describe(expected)
    assert old != new
    outcomes: Counter[str] = Counter()
    for kind in ("kill", "ENOSPC", "EIO", "full", "killed while writing"):
        for fault in faults(kind, every):
            output = directory / "output"
            shutil.copytree(template, output)
            outcome = run_in_fork(partial(command.new, output), fault)
            if command.check is None:
                assert command.describe(output) in (old, new), fault
            elif run_in_fork(partial(command.check, output), None) != "done":
                raise AssertionError(fault)
            assert run_in_fork(partial(command.new, output), None) == "done", fault
            assert command.describe(output) == new, fault
            assert not find_drafts(output), (fault, find_drafts(output))
            shutil.rmtree(output)
            if outcome == "not reached":
                break
            outcomes[f"{kind}: {outcome}"] += 1
    sys.stdout.write(f"{name}: {outcomes.total()} faults, {dict(outcomes)}\n")


if __name__ == "__main__":
    main()
