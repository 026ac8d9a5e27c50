"""Trials: they write what they measure, and nothing is trained twice or lost."""

import gc
import json
import os
import shutil
import subprocess
import sys
import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
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

from spacy_elmo.bilm.weights import save_weights
from spacy_elmo.experiments import trials as trials_module
from spacy_elmo.experiments.checksums import checksum
from spacy_elmo.experiments.locks import lock
from spacy_elmo.experiments.places import METRICS, Place, find_places
from spacy_elmo.experiments.subsets import choose, read_docs
from spacy_elmo.experiments.trials import TrialError, Trials
from spacy_elmo.models import find_weights

from ..command_line import run
from ..helpers import random_bilm

TAGS = ["DET", "NOUN", "VERB"]
RARE = "<b>&"

CONFIG = """
[paths]
train = null
dev = null

[system]
gpu_allocator = null

[nlp]
lang = "xx"
pipeline = ["tagger"]

[components]

[components.tagger]
factory = "tagger"

[components.tagger.model]
@architectures = "spacy.Tagger.v2"

[components.tagger.model.tok2vec]
@architectures = "spacy.HashEmbedCNN.v2"
pretrained_vectors = null
width = 8
depth = 1
embed_size = 50
window_size = 1
maxout_pieces = 2
subword_features = false

[training]
gpu_allocator = ${system.gpu_allocator}
max_steps = 2
eval_frequency = 1

[training.before_update]
@callbacks = "spacy_elmo.tests.before_update"
"""

before_update: list[Callable[[], None]] = []


@registry.callbacks("spacy_elmo.tests.before_update")
def make_before_update() -> Callable[[Any, dict[str, Any]], None]:
    """What tests want to happen in the middle of a training."""

    def act(nlp: Language, arguments: dict[str, Any]) -> None:
        for action in before_update if arguments["step"] == 1 else ():
            action()

    return act


@pytest.fixture(autouse=True)
def nothing_before_update() -> None:
    before_update.clear()


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Docs with a tag that a small share lacks."""
    vocab = Vocab()
    docs = [Doc(vocab, words=["the", "cat", f"runs{i}"], tags=TAGS) for i in range(20)]
    rare = next(i for i in range(20) if i not in choose(20, 50))
    docs[rare] = Doc(vocab, words=["the", "cat", "zzz"], tags=["DET", "NOUN", RARE])
    for name, part in {"train": docs, "dev": docs[:4], "test": docs}.items():
        DocBin(docs=part).to_disk(tmp_path / f"{name}.spacy")
    (tmp_path / "tagger.cfg").write_text(CONFIG, encoding="utf8")
    return tmp_path


def make_trials(corpus: Path, *, shares: Sequence[float] = (100.0,), seeds: int = 1, **options: Any) -> Trials:
    overrides = {"paths.train": str(corpus / "train.spacy"), "paths.dev": str(corpus / "dev.spacy")}
    settings = {"output": corpus / "out", "test": corpus / "test.spacy", "find_weights": find_weights, **options}
    settings["overrides"] = {**overrides, **options.get("overrides", {})}
    return Trials(config_path=corpus / "tagger.cfg", seeds=range(seeds), shares=shares, **settings)


def refuse(trials: Trials, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        trials.find_todo()


def run_all(trials: Trials) -> list[dict[str, Any]]:
    return [trials.run(place) for place in trials.find_todo()]


def test_trials_write_what_they_measure(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scored: list[str] = []
    load_model = trials_module.load_model

    def load(path: Path) -> Language:
        scored.append(path.name)
        return load_model(path)

    monkeypatch.setattr(trials_module, "load_model", load)
    metrics = run_all(make_trials(corpus, shares=[5.0, 100.0], seeds=2, drop_models=True))
    assert [(trial["share"], trial["seed"], trial["n_docs"]) for trial in metrics] == [
        (5, 0, 1),
        (100, 0, 20),
        (5, 1, 1),
        (100, 1, 20),
    ]
    out = corpus / "out"
    assert [json.loads((place.below(out) / METRICS).read_text("utf8")) for place in sorted(find_places(out))] == [
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


def test_a_share_knows_the_labels_of_all(corpus: Path) -> None:
    (metrics,) = run_all(make_trials(corpus, shares=[5.0]))
    nlp = spacy.load(corpus / "out" / "5" / "0" / "model-best")
    assert set(nlp.get_pipe("tagger").labels) == {*TAGS, RARE}
    assert metrics["scores"]["tag_per_type"][RARE]["r"] == 0
    docs = list(read_docs(corpus / "out" / "5" / "train.spacy").get_docs(nlp.vocab))
    assert RARE not in {token.tag_ for doc in docs for token in doc}


def test_seeds_matter_and_can_be_repeated(corpus: Path) -> None:
    def weights(output: str, seeds: int) -> list[bytes]:
        trials = make_trials(corpus, seeds=seeds, output=corpus / output)
        run_all(trials)
        pipelines = [spacy.load(place.below(corpus / output) / "model-best") for place in trials.places]
        return [nlp.get_pipe("tagger").model.to_bytes() for nlp in pipelines]

    first, other = weights("one", 2)
    assert weights("two", 1) == [first]
    assert first != other


def test_what_is_done_is_not_done_again(corpus: Path) -> None:
    run_all(make_trials(corpus, seeds=2))
    path = corpus / "out" / "100" / "0" / METRICS
    before = path.stat().st_mtime_ns
    # The same data elsewhere are the same data.
    shutil.copy(corpus / "train.spacy", corpus / "copy.spacy")
    trials = make_trials(corpus, seeds=3, overrides={"paths.train": str(corpus / "copy.spacy")})
    assert trials.find_todo() == [Place(100, 2)]
    run_all(trials)
    assert path.stat().st_mtime_ns == before
    for changes, message in {
        ("training.dropout", 0.2): "their config or its overrides",
        ("paths.train", str(corpus / "dev.spacy")): "their training data",
        ("paths.dev", str(corpus / "train.spacy")): "their dev data",
    }.items():
        refuse(make_trials(corpus, overrides=dict([changes])), f"differ in {message}")
    other = make_trials(corpus, test=corpus / "dev.spacy")
    refuse(other, r"differ in their test data, such as .*out/100/0\. Replace .*--overwrite")
    refuse(make_trials(corpus, gold_preproc=True), "differ in --gold-preproc")
    assert path.stat().st_mtime_ns == before


def test_a_directory_that_holds_the_trials_is_not_what_they_are_told_by(corpus: Path) -> None:
    (corpus / "tagger.cfg").write_text(CONFIG.replace("[paths]\n", f'[paths]\nroot = "{corpus}"\n'), encoding="utf8")
    run_all(make_trials(corpus))
    assert make_trials(corpus).find_todo() == []


def test_files_that_the_config_names_elsewhere_count(corpus: Path) -> None:
    shutil.copy(corpus / "dev.spacy", corpus / "other.spacy")
    overrides = {"corpora.dev.path": str(corpus / "other.spacy")}
    corpora = '[corpora]\n\n[corpora.dev]\n@readers = "spacy.Corpus.v1"\npath = null\n'
    (corpus / "tagger.cfg").write_text(CONFIG + corpora, encoding="utf8")
    pretend_done(make_trials(corpus, overrides=overrides))
    shutil.copy(corpus / "train.spacy", corpus / "other.spacy")
    refuse(make_trials(corpus, overrides=overrides), "differ in the files of corpora.dev.path")


def write_elmo_config(corpus: Path) -> Path:
    """Give the tagger an ELMo with random weights. Returns their directory."""
    save_weights(random_bilm(1), corpus / "weights")
    before, after = CONFIG.split("[components.tagger.model.tok2vec]")
    text = before.replace('["tagger"]', '["elmo", "tagger"]').replace(
        "[components]\n", '[components]\n\n[components.elmo]\nfactory = "elmo"\n'
    )
    text += '[components.tagger.model.tok2vec]\n@architectures = "spacy_elmo.ElmoListener.v1"\n\n'
    (corpus / "tagger.cfg").write_text(text + after[after.index("[training]") :], encoding="utf8")
    return corpus / "weights"


def pretend_done(trials: Trials) -> Path:
    """Write what makes the first trial one that is done. Returns where."""
    path = trials.places[0].below(trials.output) / METRICS
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"identity": trials.identity}), encoding="utf8")
    assert replace(trials).find_todo() == []
    return path


@pytest.mark.parametrize("weights", ["directory", "default", "private"])
def test_other_weights_make_other_trials(weights: str, corpus: Path) -> None:
    directory, name = write_elmo_config(corpus), "components.elmo.weights"
    options: dict[str, Any] = {}
    if weights == "directory":
        options = {"overrides": {name: str(directory)}}
    elif weights == "default":
        options = {"find_weights": lambda value: directory if value is None else Path(value)}
    else:
        config = (corpus / "tagger.cfg").read_text("utf8")
        config = config.replace('spacy_elmo.ElmoListener.v1"', f'spacy_elmo.Elmo.v1"\nweights = "{directory}"')
        (corpus / "tagger.cfg").write_text(config, encoding="utf8")
        name = "components.tagger.model.tok2vec.weights"
    trials = make_trials(corpus, **options)
    path = pretend_done(trials)
    save_weights(random_bilm(2), directory)
    refuse(replace(trials), rf"differ in the files of {name}, such as .*100/0\. Replace .*--overwrite")
    identity = {key: value for key, value in trials.identity.items() if key != name}
    path.write_text(json.dumps({"identity": identity}), encoding="utf8")
    refuse(replace(trials), f"of an earlier version, which took no note of the files of {name}, .*--overwrite")


def test_bundled_weights_are_noted(corpus: Path) -> None:
    write_elmo_config(corpus)
    expected = checksum(find_weights(None))
    for weights in (None, "en_elmo_sm"):
        trials = make_trials(corpus, overrides={"components.elmo.weights": weights})
        assert trials.identity["components.elmo.weights"] == expected
    # Those that are a path have their name there.
    config = (corpus / "tagger.cfg").read_text("utf8").replace("[paths]\n", "[paths]\nweights = null\n")
    (corpus / "tagger.cfg").write_text(config, encoding="utf8")
    names = {"components.elmo.weights": "${paths.weights}", "paths.weights": str(corpus / "weights")}
    identity = make_trials(corpus, overrides=names).identity
    assert identity["paths.weights"] == checksum(corpus / "weights")
    assert "components.elmo.weights" not in identity
    # Those that cannot be read are refused later, by spaCy or by the component.
    for wrong in (3, "nowhere"):
        trials = make_trials(corpus, overrides={"components.elmo.weights": wrong})
        assert "components.elmo.weights" not in trials.identity


@pytest.mark.parametrize("metrics", [{"identity": "mine"}, {}, []])
def test_metrics_of_somebody_else_stay(metrics: Any, corpus: Path) -> None:
    path = pretend_done(make_trials(corpus))
    path.write_text(json.dumps(metrics), encoding="utf8")
    refuse(make_trials(corpus), f"{path} is not the metrics of a trial: .* Move it away, or choose")


def test_overwrite_replaces_all_trials_but_not_before_it_can_start(corpus: Path) -> None:
    run_all(make_trials(corpus, seeds=2))
    for place in (Place(100, 2), Place(50, 0)):
        place.below(corpus / "out").mkdir(parents=True)  # begun and interrupted
    (corpus / "out" / "100" / "1" / "notes.txt").write_text("keep me", encoding="utf8")
    wrong = make_trials(corpus, overwrite=True, overrides={"components.tagger.factory": "nothing"})
    with pytest.raises(TrialError, match="share 100, seed 0 failed: ValueError: .*E002"):
        run_all(wrong)
    assert len(list((corpus / "out").rglob(METRICS))) == 2
    run_all(make_trials(corpus, overwrite=True, overrides={"training.dropout": 0.2}))
    # A seed that was not asked for any more must not be compared with the new ones.
    assert [path.parent.name for path in (corpus / "out").rglob(METRICS)] == ["0"]
    assert (corpus / "out" / "100" / "1" / "notes.txt").exists()
    # Nor must it seem that others did not come to an end.
    assert find_places(corpus / "out") == [Place(100, 0), Place(100, 1)]
    assert not (corpus / "out" / "50").exists()


def test_an_interrupted_command_goes_on(corpus: Path) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    trials = make_trials(corpus, seeds=2)
    trials.run(Place(100, 0))
    before_update.append(interrupt)
    with pytest.raises(KeyboardInterrupt):
        trials.run(Place(100, 1))
    before_update.clear()
    assert (corpus / "out" / "100" / "1").is_dir()
    trials = make_trials(corpus, seeds=2)
    assert trials.find_todo() == [Place(100, 1)]
    resumed = run_all(trials)
    straight = make_trials(corpus, seeds=2, output=corpus / "straight").run(Place(100, 1))
    assert resumed[0]["scores"]["tag_per_type"] == straight["scores"]["tag_per_type"]
    # What a kill would leave of the metrics, were they not written in one piece.
    path = corpus / "out" / "100" / "0" / METRICS
    path.write_bytes(path.read_bytes()[:-10])
    assert make_trials(corpus, seeds=2).find_todo() == [Place(100, 0)]


def test_a_failure_is_named_and_explained(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise RuntimeError("out of luck")

    before_update.append(fail)
    log = corpus / "out" / "50" / "0" / "training.log"
    with pytest.raises(TrialError, match=f"with share 50, seed 0 failed: RuntimeError: out of luck.*{log}"):
        run_all(make_trials(corpus, shares=[50.0]))
    assert "in fail" in log.read_text("utf8")
    before_update.clear()

    def fill_disk(path: Path, text: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(trials_module, "write_file", fill_disk)
    trials = make_trials(corpus)
    with pytest.raises(OSError, match="No space left"):
        run_all(trials)
    assert make_trials(corpus).find_todo() == trials.find_todo()


def test_scores_may_be_integers_of_numpy(corpus: Path) -> None:
    config = CONFIG + '\n[components.tagger.scorer]\n@scorers = "spacy_elmo.tests.numpy_scorer"\n'
    (corpus / "tagger.cfg").write_text(config, encoding="utf8")
    run_all(make_trials(corpus))
    metrics = json.loads((corpus / "out" / "100" / "0" / METRICS).read_text("utf8"))
    assert (metrics["scores"]["tag_acc"], metrics["scores"]["n_tags"]) == (0.5, 3)


@registry.scorers("spacy_elmo.tests.numpy_scorer")
def make_numpy_scorer() -> Callable[..., dict[str, Any]]:
    def score(examples: Sequence[Example], **options: Any) -> dict[str, Any]:
        return {"tag_acc": numpy.float32(0.5), "n_tags": numpy.int64(3)}

    return score


def test_trials_forget_the_models_of_those_before(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    (metrics,) = run_all(make_trials(corpus, overrides=data, test=corpus / "both"))
    assert (metrics["n_docs"], metrics["config"]["n_test_docs"]) == (24, 24)
    with pytest.raises(TrialError, match=r"share 50, seed 0 failed: .*b\.spacy stores other attributes"):
        run_all(make_trials(corpus, overrides=data, shares=[50.0], output=corpus / "shares"))


def test_trials_that_cannot_start(corpus: Path) -> None:
    def refuse_to_start(message: str, **options: Any) -> None:
        refuse(make_trials(corpus, **options), message)
        assert not (corpus / "out").exists()

    refuse_to_start(r"has no paths\.train.*--paths\.train train\.spacy", overrides={"paths.train": None})
    refuse_to_start("no docs at .*no such file", overrides={"paths.train": "nothing.spacy"})
    refuse_to_start("no docs at .*no such file", test=corpus / "nothing.spacy")
    DocBin().to_disk(corpus / "empty.spacy")
    refuse_to_start(r"no docs at .*empty\.spacy: it is empty", test=corpus / "empty.spacy")
    refuse_to_start("it is empty", overrides={"paths.train": str(corpus / "empty.spacy")})
    refuse_to_start("leave --system.seed and --training.seed out", overrides={"training.seed": 3})
    refuse_to_start("is a file", output=corpus / "tagger.cfg")
    fixed = CONFIG + '\n[corpora]\n\n[corpora.train]\n@readers = "spacy.Corpus.v1"\npath = "train.spacy"\n'
    (corpus / "tagger.cfg").write_text(fixed, encoding="utf8")
    refuse_to_start(r"\[corpora\.train\] does not read \$\{paths\.train\}", shares=[50.0, 100.0])
    assert make_trials(corpus).find_todo()


def test_trials_as_typed(corpus: Path) -> None:
    here = os.getcwd()
    os.chdir(corpus)
    data = ("--test", "test.spacy", "--paths.train", "train.spacy", "--paths.dev", "dev.spacy")
    try:
        answer = run("trials", "tagger.cfg", "out", *data, "--seeds", 1, "--shares", "50,100")
        assert "2 trials" in answer
        assert "share 50, seed 0: tag_acc" in answer
        assert "2 trials, 2 of them done already: skipped" in run(
            "trials", "tagger.cfg", "out", *data, "-s1", "-p50,100"
        )
        assert "above 0 and up to 100" in run("trials", "tagger.cfg", "out", *data, "--shares", "0", code=1)
        assert "differ in their test data" in run("trials", "tagger.cfg", "out", *data, "--test", "dev.spacy", code=1)
        run("trials", "tagger.cfg", "out", *data, "--seeds", 0, code=2)
        before_update.append(lambda: (_ for _ in ()).throw(MemoryError("too small")))
        answer = run("trials", "tagger.cfg", "other", *data, code=1)
        assert "MemoryError: too small" in answer
        assert "repeat the command to go on" in answer
        answer = run("trials", "tagger.cfg", "other", *data, "--overwrite", code=1)
        assert "Repeat the command without --overwrite to go on: trials that are done are kept." in answer
        assert "repeated, without --overwrite" in run("trials", "--help")
        with lock(Path("out")):
            answer = run("trials", "tagger.cfg", "out", *data, "--seeds", 2, code=1)
        assert "Another process is at work in out. Wait until it is done, or choose another place." in answer
        assert find_places(Path("out")) == [Place(50, 0), Place(100, 0)]
    finally:
        os.chdir(here)


def test_constructor_opens_no_file(tmp_path: Path) -> None:
    trials = make_trials(tmp_path / "nowhere")
    assert trials.places == [Place(100, 0)]
    with pytest.raises(OSError, match="nowhere"):
        trials.find_todo()


def test_a_lock_ends_with_its_process(tmp_path: Path) -> None:
    code = f"""
import sys
from pathlib import Path
from spacy_elmo.experiments.locks import lock
with lock(Path({str(tmp_path)!r})):
    sys.stdout.write("locked\\n")
    sys.stdout.flush()
    sys.stdin.read()
"""
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"locked\n"
        with pytest.raises(ValueError, match="Another process is at work"), lock(tmp_path):
            pass
        process.kill()
    for _ in range(2):
        with lock(tmp_path):
            assert list(tmp_path.iterdir()) == []
