"""Several comparisons on one page."""

import json
from pathlib import Path
from typing import Any

import pytest

from ..command_line import run
from .html_reader import HTMLReader
from .test_pretraining_section import write_pretraining
from .written_results import contextuality, neighbours, probe, senses, write_grid_result
from .written_trials import RARE, write_trials


def test_report_of_comparisons_and_of_a_language_model(tmp_path: Path, baseline: Path) -> None:
    elmo = write_trials(tmp_path / "elmo", {100.0: [0.50, 0.52]}, labels={RARE: 0.6})
    comparisons = [f"{baseline},{elmo}", f"Two: less: {elmo}, {baseline}"]
    bilm = write_pretraining(tmp_path / "bilm")
    page = tmp_path / "pages" / "report.html"
    assert "It has 3 sections" in run("report", page, *comparisons, "--bilm", bilm)
    read = HTMLReader(page.read_text(encoding="utf8"))
    assert read.texts_in("h1") == ["What ELMo knows, and what it gains"]
    assert read.texts_in("h2") == [
        "Named entities: ELMo against Baseline",
        "Two: less",
        "Language model: bilm",
        "Command to write this page",
    ]
    assert read.texts_in("td")[-4:] == ["1,234.6", "80.0", "85.5", "900.0"]
    assert len(read.tags("svg")) == 5
    results = [text for text in read.texts_in("p") if "on average" in text]
    assert ["8.0 points higher" in results[0], "8.0 points lower" in results[1]] == [True, True]
    trials, reverse, command = (code.splitlines() for code in read.texts_in("code"))
    assert len(trials) == 2
    assert reverse == trials[::-1]
    assert command == [
        f"python -m spacy elmo report {page} {baseline},{elmo} 'Two: less: {elmo}, {baseline}' --bilm {bilm}"
    ]


def test_report_has_a_title_and_several_language_models(tmp_path: Path) -> None:
    one, two = write_pretraining(tmp_path / "one"), write_pretraining(tmp_path / "two")
    page = tmp_path / "report.html"
    run("report", page, "--bilm", one, "--bilm", two, "--title", "A & B")
    read = HTMLReader(page.read_text(encoding="utf8"))
    assert read.texts_in("h1") == ["A & B"]
    assert read.texts_in("h2")[:2] == ["Language model: one", "Language model: two"]
    assert read.texts_in("code") == [f"python -m spacy elmo report {page} --bilm {one} --bilm {two} --title 'A & B'"]


def test_report_of_results(tmp_path: Path) -> None:
    baseline = write_trials(tmp_path / "baseline", {10.0: [0.1, 0.2, 0.3], 100.0: [0.3, 0.3, 0.4]})
    elmo = write_trials(tmp_path / "elmo", {10.0: [0.4, 0.4, 0.5], 100.0: [0.6, 0.6, 0.7]})
    grids = [
        write_grid_result(tmp_path / task / name, name, {variant: [0.5, 0.6]}, data=task)
        for name, variant in (("layers", "last"), ("places", "both"))
        for task in ("one", "two")
    ]
    others = {"neighbours": neighbours(), "dep": probe("dep"), "senses": senses(), "tag": probe(), "c": contextuality()}
    paths = [tmp_path / f"{name}.json" for name in others]
    for path, result in zip(paths, others.values(), strict=True):
        path.write_text(json.dumps(result), encoding="utf8")
    page = tmp_path / "page.html"
    assert "It has 8 sections" in run("report", page, f"{baseline},{elmo}", *grids, *paths)
    read = HTMLReader(page.read_text(encoding="utf8"))
    assert read.texts_in("h2") == [
        "How much training data does ELMo save?",
        "Which layers should a task use?",
        "Where should ELMo go in?",
        "Which layers do tasks weight most?",
        "Does a vector know the sense of a word?",
        "What does each layer know of grammar?",
        "Which layer knows what a word means?",
        "How much does a vector depend on its sentence?",
        "Command to write this page",
    ]
    (fractions,) = (text for text in read.texts_in("p") if "with 10% of the training data" in text)
    assert "‘ELMo’ reaches the mean of ‘Baseline’, 33.3" in fractions
    assert sum(tag == "polygon" for tag, _ in read.seen) == 2  # a band for each model
    assert read.texts_in("mark").count("play") == 10
    assert "0.900 A new" in read.texts_in("li")
    assert "<b>." in read.texts_in("li")


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (probe(probes=[]), "result.json is not what `spacy elmo probe --output` writes, or a damaged one"),
        (senses(tests=[{}]), "result.json is not what `spacy elmo senses --output` writes, or a damaged one: 'name'"),
        ({**contextuality(), "layers": [3]}, "not what `spacy elmo contextuality --output` writes"),
        ({**neighbours(), "uses": [{}]}, "not what `spacy elmo neighbours --output` writes"),
    ],
)
def test_damaged_results(result: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("result.json").write_text(json.dumps(result), encoding="utf8")
    assert message in run("report", "report.html", "result.json", code=1)


@pytest.mark.parametrize(
    ("message", "arguments"),
    [
        ("There is nothing to report", ["report.html"]),
        ("must end in .html, got 'baseline,elmo'", ["baseline,elmo"]),
        ("is a directory, and the page is a file", ["pages.html", "baseline,other"]),
        ("separated by commas, such as out/baseline,out/elmo; got 'baseline'", ["report.html", "baseline", "other"]),
        ("There are no trials in nowhere: no such directory", ["report.html", "baseline,nowhere"]),
        ("nowhere.json cannot be read", ["report.html", "nowhere.json"]),
        ("There is no pretraining in nowhere", ["report.html", "--bilm", "nowhere"]),
    ],
)
def test_reports_that_cannot_be_written(
    message: str, arguments: list[str], tmp_path: Path, baseline: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_trials(tmp_path / "other", {100.0: [0.5]})
    (tmp_path / "pages.html").mkdir()
    (tmp_path / "report.html").write_text("old", encoding="utf8")
    assert message in run("report", *arguments, code=1)
    assert (tmp_path / "report.html").read_text(encoding="utf8") == "old"
