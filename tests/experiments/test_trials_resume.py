"""Trials that exist: finished ones are kept, others are run again, and no other file is lost."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from spacy_elmo.experiments.trial_id import TRIAL_METRICS, TrialId, find_trials
from spacy_elmo.experiments.trials import TrialError

from ..command_line import run
from .tagger import before_update, expect_refusal, make_trials, mark_as_finished, run_all

pytestmark = pytest.mark.slow


def test_finished_trials_are_kept(corpus: Path) -> None:
    run_all(make_trials(corpus, seeds=2))
    path = corpus / "out" / "100" / "0" / TRIAL_METRICS
    before = path.stat().st_mtime_ns
    # The same data elsewhere are the same data.
    shutil.copy(corpus / "train.spacy", corpus / "copy.spacy")
    trials = make_trials(corpus, seeds=3, overrides={"paths.train": str(corpus / "copy.spacy")})
    assert trials.find_unfinished() == [TrialId(100, 2)]
    run_all(trials)
    assert path.stat().st_mtime_ns == before
    for changes, message in {
        ("training.dropout", 0.2): "the config or its overrides",
        ("paths.train", str(corpus / "dev.spacy")): "the training data",
        ("paths.dev", str(corpus / "train.spacy")): "the dev data",
    }.items():
        expect_refusal(make_trials(corpus, overrides=dict([changes])), f"differ in {message}")
    other = make_trials(corpus, test_path=corpus / "dev.spacy")
    expect_refusal(other, r"differ in the test data; see .*out/100/0\. Replace .*--overwrite")
    expect_refusal(make_trials(corpus, gold_preproc=True), "differ in --gold-preproc")
    assert path.stat().st_mtime_ns == before


@pytest.mark.parametrize("metrics", [{"identity": "mine"}, {}, []])
def test_other_metrics_files_are_kept(metrics: Any, corpus: Path) -> None:
    path = mark_as_finished(make_trials(corpus))
    path.write_text(json.dumps(metrics), encoding="utf8")
    expect_refusal(make_trials(corpus), f"{path} is not the metrics of a trial: .* Move it away, or choose")


def test_overwrite_replaces_all_trials_but_not_before_it_can_start(corpus: Path) -> None:
    run_all(make_trials(corpus, seeds=2))
    for trial_id in (TrialId(100, 2), TrialId(50, 0)):
        trial_id.directory(corpus / "out").mkdir(parents=True)  # started and interrupted
    (corpus / "out" / "100" / "1" / "notes.txt").write_text("keep me", encoding="utf8")
    wrong = make_trials(corpus, overwrite=True, overrides={"components.tagger.factory": "nothing"})
    with pytest.raises(TrialError, match="fraction 100%, seed 0 failed: ValueError: .*E002"):
        run_all(wrong)
    assert len(list((corpus / "out").rglob(TRIAL_METRICS))) == 2
    run_all(make_trials(corpus, overwrite=True, overrides={"training.dropout": 0.2}))
    # An old seed must not be compared with the new ones.
    assert [path.parent.name for path in (corpus / "out").rglob(TRIAL_METRICS)] == ["0"]
    assert (corpus / "out" / "100" / "1" / "notes.txt").exists()
    # Old trials must not count as unfinished ones.
    assert find_trials(corpus / "out") == [TrialId(100, 0), TrialId(100, 1)]
    assert not (corpus / "out" / "50").exists()


def test_an_interrupted_command_resumes(corpus: Path) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    trials = make_trials(corpus, seeds=2)
    trials.run(TrialId(100, 0))
    before_update.append(interrupt)
    with pytest.raises(KeyboardInterrupt):
        trials.run(TrialId(100, 1))
    before_update.clear()
    assert (corpus / "out" / "100" / "1").is_dir()
    trials = make_trials(corpus, seeds=2)
    assert trials.find_unfinished() == [TrialId(100, 1)]
    resumed = run_all(trials)
    straight = make_trials(corpus, seeds=2, output=corpus / "straight").run(TrialId(100, 1))
    assert resumed[0]["scores"]["tag_per_type"] == straight["scores"]["tag_per_type"]
    # A file that is cut off is not a finished trial.
    path = corpus / "out" / "100" / "0" / TRIAL_METRICS
    path.write_bytes(path.read_bytes()[:-10])
    assert make_trials(corpus, seeds=2).find_unfinished() == [TrialId(100, 0)]


def test_trials_as_a_command(corpus: Path) -> None:
    here = os.getcwd()
    os.chdir(corpus)
    data = ("--test", "test.spacy", "--paths.train", "train.spacy", "--paths.dev", "dev.spacy")
    try:
        answer = run("trials", "tagger.cfg", "out", *data, "--seeds", 1, "--fractions", "50,100")
        assert "2 trials" in answer
        assert "fraction 50%, seed 0: tag_acc" in answer
        assert "2 trials, 2 of them already finished" in run("trials", "tagger.cfg", "out", *data, "-s1", "-p50,100")
        assert "above 0 and up to 100" in run("trials", "tagger.cfg", "out", *data, "--fractions", "0", code=1)
        assert "differ in the test data" in run("trials", "tagger.cfg", "out", *data, "--test", "dev.spacy", code=1)
        run("trials", "tagger.cfg", "out", *data, "--seeds", 0, code=2)
        before_update.append(lambda: (_ for _ in ()).throw(MemoryError("too small")))
        answer = run("trials", "tagger.cfg", "other", *data, code=1)
        assert "MemoryError: too small" in answer
        assert "Finished trials are kept: repeat the command to resume." in answer
        answer = run("trials", "tagger.cfg", "other", *data, "--overwrite", code=1)
        assert "Finished trials are kept: repeat the command without --overwrite to resume." in answer
        assert "repeat it without --overwrite" in run("trials", "--help")
        with make_trials(corpus).lock():
            answer = run("trials", "tagger.cfg", "out", *data, "--seeds", 2, code=1)
        assert (
            "Another process is running trials in out. Wait until it has finished, or choose another directory."
            in answer
        )
        assert find_trials(Path("out")) == [TrialId(50, 0), TrialId(100, 0)]
    finally:
        os.chdir(here)


def test_shares_is_another_spelling_of_fractions(corpus: Path) -> None:
    paths = {"--test": "test.spacy", "--paths.train": "train.spacy", "--paths.dev": "dev.spacy"}
    data = [part for name, file in paths.items() for part in (name, str(corpus / file))]
    answer = run("trials", corpus / "tagger.cfg", corpus / "out", *data, "--seeds", "1", "--shares", "50")
    assert "fraction 50%, seed 0: tag_acc" in answer


def test_a_killed_process_leaves_no_lock(tmp_path: Path) -> None:
    code = f"""
import sys
from pathlib import Path
from tests.experiments.tagger import make_trials
with make_trials(Path({str(tmp_path)!r})).lock():
    sys.stdout.write("locked\\n")
    sys.stdout.flush()
    sys.stdin.read()
"""
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"locked\n"
        with pytest.raises(ValueError, match="Another process is running trials"), make_trials(tmp_path).lock():
            pass
        process.kill()
    for _ in range(2):
        with make_trials(tmp_path).lock():
            assert find_trials(tmp_path / "out") == []


@pytest.mark.parametrize("error", [OSError("No locks available"), NotImplementedError("no flock")])
def test_file_systems_without_locks(error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: Any, **options: Any) -> None:
        raise error

    monkeypatch.setattr(FileLock, "acquire", fail)
    with make_trials(tmp_path).lock():
        assert (tmp_path / "out").is_dir()


OLD = Path(__file__).parent / "trials_of_0_1"


def test_trials_of_version_0_1_are_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(shutil.copytree(OLD, tmp_path / "old"))
    assert '"share": 50.0' in Path("out/50/0/metrics.json").read_text("utf8")
    trials = make_trials(Path(), fractions=[50.0, 100.0], seeds=2)
    assert trials.find_unfinished() == [TrialId(50, 1), TrialId(100, 1)]
