"""A pretraining run: it learns, it goes on exactly where it was stopped, and it says what is wrong."""

import errno
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path
from typing import Any

import numpy
import pytest
import safetensors.torch
import spacy
import torch
from spacy.util import registry

from spacy_elmo.bilm.weights import load_weights, save_weights
from spacy_elmo.pretraining import checkpoint as checkpoint_module
from spacy_elmo.pretraining.model_files import load_language_model
from spacy_elmo.pretraining.perplexity import measure_likelihood
from spacy_elmo.pretraining.pretrain import pretrain
from spacy_elmo.pretraining.run import Run
from spacy_elmo.pretraining.streams import Streams
from spacy_elmo.pretraining.vocabulary import Vocabulary, count_words

from ..helpers import SIZES, random_bilm

CONFIG = Path(__file__).parents[2] / "configs" / "pretrain_tiny.cfg"
FINETUNE = CONFIG.with_name("finetune.cfg")
STEPS = 8
GOING_ON = {"bilm_training.logger": {"@loggers": "spacy_elmo.ConsoleLogger.v1", "progress_bar": False}}


def make_text(path: Path, n_sentences: int, seed: int) -> Path:
    """Write sentences in which a word says much about the next one."""
    choose = random.Random(seed).choice
    lines = []
    for _ in range(n_sentences):
        who, what = choose(["the cat", "the dog", "a bird"]), choose(["sees", "eats", "likes"])
        lines.append(
            f"{who} {what} {choose(['a fish', 'the mouse', 'an apple', 'us'])} {choose(['today .', 'now .', '.'])}"
        )
    path.write_text("\n".join(lines) + "\n", encoding="utf8")
    return path


@pytest.fixture
def overrides(tmp_path: Path) -> dict[str, Any]:
    """The values of a run that takes a second."""
    return {
        "paths.train": str(make_text(tmp_path / "train.txt", 120, seed=0)),
        "paths.dev": str(make_text(tmp_path / "dev.txt", 30, seed=1)),
        "corpus.lang": None,
        **{f"bilm.{name}": value for name, value in SIZES.items()},
        "bilm_training.max_steps": STEPS,
        "bilm_training.batch_size": 4,
        "bilm_training.unroll": 5,
        "bilm_training.log_frequency": 1,
        "bilm_training.eval_frequency": 3,
        "bilm_training.logger.progress_bar": False,
    }


def read_tensors(directory: Path) -> dict[str, Any]:
    """Read all tensors in the files of a directory."""
    return {
        f"{path.name}:{name}": tensor
        for path in sorted(directory.glob("*.safetensors"))
        for name, tensor in safetensors.torch.load_file(path).items()
    }


def assert_same_weights(directory: Path, other: Path) -> None:
    ours, theirs = read_tensors(directory), read_tensors(other)
    assert ours.keys() == theirs.keys()
    for name in ours:
        assert torch.equal(ours[name], theirs[name]), name


def read_metrics(output: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (output / "metrics.jsonl").read_text(encoding="utf8").splitlines()]
    return [
        {name: value for name, value in line.items() if name not in ("seconds", "words_per_second")} for line in lines
    ]


def stop_after(step: int) -> Any:
    """Register a logger that ends the run, as a Ctrl+C would, after a step."""

    @registry.loggers("spacy_elmo_tests.Stop.v1")
    def configure() -> Any:
        def setup(nlp: Any, stdout: Any, stderr: Any) -> Any:
            done = nlp.config["training"]["first_step"]

            def log_step(info: Any) -> None:
                nonlocal done
                done += 1
                if done == step:
                    raise KeyboardInterrupt

            return log_step, lambda: None

        return setup

    return configure


# --- learning ---


def test_a_model_learns_to_predict(tmp_path: Path, overrides: dict[str, Any]) -> None:
    learning = {"max_steps": 300, "eval_frequency": 100, "dropout": 0.0, "optimizer.learn_rate": 0.02}
    learning = {f"bilm_training.{name}": value for name, value in learning.items()}
    larger = {"bilm.projection": 16, "bilm.cells": 32, "bilm.cell_clip": 3.0, "bilm.projection_clip": 3.0}
    result = pretrain(CONFIG, tmp_path / "out", overrides={**overrides, **learning, **larger})
    scores = result.likelihood.perplexities
    # What can be known: who (3), what (3), whom (4) and how it ends (3), and nothing else, over 7 to 9 predictions.
    assert scores["forward"] < 2.2
    assert scores["backward"] < 2.2
    assert scores["unigram"] > 10
    metrics = [line for line in read_metrics(tmp_path / "out") if "perplexity" in line]
    assert [line["step"] for line in metrics] == [100, 200, 300]
    assert metrics[-1]["perplexity"] < metrics[0]["perplexity"]
    written = json.loads((tmp_path / "out" / "scores.json").read_text())
    assert written["perplexity_mean"] == pytest.approx(scores["mean"])
    assert written["n_unknown"] == 0
    assert "<svg" in (tmp_path / "out" / "learning-curve.svg").read_text()


def test_the_result_gives_vectors_and_perplexity(tmp_path: Path, overrides: dict[str, Any]) -> None:
    result = pretrain(CONFIG, tmp_path / "out", overrides=overrides)
    for name in ("model-best", "model-last"):
        model, vocabulary = load_language_model(tmp_path / "out" / name)
        dev = [line.split() for line in Path(overrides["paths.dev"]).read_text().splitlines()]
        found = measure_likelihood(model, vocabulary, dev).perplexities
        if name == "model-best":
            assert found == pytest.approx(result.likelihood.perplexities)
        else:
            assert found["mean"] >= result.likelihood.perplexities["mean"]
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"weights": str(tmp_path / "out" / "model-best")})
    assert nlp("the cat sees us .").tensor.shape == (5, 2 * SIZES["projection"])


def test_the_number_of_steps_follows_from_the_corpus(tmp_path: Path, overrides: dict[str, Any]) -> None:
    changes = {"bilm_training.max_steps": 0, "bilm_training.epochs": 2, "bilm_training.eval_frequency": 1000}
    pretrain(CONFIG, tmp_path / "out", overrides={**overrides, **changes})
    lines = Path(overrides["paths.train"]).read_text().splitlines()
    n_tokens = sum(len(line.split()) + 1 for line in lines)
    last = read_metrics(tmp_path / "out")[-1]
    assert last["step"] == -(-2 * n_tokens // (4 * 5))
    assert last["epoch"] == pytest.approx(2, abs=0.05)
    # Read twice, to within what the rows have read more or less of.
    assert last["words"] == pytest.approx(2 * (n_tokens - len(lines)), rel=0.05)


def test_the_best_model_is_kept(tmp_path: Path, overrides: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    weights, perplexities = [], iter([30.0, 10.0, 20.0])

    def evaluate(run: Run) -> dict[str, Any]:
        weights.append(run.model.softmax.weight.detach().clone())
        perplexity = next(perplexities)
        return {f"perplexity{kind}": perplexity for kind in ("", "_forward", "_backward", "_unigram")}

    monkeypatch.setattr(Run, "evaluate", evaluate)
    pretrain(CONFIG, tmp_path / "out", overrides=overrides)
    (best, _), (last, _) = (load_language_model(tmp_path / "out" / name) for name in ("model-best", "model-last"))
    assert torch.equal(best.softmax.weight, weights[1])
    assert torch.equal(last.softmax.weight, weights[2])
    assert not torch.equal(weights[1], weights[2])


def test_carried_state_gives_an_initial_state(tmp_path: Path, overrides: dict[str, Any]) -> None:
    for carry_state in (True, False):
        output = tmp_path / f"carry-{carry_state}"
        pretrain(CONFIG, output, overrides={**overrides, "bilm_training.carry_state": carry_state})
        assert (load_weights(output / "model-best").initial_hidden is not None) == carry_state


# --- going on ---


@pytest.mark.parametrize(
    "changes",
    [
        {"carry_state": True, "dropout": 0.2, "samples": 5},
        {"carry_state": False, "dropout": 0.2, "samples": 0},
        {"precision": "bfloat16", "samples": 5},
        {"optimizer.name": "Adagrad", "optimizer.options": {"initial_accumulator_value": 0.1}},
        {"optimizer.name": "SGD", "optimizer.options": {"momentum": 0.9}},
    ],
)
def test_a_resumed_run_is_the_same_run(tmp_path: Path, overrides: dict[str, Any], changes: dict[str, Any]) -> None:
    overrides |= {f"bilm_training.{name}": value for name, value in changes.items()}
    pretrain(CONFIG, tmp_path / "whole", overrides=overrides)
    stop_after(5)  # two steps after the checkpoint
    stopping = {**overrides, "bilm_training.logger": {"@loggers": "spacy_elmo_tests.Stop.v1"}}
    with pytest.raises(KeyboardInterrupt):
        pretrain(CONFIG, tmp_path / "parts", overrides=stopping)
    assert [line["step"] for line in read_metrics(tmp_path / "parts")] == [1, 2, 3, 4, 5]
    pretrain(CONFIG, tmp_path / "parts", overrides=GOING_ON, resume=True)
    for name in ("model-best", "model-last"):
        assert_same_weights(tmp_path / "whole" / name, tmp_path / "parts" / name)
    assert_same_weights(tmp_path / "whole", tmp_path / "parts")  # the optimizer's averages, positions and states
    assert read_metrics(tmp_path / "parts") == read_metrics(tmp_path / "whole")


def test_a_finished_run_stays_as_it_is(tmp_path: Path, overrides: dict[str, Any]) -> None:
    first = pretrain(CONFIG, tmp_path / "out", overrides=overrides)
    before = read_tensors(tmp_path / "out" / "model-last")
    assert pretrain(CONFIG, tmp_path / "out", resume=True) == first
    after = read_tensors(tmp_path / "out" / "model-last")
    assert all(torch.equal(before[name], after[name]) for name in before)


@pytest.mark.slow
def test_a_killed_run_goes_on_to_the_same_weights(tmp_path: Path, overrides: dict[str, Any]) -> None:
    overrides |= {"bilm_training.max_steps": 400, "bilm_training.eval_frequency": 5, "bilm_training.samples": 5}
    pretrain(CONFIG, tmp_path / "whole", overrides=overrides)
    output = tmp_path / "killed"
    arguments = [item for name, value in overrides.items() for item in (f"--{name}", json.dumps(value).strip('"'))]
    command = [sys.executable, "-m", "spacy", "elmo", "pretrain", str(CONFIG), str(output)]
    wait = random.Random(0)
    n_kills = 0
    process = subprocess.Popen([*command, *arguments], stdout=subprocess.DEVNULL)
    while process.poll() is None:
        if n_kills < 3 and (output / "checkpoint.safetensors").exists():
            time.sleep(wait.uniform(0.05, 0.5))
            process.send_signal(signal.SIGKILL)
            process.wait()
            n_kills += 1
            process = subprocess.Popen([*command, "--resume"], stdout=subprocess.DEVNULL)
            time.sleep(4)  # as long as it takes to start
        time.sleep(0.02)
    assert process.returncode == 0
    assert n_kills == 3
    for name in ("model-best", "model-last"):
        assert_same_weights(tmp_path / "whole" / name, output / name)
    assert read_metrics(output) == read_metrics(tmp_path / "whole")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bilm.cells": 11}, r"is another one: bilm.cells was 10 and is 11"),
        ({"bilm_training.batch_size": 8}, r"bilm_training.batch_size was 4 and is 8"),
        ({"bilm_training.optimizer.learn_rate": 0.5}, r"optimizer.learn_rate was 0.005 and is 0.5"),
    ],
)
def test_a_run_does_not_go_on_under_another_config(
    tmp_path: Path, overrides: dict[str, Any], changes: dict[str, Any], message: str
) -> None:
    pretrain(CONFIG, tmp_path / "out", overrides=overrides)
    with pytest.raises(ValueError, match=message):
        pretrain(CONFIG, tmp_path / "out", overrides=changes, resume=True)


def test_a_run_does_not_go_on_with_another_corpus(tmp_path: Path, overrides: dict[str, Any]) -> None:
    pretrain(CONFIG, tmp_path / "out", overrides=overrides)
    other = {"paths.train": str(make_text(tmp_path / "other.txt", 120, seed=5))}
    with pytest.raises(ValueError, match="has another training text"):
        pretrain(CONFIG, tmp_path / "out", overrides=other, resume=True)
    words = tmp_path / "words.txt"
    count_words([["the", "cat"]], max_size=10).to_disk(words)
    with pytest.raises(ValueError, match="has another vocabulary"):
        pretrain(CONFIG, tmp_path / "out", overrides={"paths.vocab": str(words)}, resume=True)


def test_a_run_does_not_go_on_with_another_dev_text(tmp_path: Path, overrides: dict[str, Any]) -> None:
    pretrain(CONFIG, tmp_path / "out", overrides=overrides)
    other = {"paths.dev": str(make_text(tmp_path / "other.txt", 30, seed=5))}
    with pytest.raises(ValueError, match="has another dev text"):
        pretrain(CONFIG, tmp_path / "out", overrides=other, resume=True)


def test_a_run_keeps_the_text_that_it_began_with(tmp_path: Path, overrides: dict[str, Any]) -> None:
    pretrain(CONFIG, tmp_path / "whole", overrides=overrides)
    stop_after(5)
    stopping = {**overrides, "bilm_training.logger": {"@loggers": "spacy_elmo_tests.Stop.v1"}}
    with pytest.raises(KeyboardInterrupt):
        pretrain(CONFIG, tmp_path / "parts", overrides=stopping)
    make_text(Path(overrides["paths.train"]), 50, seed=9)
    pretrain(CONFIG, tmp_path / "parts", overrides=GOING_ON, resume=True)
    assert_same_weights(tmp_path / "whole" / "model-last", tmp_path / "parts" / "model-last")


def test_a_moved_corpus_is_still_the_same(tmp_path: Path, overrides: dict[str, Any]) -> None:
    first = pretrain(CONFIG, tmp_path / "out", overrides=overrides)
    moved = Path(overrides["paths.train"]).rename(tmp_path / "moved.txt")
    assert pretrain(CONFIG, tmp_path / "out", overrides={"paths.train": str(moved)}, resume=True) == first


def test_going_on_wants_a_checkpoint(tmp_path: Path, overrides: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="There is no checkpoint .* Start without --resume"):
        pretrain(CONFIG, tmp_path / "out", overrides=overrides, resume=True)


def test_a_run_is_not_replaced_unasked(tmp_path: Path, overrides: dict[str, Any]) -> None:
    pretrain(CONFIG, tmp_path / "out", overrides=overrides)
    with pytest.raises(ValueError, match="There is a run in .* already"):
        pretrain(CONFIG, tmp_path / "out", overrides=overrides)
    before, weights = read_metrics(tmp_path / "out"), read_tensors(tmp_path / "out" / "model-last")
    pretrain(CONFIG, tmp_path / "out", overrides={**overrides, "bilm_training.seed": 1}, overwrite=True)
    after = read_metrics(tmp_path / "out")
    assert [line["step"] for line in after] == list(range(1, STEPS + 1))
    assert all(new["loss"] != old["loss"] for new, old in zip(after, before, strict=True))
    replaced = read_tensors(tmp_path / "out" / "model-last")
    assert not any(torch.equal(weights[name], replaced[name]) for name in weights)


def test_a_run_goes_on_or_is_replaced(tmp_path: Path, overrides: dict[str, Any]) -> None:
    pretrain(CONFIG, tmp_path / "out", overrides=overrides)
    with pytest.raises(ValueError, match=r"goes on \(--resume\) or is replaced \(--overwrite\), not both"):
        pretrain(CONFIG, tmp_path / "out", overrides=overrides, resume=True, overwrite=True)


@pytest.mark.parametrize("line", ["{}", "[]", "something dear"])
def test_metrics_of_somebody_else_can_be_replaced(tmp_path: Path, overrides: dict[str, Any], line: str) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "metrics.jsonl").write_text(f"{line}\n")
    pretrain(CONFIG, tmp_path / "out", overrides=overrides, overwrite=True)
    assert len(read_metrics(tmp_path / "out")) == STEPS


def test_a_model_that_had_stepped_aside_is_put_back(tmp_path: Path, overrides: dict[str, Any]) -> None:
    first = pretrain(CONFIG, tmp_path / "out", overrides=overrides)
    for name in ("model-best", "model-last"):  # killed in the instant before the new one took its place
        (tmp_path / "out" / name).rename(tmp_path / "out" / f".{name}-abcd1234-old")
    assert pretrain(CONFIG, tmp_path / "out", resume=True) == first


def test_runs_that_share_a_cache_do_not_lose_their_text(tmp_path: Path, overrides: dict[str, Any]) -> None:
    overrides["paths.cache"] = str(tmp_path / "cache")
    pretrain(CONFIG, tmp_path / "whole", overrides={**overrides, "paths.cache": None})
    stop_after(5)
    stopping = {**overrides, "bilm_training.logger": {"@loggers": "spacy_elmo_tests.Stop.v1"}}
    with pytest.raises(KeyboardInterrupt):
        pretrain(CONFIG, tmp_path / "parts", overrides=stopping)
    pretrain(CONFIG, tmp_path / "other", overrides={**overrides, "corpus.lang": "en"})
    for name in ("paths.train", "paths.dev"):
        make_text(Path(overrides[name]), 50, seed=9)
    pretrain(CONFIG, tmp_path / "another", overrides=overrides)
    pretrain(CONFIG, tmp_path / "parts", overrides=GOING_ON, resume=True)
    assert_same_weights(tmp_path / "whole" / "model-last", tmp_path / "parts" / "model-last")
    assert read_metrics(tmp_path / "whole") == read_metrics(tmp_path / "parts")


def test_leftovers_of_tokenizing_are_removed(tmp_path: Path, overrides: dict[str, Any]) -> None:
    pretrain(CONFIG, tmp_path / "out", overrides=overrides)
    (kept,) = (tmp_path / "out" / "corpora").glob("train.txt-*")
    half = kept.with_name(f".{kept.name}-abcd1234")
    half.mkdir()
    pretrain(CONFIG, tmp_path / "out", overrides=overrides, overwrite=True)
    assert not half.exists()
    assert kept.exists()


def test_nothing_is_replaced_by_a_run_that_cannot_start(tmp_path: Path, overrides: dict[str, Any]) -> None:
    output = tmp_path / "out"
    pretrain(CONFIG, output, overrides=overrides)
    before = {path: path.read_bytes() for path in output.rglob("*") if path.is_file()}
    for wrong in ({"paths.train": "no/such.txt"}, {"bilm_training.optimizer.name": "AdamX"}, {"bilm.cells": 0}):
        with pytest.raises(ValueError, match=r"no corpus at|no optimizer 'AdamX'|cells must be"):
            pretrain(CONFIG, output, overrides={**overrides, **wrong}, overwrite=True)
    assert {path: path.read_bytes() for path in output.rglob("*") if path.is_file()} == before


def test_files_of_others_in_the_output_are_kept(tmp_path: Path, overrides: dict[str, Any]) -> None:
    words = count_words([["the", "cat"]], max_size=10)
    words.to_disk(tmp_path / "out" / "vocab.txt")
    overrides["paths.vocab"] = str(tmp_path / "out" / "vocab.txt")
    pretrain(CONFIG, tmp_path / "out", overrides=overrides)
    assert Vocabulary.from_disk(tmp_path / "out" / "vocab.txt") == words
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "metrics.jsonl").write_text("something dear")
    with pytest.raises(ValueError, match="something else with a metrics.jsonl"):
        pretrain(CONFIG, tmp_path / "other", overrides=overrides)
    assert (tmp_path / "other" / "metrics.jsonl").read_text() == "something dear"


def test_what_killed_writers_left_is_removed(tmp_path: Path, overrides: dict[str, Any]) -> None:
    pretrain(CONFIG, tmp_path / "out", overrides=overrides)
    for name in (".model-last-abcd1234", ".model-best-abcd1234-old"):
        (tmp_path / "out" / name).mkdir()
        (tmp_path / "out" / name / "model.safetensors").write_bytes(b"half")
    pretrain(CONFIG, tmp_path / "out", resume=True)
    assert [path.name for path in (tmp_path / "out").glob(".*")] == []
    assert (tmp_path / "out" / "model-best" / "vocab.txt").exists()


# --- when something goes wrong ---


def test_a_full_disk_leaves_the_last_checkpoint(
    tmp_path: Path, overrides: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    pretrain(CONFIG, tmp_path / "whole", overrides=overrides)
    save_file = checkpoint_module.save_file
    written: list[Path] = []

    def save_to_a_small_disk(tensors: Any, path: Path, metadata: Any) -> None:
        if written:
            path.write_bytes(b"half a checkpoint")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written.append(path)
        save_file(tensors, path, metadata=metadata)

    monkeypatch.setattr(checkpoint_module, "save_file", save_to_a_small_disk)
    with pytest.raises(OSError, match="could not be written: .*No space left.* The one before it is as it was"):
        pretrain(CONFIG, tmp_path / "out", overrides=overrides)
    assert [path.name for path in (tmp_path / "out").glob(".*")] == []
    monkeypatch.undo()
    pretrain(CONFIG, tmp_path / "out", resume=True)
    assert_same_weights(tmp_path / "whole" / "model-last", tmp_path / "out" / "model-last")


def test_a_loss_that_is_no_number_stops_the_run(tmp_path: Path, overrides: dict[str, Any]) -> None:
    with pytest.raises(FloatingPointError, match=r"At step \d+ the loss is .*Its batch starts with: '\w+ "):
        pretrain(CONFIG, tmp_path / "out", overrides={**overrides, "bilm_training.optimizer.learn_rate": 1e30})
    # Nothing that is not a number was saved.
    for tensors in (read_tensors(tmp_path / "out" / name) for name in ("model-best", "model-last")):
        assert all(torch.isfinite(tensor).all() for tensor in tensors.values())


def test_weights_that_predict_nothing_are_not_saved(tmp_path: Path, overrides: dict[str, Any]) -> None:
    # So large that the weights are ruined by one step, and the evaluation is the first to see it.
    ruin = {"bilm_training.optimizer.learn_rate": 1e38, "bilm_training.eval_frequency": 1}
    with pytest.raises(FloatingPointError, match=r"After step 1, .* the dev perplexity is nan\. They were not saved"):
        pretrain(CONFIG, tmp_path / "out", overrides={**overrides, **ruin})
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["config.cfg", "corpora"]


def test_the_output_may_not_be_a_file(tmp_path: Path, overrides: dict[str, Any]) -> None:
    (tmp_path / "out").write_text("something dear")
    with pytest.raises(ValueError, match="is a file; a directory is to be written there"):
        pretrain(CONFIG, tmp_path / "out", overrides=overrides)
    assert (tmp_path / "out").read_text() == "something dear"


def write_corpus(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty.txt", b"", "is empty: it has no sentence"),
        ("blank.txt", b"\n \n\n", "is empty: it has no sentence"),
        ("latin.txt", "caf\u00e9\n".encode("latin1"), "line 1: not UTF-8"),
        ("docs.spacy", b"no docs", "is not a file of docs"),
        ("lines.jsonl", b'{"txt": "no"}\n', 'expected an object with a "text"'),
        ("image.png", b"", "is no form of corpus that is known"),
    ],
)
def test_bad_corpora_are_named(
    tmp_path: Path, overrides: dict[str, Any], name: str, content: bytes, message: str
) -> None:
    overrides["paths.train"] = str(write_corpus(tmp_path / name, content))
    with pytest.raises(ValueError, match=message):
        pretrain(CONFIG, tmp_path / "out", overrides=overrides)


def test_mistakes_are_found_before_the_corpus_is_tokenized(tmp_path: Path, overrides: dict[str, Any]) -> None:
    adam = {"@optimizers": "Adam.v1", "learn_rate": 0.1}
    linear = {"@schedules": "constant.v1", "rate": 0.1}
    for changes, message in (
        (
            {"bilm_training.optimizer": adam},
            r"\[bilm_training\.optimizer\] names something that makes no optimizer of torch",
        ),
        (
            {"bilm_training.schedule": linear},
            r"\[bilm_training\.schedule\] names something that makes no schedule of torch",
        ),
        ({"bilm_training.optimizer.name": "AdamX"}, "no optimizer 'AdamX'"),
    ):
        with pytest.raises(ValueError, match=message):
            pretrain(CONFIG, tmp_path / "out", overrides={**overrides, **changes})
    finetuning = {name: value for name, value in overrides.items() if not name.startswith("bilm.")}
    with pytest.raises(ValueError, match="There is no weights directory at"):
        pretrain(FINETUNE, tmp_path / "out", overrides={**finetuning, "paths.weights": str(tmp_path / "no")})
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("content", [b"one line only .\n", b"word " * 200_000, b"x" * 1_000_000])
def test_odd_corpora_are_fine(tmp_path: Path, overrides: dict[str, Any], content: bytes) -> None:
    overrides["paths.train"] = str(write_corpus(tmp_path / "odd.txt", content))
    result = pretrain(CONFIG, tmp_path / "out", overrides={**overrides, "vocabulary.min_count": 1})
    assert numpy.isfinite(list(result.likelihood.perplexities.values())).all()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("<S>\t1\n</S>\t1\n<UNK>\t0\nrare\t1\nfrequent\t9\n", "is not sorted by frequency: 'frequent'"),
        ("<S>\t1\n</S>\t1\nthe\t5\n", "A vocabulary starts with <S>, </S>, <UNK>"),
        ("the\ncat\n", "line 1: expected a word, a tab and its frequency"),
    ],
)
def test_bad_vocabularies_are_named(tmp_path: Path, overrides: dict[str, Any], content: str, message: str) -> None:
    (tmp_path / "vocab.txt").write_text(content)
    overrides["paths.vocab"] = str(tmp_path / "vocab.txt")
    with pytest.raises(ValueError, match=message):
        pretrain(CONFIG, tmp_path / "out", overrides=overrides)


# --- going on from weights ---


@pytest.fixture
def finetuning(overrides: dict[str, Any]) -> dict[str, Any]:
    """The values of a run that goes on from weights."""
    return {
        **{name: value for name, value in overrides.items() if not name.startswith("bilm.")},
        "bilm_training.softmax_share": 0.5,
        "bilm_training.precision": "float32",
    }


def test_a_new_softmax_learns_before_the_rest(tmp_path: Path, finetuning: dict[str, Any]) -> None:
    bilm = random_bilm(3)
    save_weights(bilm, tmp_path / "weights")
    finetuning["paths.weights"] = str(tmp_path / "weights")
    stop_after(4)
    stopping = {**finetuning, "bilm_training.logger": {"@loggers": "spacy_elmo_tests.Stop.v1"}}
    with pytest.raises(KeyboardInterrupt):
        pretrain(FINETUNE, tmp_path / "out", overrides=stopping)
    frozen, vocabulary = load_language_model(tmp_path / "out" / "model-last")
    for name, parameter in bilm.named_parameters():
        assert torch.equal(parameter, frozen.bilm.get_parameter(name)), name
    shutil.rmtree(tmp_path / "weights")  # what the run needs of them is in its checkpoint
    softmax_before = frozen.softmax.weight.clone()
    result = pretrain(FINETUNE, tmp_path / "out", overrides=GOING_ON, resume=True)
    trained, _ = load_language_model(tmp_path / "out" / "model-last")
    for name, parameter in bilm.named_parameters():
        assert not torch.equal(parameter, trained.bilm.get_parameter(name)), name
    assert not torch.equal(softmax_before, trained.softmax.weight)
    dev = [line.split() for line in Path(finetuning["paths.dev"]).read_text().splitlines()]
    assert result.before == pytest.approx(measure_likelihood(frozen, vocabulary, dev).perplexities["mean"])


def test_a_model_with_its_softmax_goes_on_at_once(
    tmp_path: Path, overrides: dict[str, Any], finetuning: dict[str, Any]
) -> None:
    first = pretrain(CONFIG, tmp_path / "first", overrides=overrides)
    finetuning |= {"paths.weights": str(tmp_path / "first" / "model-best")}
    finetuning |= {"bilm_training.carry_state": False, "bilm_training.eval_tokens": 20}  # before and after are of all
    second = pretrain(FINETUNE, tmp_path / "second", overrides=finetuning)
    assert second.before == pytest.approx(first.likelihood.perplexities["mean"])
    assert second.before is not None
    assert second.likelihood.perplexities["mean"] < second.before
    # Another vocabulary wants another softmax.
    count_words([["the", "cat"]], max_size=10).to_disk(tmp_path / "words.txt")
    third = pretrain(FINETUNE, tmp_path / "third", overrides={**finetuning, "paths.vocab": str(tmp_path / "words.txt")})
    model, vocabulary = load_language_model(tmp_path / "third" / "model-best")
    assert len(model.softmax.bias) == len(vocabulary) == 5
    assert third.before != second.before


# --- several processes, and much text ---


@pytest.mark.slow
@pytest.mark.parametrize("carry_state", [True, False])
def test_two_processes_train_what_one_does_with_twice_the_batch(
    tmp_path: Path, overrides: dict[str, Any], carry_state: bool
) -> None:
    overrides |= {"bilm_training.dropout": 0.0, "bilm_training.samples": 5, "bilm_training.carry_state": carry_state}
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node"]
    for name, n_processes, batch_size in (("one", 1, 8), ("two", 2, 4)):
        values = {**overrides, "bilm_training.batch_size": batch_size}
        arguments = [item for key, value in values.items() for item in (f"--{key}", json.dumps(value).strip('"'))]
        command = [*torchrun, str(n_processes), "-m", "spacy", "elmo", "pretrain", str(CONFIG), str(tmp_path / name)]
        result = subprocess.run([*command, *arguments], capture_output=True, text=True)
        assert result.returncode == 0, result.stdout + result.stderr
    one, two = read_tensors(tmp_path / "one" / "model-last"), read_tensors(tmp_path / "two" / "model-last")
    for name in one:
        torch.testing.assert_close(two[name], one[name], rtol=1e-4, atol=1e-5)
    for ours, theirs in zip(read_metrics(tmp_path / "two"), read_metrics(tmp_path / "one"), strict=True):
        assert ours == pytest.approx(theirs, rel=1e-4)


def test_memory_does_not_grow_with_the_corpus(tmp_path: Path) -> None:
    def peak(n_sentences: int) -> int:
        path = make_text(tmp_path / "text.txt", n_sentences, seed=0)
        vocabulary = count_words([["the", "cat"]], max_size=10)
        tracemalloc.start()
        streams = iter(Streams(path, vocabulary, n_rows=8, rows=range(8), n_steps=10, with_end=True))
        for _ in range(n_sentences // 8):
            next(streams)
        used = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return used

    peak(100)  # what is made once
    small, large = peak(100), peak(5000)
    assert (tmp_path / "text.txt").stat().st_size > 3 * large
    assert large < 1.5 * small
