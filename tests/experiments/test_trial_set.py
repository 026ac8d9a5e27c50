"""Trials are read back, and those that cannot be compared are refused."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from spacy_elmo.experiments.comparison import compare_command
from spacy_elmo.experiments.trial_id import TRIAL_METRICS, TrialId
from spacy_elmo.experiments.trial_set import default_names, read_trial_set, read_trial_sets

from .written_trials import compare, write_trials


def test_names_come_from_directories() -> None:
    assert default_names([Path("x/baseline"), Path("x/with_elmo-2")]) == ["Baseline", "With ELMo 2"]
    assert default_names([Path("ner/elmo"), Path("tagger/elmo")]) == ["NER, ELMo", "Tagger, ELMo"]
    assert default_names([Path("biLM"), Path("_")]) == ["biLM", "_"]


def test_names_that_are_spelled_alike(tmp_path: Path) -> None:
    directories = [write_trials(tmp_path / name, {100.0: [0.5]}) for name in ("run_1", "run-1")]
    assert [trial_set.name for trial_set in read_trial_sets(directories)] == list(map(str, directories))
    assert compare(*directories, names=["A", "B"]).title == "Named entities: B against A"
    assert compare_command(read_trial_sets(directories, ["A", "B"]), Path("out"), None, "ents_p") == (
        f"python -m spacy elmo compare {directories[0]} {directories[1]} --output out --names A,B --score ents_p"
    )


def test_trials_of_different_configs_are_refused(tmp_path: Path, baseline: Path) -> None:
    mixed = write_trials(tmp_path / "mixed", {100.0: [0.5, 0.5]}, identity={"config": "one"})
    path = TrialId(100.0, 1).directory(mixed) / TRIAL_METRICS
    path.write_text(path.read_text(encoding="utf8").replace('"one"', '"other"'), encoding="utf8")
    with pytest.raises(ValueError, match="different configs or data: fraction 100%, seed 0 and fraction 100%, seed 1"):
        compare(baseline, mixed)


def test_trials_that_cannot_be_compared(tmp_path: Path, baseline: Path) -> None:
    def expect_refusal(message: str, *directories: Path, **options: Any) -> None:
        with pytest.raises(ValueError, match=message):
            compare(*directories, **options)

    expect_refusal(f"two directories of trials or more: .* Got {baseline}", baseline)
    expect_refusal("no such directory", baseline, tmp_path / "nothing")
    (tmp_path / "empty").mkdir()
    expect_refusal(f"no finished trial in {tmp_path / 'empty'}", baseline, tmp_path / "empty")
    expect_refusal("given twice: ", baseline, baseline)
    expect_refusal("2 directories of trials and 1 names", baseline, tmp_path, names=["A"])
    expect_refusal("same name: A, A. Set others with --names", baseline, tmp_path, names=["A", "A"])
    other = write_trials(tmp_path / "other", {100.0: [0.5]}, identity={"test": "xyz"}, config={"test": "dev.spacy"})
    expect_refusal(r"other test data .* seed 0 on dev\.spacy, the other on test\.spacy", baseline, other)
    gold = write_trials(tmp_path / "gold", {100.0: [0.5]}, identity={"gold_preproc": "True"})
    expect_refusal(
        f"{gold} was scored on other tokens than {baseline}: one of them with --gold-preproc, the other without it. Run the "
        "trials of both with --gold-preproc, or of both without it",
        baseline,
        gold,
    )
    path = TrialId(100.0, 0).directory(gold) / TRIAL_METRICS
    whole = path.read_text(encoding="utf8")
    path.write_text(whole[:-30], encoding="utf8")
    expect_refusal(f"{path} cannot be read", baseline, gold)
    for text, missing in (("[]", "fraction"), (whole.replace('"scores"', '"x"'), "scores"), ("{}", "fraction")):
        path.write_text(text, encoding="utf8")
        expect_refusal(f"is not the metrics of a trial: it has no {missing}", baseline, gold)
    path.write_text(whole.replace('"pipeline"', '"x"'), encoding="utf8")
    expect_refusal("it has no config.pipeline", baseline, gold)
    shutil.copytree(TrialId(100.0, 0).directory(baseline), TrialId(100.0, 3).directory(baseline))
    expect_refusal("metrics of fraction 100%, seed 0, perhaps as a copy", baseline, other)


def test_trials_of_version_0_1_are_read(tmp_path: Path) -> None:
    old = Path(__file__).parent / "trials_of_0_1" / "out"
    assert json.loads((old / "50" / "0" / TRIAL_METRICS).read_text("utf8"))["share"] == 50
    trial_set = read_trial_set(old, "Old")
    assert (trial_set.fractions, trial_set.seeds, trial_set.n_unfinished) == ([50, 100], [0], 0)
    assert trial_set.main_scores(100) == ["tag_acc"]
    assert trial_set.sample("tag_acc", 100).values == pytest.approx([100 * 8 / 9])
    assert trial_set.label_samples("tag_per_type", 50)["VERB"].mean == pytest.approx(80)
    # Old and new trials can be compared.
    new = shutil.copytree(old, tmp_path / "new")
    for path in new.rglob(TRIAL_METRICS):
        path.write_text(path.read_text("utf8").replace('"share"', '"fraction"'), encoding="utf8")
    assert compare(old, new).title == "Tagging: New against Out"
