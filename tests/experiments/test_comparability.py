"""What trials have in common, and caveats."""

from pathlib import Path
from typing import Any

import pytest

from spacy_elmo.experiments.comparability import find_caveats
from spacy_elmo.experiments.trial_id import TrialId
from spacy_elmo.experiments.trial_set import read_trial_sets

from .written_trials import compare, tables_of, write_trials


def test_common_fractions_are_enough(tmp_path: Path, baseline: Path) -> None:
    small = write_trials(tmp_path / "small", {10.0: [0.3, 0.4]})
    with pytest.raises(ValueError, match=r"no fraction .* in common: .*baseline has 100%; .*small has 10%"):
        compare(baseline, small)
    both = write_trials(tmp_path / "both", {10.0: [0.5, 0.6], 100.0: [0.9]})
    page = compare(small, both)
    assert "‘Small’ and ‘Both’ were trained on 10% of my train.spacy (20 documents)." in str(page.sections[0].blocks)
    assert "were trained on my train.spacy (200 documents)." in str(compare(baseline, both).sections[0].blocks)
    assert "With 10% of the training data: ‘Both’ scores 20.0 points higher than ‘Small’" in str(page.blocks)


def test_scores_that_are_missing(tmp_path: Path, baseline: Path) -> None:
    partly = write_trials(tmp_path / "partly", {100.0: [0.5, None, 0.7]})
    assert tables_of(compare(baseline, partly))["Named entities, F"][1][1:6] == [
        "60.00",
        "14.14",
        "50.00",
        "70.00",
        "2",
    ]
    with pytest.raises(ValueError, match=r"Not all trials have the score 'tag_acc'\. They have: ents_f, ents_p\."):
        compare(baseline, partly, score="tag_acc")
    with pytest.raises(ValueError, match=r"'speed' is not a score in per cent.* the trials have ents_f, ents_p\.$"):
        compare(baseline, partly, score="speed")
    assert "Named entities, precision" in tables_of(compare(baseline, partly, score="ents_p"))
    other = write_trials(
        tmp_path / "other",
        {100.0: [None]},
        scores={"cats_score": 0.5, "ents_p": None},
        score_weights={"cats_score": 1.0},
    )
    with pytest.raises(ValueError, match=r"no score in common.*baseline has ents_f; .*other has cats_score.*same task"):
        compare(baseline, other)


def test_other_training_data_are_named(tmp_path: Path, baseline: Path) -> None:
    other = write_trials(tmp_path / "other", {100.0: [0.5, 0.6]}, identity={"paths.train": "u", "paths.dev": "e"})
    TrialId(100.0, 2).directory(other).mkdir()
    caveats = find_caveats(read_trial_sets([baseline, other]))
    assert caveats == [
        "‘Other’ has 1 trial that did not finish, left out here.",
        "‘Other’ had other training data than ‘Baseline’: the data may be the cause of a difference.",
        "‘Other’ had other dev data than ‘Baseline’: the data may be the cause of a difference.",
    ]


def test_sets_with_one_seed_are_named(tmp_path: Path) -> None:
    sets = [write_trials(tmp_path / name, {100.0: [0.5]}) for name in ("one", "two", "three")]
    assert find_caveats(read_trial_sets(sets)) == [
        "There is only one seed of ‘One’, ‘Two’ and ‘Three’, so that there is no standard deviation."
    ]


def test_other_settings_of_training_are_named(tmp_path: Path) -> None:
    def write(name: str, overrides: dict[str, Any], **training: Any) -> Path:
        config: dict[str, Any] = {"overrides": {"paths.train": name, **overrides}}
        if training:
            config["training"] = {"dropout": 0.1, "batcher": {"size": 10, "start": None}, **training}
        return write_trials(tmp_path / name, {100.0: [0.5, 0.6]}, config=config)

    def caveats(*directories: Path) -> list[str]:
        return find_caveats(read_trial_sets(directories))

    first = write("first", {"training.max_steps": 5}, max_steps=5, seed=0)
    # The source of a value does not matter, nor the path of the data.
    assert caveats(first, write("same", {}, max_steps=5, batcher={"size": 10}, seed=1)) == []
    other = write("other", {"components.ner.moves": 3}, max_steps=6, batcher={"size": 20})
    assert caveats(first, other) == [
        "‘Other’ had other settings than ‘First’, which may be the cause of a difference: "
        "components.ner.moves, training.batcher.size, training.max_steps."
    ]
    # Earlier versions recorded only the overrides.
    assert caveats(first, write("old", {"training.max_steps": 5})) == []
    (caveat,) = caveats(first, write("older", {"training.max_steps": 7}))
    assert caveat.endswith("a difference: training.max_steps.")
