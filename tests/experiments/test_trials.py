"""Trials write what they measure, and say what went wrong."""

import gc
import json
import os
import shutil
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy
import pytest
import spacy
from confection import Config
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.training import Example
from spacy.util import registry
from spacy.vocab import Vocab

from spacy_elmo.experiments import trials as trials_module
from spacy_elmo.experiments.subsets import read_docs
from spacy_elmo.experiments.trial_id import TRIAL_METRICS, TrialId, find_trials
from spacy_elmo.experiments.trials import TrialError

from .tagger import (
    TAGGER_CONFIG,
    TAGS,
    before_update,
    make_trials,
    run_all,
    write_elmo_config,
)
from .written_trials import RARE


def test_trials_write_what_they_measure(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scored: list[str] = []
    load_model = trials_module.load_model

    def load(path: Path) -> Language:
        scored.append(path.name)
        return load_model(path)

    monkeypatch.setattr(trials_module, "load_model", load)
    metrics = run_all(make_trials(corpus, fractions=[5.0, 100.0], seeds=2, drop_models=True))
    assert [(trial["fraction"], trial["seed"], trial["n_docs"]) for trial in metrics] == [
        (5, 0, 1),
        (100, 0, 20),
        (5, 1, 1),
        (100, 1, 20),
    ]
    out = corpus / "out"
    assert [
        json.loads((trial_id.directory(out) / TRIAL_METRICS).read_text("utf8")) for trial_id in sorted(find_trials(out))
    ] == [
        metrics[0],
        metrics[2],
        metrics[1],
        metrics[3],
    ]
    assert not (out / "5" / "0" / "model-best").exists()
    assert not (out / "100" / "0" / "model-last").exists()
    assert "Pipeline: ['tagger']" in (out / "100" / "0" / "training.log").read_text("utf8")
    assert set(scored) == {"model-best"}
    # The scores are those of the model that was kept, on the test data.
    nlp = spacy.load(out / "100" / "1" / "model-best")
    examples = [Example(nlp.make_doc(doc.text), doc) for doc in read_docs(corpus / "test.spacy").get_docs(nlp.vocab)]
    examples = [Example(Doc(nlp.vocab, words=[token.text for token in example.y]), example.y) for example in examples]
    assert metrics[3]["scores"]["tag_acc"] == nlp.evaluate(examples)["tag_acc"]
    assert metrics[3]["score_weights"]["tag_acc"] == 1.0
    assert metrics[3]["words_per_second"] == metrics[3]["scores"]["speed"]
    assert metrics[3]["training_seconds"] > 0
    assert metrics[3]["config"]["pipeline"] == ["tagger"]
    assert metrics[3]["mixes"] == []
    assert metrics[3]["config"]["n_test_docs"] == 20
    training = metrics[3]["config"]["training"]
    assert (training["max_steps"], training["dropout"], training["gpu_allocator"]) == (2, 0.1, None)
    assert nlp.config["training"]["seed"] == nlp.config["system"]["seed"] == 1


def test_a_fraction_has_the_labels_of_all(corpus: Path) -> None:
    (metrics,) = run_all(make_trials(corpus, fractions=[5.0]))
    nlp = spacy.load(corpus / "out" / "5" / "0" / "model-best")
    assert set(nlp.get_pipe("tagger").labels) == {*TAGS, RARE}
    assert metrics["scores"]["tag_per_type"][RARE]["r"] == 0
    docs = list(read_docs(corpus / "out" / "5" / "train.spacy").get_docs(nlp.vocab))
    assert RARE not in {token.tag_ for doc in docs for token in doc}


@pytest.mark.slow
def test_seeds_matter_and_can_be_repeated(corpus: Path) -> None:
    def weights(output: str, seeds: int) -> list[bytes]:
        trials = make_trials(corpus, seeds=seeds, output=corpus / output)
        run_all(trials)
        pipelines = [spacy.load(trial_id.directory(corpus / output) / "model-best") for trial_id in trials.trial_ids]
        return [nlp.get_pipe("tagger").model.to_bytes() for nlp in pipelines]

    first, other = weights("one", 2)
    assert weights("two", 1) == [first]
    assert first != other


@pytest.mark.parametrize(
    ("error", "expected", "message"),
    [
        (RuntimeError("out of luck"), TrialError, r"RuntimeError: out of luck\."),
        (FileNotFoundError(2, "No such file or directory", "table.txt"), OSError, r".* 'table.txt'\."),
        (ValueError("There are no docs."), TrialError, r"ValueError: There are no docs\."),
        (OSError("Is the disk full?"), OSError, r"Is the disk full\?"),
    ],
)
def test_a_failure_is_explained_and_its_traceback_kept(
    error: Exception, expected: type[Exception], message: str, corpus: Path
) -> None:
    def fail() -> None:
        raise error

    before_update.append(fail)
    log = corpus / "out" / "50" / "0" / "training.log"
    with pytest.raises(expected, match=f"with fraction 50%, seed 0 failed: {message} The traceback is in {log}"):
        run_all(make_trials(corpus, fractions=[50.0]))
    assert "in fail" in log.read_text("utf8")


def test_a_full_disk_is_explained(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fill_disk(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fill_disk)
    message = (
        r"out/100/0/metrics\.json could not be written: .*No space left on device\. Is the disk full, or is writing not"
    )
    with pytest.raises(OSError, match=message):
        run_all(make_trials(corpus))
    assert make_trials(corpus).find_unfinished() == [TrialId(100, 0)]


def test_scores_may_be_integers_of_numpy(corpus: Path) -> None:
    config = TAGGER_CONFIG + '\n[components.tagger.scorer]\n@scorers = "spacy_elmo.tests.numpy_scorer"\n'
    (corpus / "tagger.cfg").write_text(config, encoding="utf8")
    run_all(make_trials(corpus))
    metrics = json.loads((corpus / "out" / "100" / "0" / TRIAL_METRICS).read_text("utf8"))
    assert (metrics["scores"]["tag_acc"], metrics["scores"]["n_tags"]) == (0.5, 3)


@registry.scorers("spacy_elmo.tests.numpy_scorer")
def make_numpy_scorer() -> Callable[..., dict[str, Any]]:
    def score(examples: Sequence[Example], **options: Any) -> dict[str, Any]:
        return {"tag_acc": numpy.float32(0.5), "n_tags": numpy.int64(3)}

    return score


@pytest.mark.slow
def test_models_of_earlier_trials_are_freed(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    weights = write_elmo_config(corpus)
    models: list[weakref.ref[Any]] = []
    alive: list[list[bool]] = []
    init_nlp = trials_module.init_nlp

    def initialize(config: Config, use_gpu: int) -> Language:
        alive.append([model() is not None for model in models])
        nlp = init_nlp(config, use_gpu=use_gpu)
        models.append(weakref.ref(nlp.get_pipe("elmo")))
        return nlp

    monkeypatch.setattr(trials_module, "init_nlp", initialize)
    trials = make_trials(corpus, seeds=2, overrides={"components.elmo.weights": str(weights)})
    thresholds = gc.get_threshold()
    gc.set_threshold(0)  # Python would come to it, but not soon: a model is few objects, however large
    try:
        run_all(trials)
    finally:
        gc.set_threshold(*thresholds)
    assert alive == [[], [False]]


def test_files_that_cannot_be_merged_can_be_trained_on(corpus: Path) -> None:
    (corpus / "both").mkdir()
    shutil.copy(corpus / "train.spacy", corpus / "both" / "a.spacy")
    docs = list(read_docs(corpus / "dev.spacy").get_docs(Vocab()))
    DocBin(docs=docs, attrs=["TAG"]).to_disk(corpus / "both" / "b.spacy")
    data = {"paths.train": str(corpus / "both")}
    (metrics,) = run_all(make_trials(corpus, overrides=data, test_path=corpus / "both"))
    assert (metrics["n_docs"], metrics["config"]["n_test_docs"]) == (24, 24)
    with pytest.raises(TrialError, match=r"fraction 50%, seed 0 failed: .*b\.spacy stores other token attributes"):
        run_all(make_trials(corpus, overrides=data, fractions=[50.0], output=corpus / "fractions"))


def test_trials_that_cannot_start(corpus: Path) -> None:
    def refuse_to_start(message: str, **options: Any) -> None:
        trials = make_trials(corpus, **options)
        with pytest.raises(ValueError, match=message):
            trials.check()
        assert not (corpus / "out").exists()

    refuse_to_start(r"has no paths\.train.*--paths\.train train\.spacy", overrides={"paths.train": None})
    refuse_to_start("no docs at .*no such file", overrides={"paths.train": "nothing.spacy"})
    refuse_to_start("no docs at .*no such file", test_path=corpus / "nothing.spacy")
    DocBin().to_disk(corpus / "empty.spacy")
    refuse_to_start(r"no docs at .*empty\.spacy: it is empty", test_path=corpus / "empty.spacy")
    refuse_to_start("it is empty", overrides={"paths.train": str(corpus / "empty.spacy")})
    refuse_to_start("leave out --system.seed and --training.seed", overrides={"training.seed": 3})
    refuse_to_start("is a file, not a directory", output=corpus / "tagger.cfg")
    fixed = TAGGER_CONFIG + '\n[corpora]\n\n[corpora.train]\n@readers = "spacy.Corpus.v1"\npath = "train.spacy"\n'
    (corpus / "tagger.cfg").write_text(fixed, encoding="utf8")
    refuse_to_start(r"\[corpora\.train\] does not read \$\{paths\.train\}", fractions=[50.0, 100.0])
    make_trials(corpus).check()
    (corpus / "tagger.cfg").write_text(TAGGER_CONFIG.replace("[nlp]", "[other]"), encoding="utf8")
    refuse_to_start(r"tagger\.cfg has no \[nlp\] with a lang and a pipeline, .* Choose a config for `spacy train`")


@pytest.mark.parametrize("role", ["train", "dev", "test"])
def test_output_inside_of_the_data_is_refused(role: str, corpus: Path) -> None:
    data = corpus / "data"
    data.mkdir()
    shutil.copy(corpus / "train.spacy", data / "a.spacy")
    options: dict[str, Any] = {"test_path": data} if role == "test" else {"overrides": {f"paths.{role}": str(data)}}
    message = (
        f"{data}/out is inside of the data {data}, and would become a part of them. Choose another output directory"
    )
    with pytest.raises(ValueError, match=message):
        make_trials(corpus, output=data / "out", **options).check()
    make_trials(corpus, output=corpus / "data-out", **options).check()


def test_constructor_opens_no_file(tmp_path: Path) -> None:
    trials = make_trials(tmp_path / "nowhere")
    assert trials.trial_ids == [TrialId(100, 0)]
    with pytest.raises(OSError, match="nowhere"):
        trials.check()
