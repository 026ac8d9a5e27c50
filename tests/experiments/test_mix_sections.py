"""Sections about learned mixes: means over seeds."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from spacy_elmo.experiments.page import figures_of
from spacy_elmo.experiments.trial_id import TRIAL_METRICS

from .written_trials import compare, write_trials


def test_mixes_with_the_same_name_are_not_averaged(tmp_path: Path, baseline: Path) -> None:
    mixes = [{"component": "ner", "part": "", "weights": weights, "gamma": 1.0} for weights in ([1.0, 0.0], [0.0, 1.0])]
    elmo = write_trials(tmp_path / "elmo", {100.0: [0.50, 0.52]}, mixes=mixes)
    figure = next(figure for figure in figures_of(compare(baseline, elmo)) if figure.name == "mixes-1")
    assert "1.00" in figure.svg
    assert "0.50" not in figure.svg


def test_damaged_mixes_are_refused(tmp_path: Path, baseline: Path) -> None:
    elmo = write_trials(tmp_path / "elmo", {100.0: [0.50]}, mixes=[{"component": "ner", "part": ""}])
    with pytest.raises(
        ValueError, match="elmo is not a directory of trials with learned mixes, or a damaged one: 'weights'"
    ):
        compare(baseline, elmo)


def test_learned_mixes_are_drawn(tmp_path: Path, baseline: Path) -> None:
    elmo = write_trials(tmp_path / "elmo", {100.0: [0.50, 0.52]})
    for seed, (weights, gamma) in enumerate([([0.2, 0.8], 1.0), ([0.4, 0.6], 2.0)]):
        path = elmo / "100" / str(seed) / TRIAL_METRICS
        metrics = json.loads(path.read_text("utf8"))
        metrics["mixes"] = [{"component": "ner", "place": "elmo_in", "weights": weights, "gamma": gamma}]
        path.write_text(json.dumps(metrics), encoding="utf8")
    page = compare(baseline, elmo)
    *_, section = (part for part in page.sections if part.title == "Layer weights of ELMo")
    (figure,) = figures_of(section)
    assert figure.caption == "The weights of the layers, means of 2 trainings"
    texts = [text.text for text in ElementTree.fromstring(figure.svg).iter("{http://www.w3.org/2000/svg}text")]
    assert texts[-4:] == ["ner.elmo_in", "0.30", "0.70", "gamma 1.50"]
