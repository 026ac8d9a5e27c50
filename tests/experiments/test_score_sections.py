"""Sections about scores: the numbers by hand."""

from pathlib import Path

from spacy_elmo.experiments.comparability import find_caveats
from spacy_elmo.experiments.comparison import write_comparison
from spacy_elmo.experiments.page import figures_of
from spacy_elmo.experiments.trial_set import read_trial_sets

from .written_trials import compare, tables_of, write_trials


def test_one_seed_has_no_deviation(tmp_path: Path) -> None:
    directories = [write_trials(tmp_path / name, {100.0: [0.5]}, labels={"PER": 0.5}) for name in ("a", "b")]
    page = compare(*directories)
    assert tables_of(page)["Named entities, F"][1] == ["B", "50.00", "–", "50.00", "50.00", "1", "+0.00"]
    assert "±" not in str(tables_of(page).values())
    assert find_caveats(read_trial_sets(directories)) == [
        "There is only one seed of ‘A’ and ‘B’, so that there is no standard deviation."
    ]


def test_less_training_data(tmp_path: Path) -> None:
    scores = {1.0: [0.1, 0.2], 10.0: [0.3, 0.3], 100.0: [0.4, 0.4]}
    baseline = write_trials(tmp_path / "baseline", scores)
    elmo = write_trials(tmp_path / "elmo", {1.0: [0.2, 0.2], 10.0: [0.4, 0.5], 50.0: [0.6], 100.0: [0.7, 0.7]})
    page = compare(baseline, elmo)
    caption = "Named entities, F: mean ± standard deviation, and the difference of the means from Baseline"
    assert tables_of(page)[caption] == [
        ["1% (2 documents)", "15.00 ± 7.07", "20.00 ± 0.00", "+5.00", "2"],
        ["10% (20 documents)", "30.00 ± 0.00", "45.00 ± 7.07", "+15.00", "2"],
        ["100% (200 documents)", "40.00 ± 0.00", "70.00 ± 0.00", "+30.00", "2"],
    ]
    assert "‘ELMo’ reaches the mean of ‘Baseline’, 40.0, with 10% of the training data." in str(page.blocks)
    # A baseline that is as good with less data shows nothing about the others.
    flat = write_trials(tmp_path / "flat", {1.0: [0.1], 10.0: [0.4], 100.0: [0.4]})
    same = write_trials(tmp_path / "same", {1.0: [0.2], 10.0: [0.5], 100.0: [0.5]})
    assert "reaches" not in str(compare(flat, same).blocks)
    (caveat,) = find_caveats(read_trial_sets([baseline, elmo]))
    assert caveat.startswith("‘ELMo’ also has trials with 50% of the training data.")
    assert [figure.name for figure in figures_of(page)] == ["ents_f-seeds", "ents_f-fractions"]


def test_four_models(tmp_path: Path, baseline: Path) -> None:
    others = [write_trials(tmp_path / f"run_{i}", {100.0: [0.5, 0.1 * i]}, labels={"PER": 0.1 * i}) for i in range(3)]
    page = compare(baseline, *others)
    assert page.title == "Named entities: Run 0, Run 1, Run 2 against Baseline"
    assert len(page.blocks) == 3
    rows = tables_of(page)["F of each label: mean ± standard deviation, and the difference of the means from Baseline"]
    assert rows[1] == [
        "PER",
        "50.00 ± 0.00",
        "0.00 ± 0.00",
        "10.00 ± 0.00",
        "20.00 ± 0.00",
        "−50.00",
        "−40.00",
        "−30.00",
    ]


def test_scores_of_any_name_have_figures(tmp_path: Path) -> None:
    changes = {"score_weights": {"ents_f": 0.0, "spans_a/b (c)_f": 1.0}, "scores": {"spans_a/b (c)_f": 0.5}}
    one, other = (write_trials(tmp_path / name, {100.0: [0.5]}, **changes) for name in ("one", "other"))
    write_comparison(compare(one, other), tmp_path / "out")
    assert (tmp_path / "out" / "spans_a-b--c-_f-seeds.svg").exists()
