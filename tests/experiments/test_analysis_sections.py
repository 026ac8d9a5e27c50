"""Sections of the page about the analysis: the answers are made from the numbers, and the paper's numbers are beside ours."""

import json
from pathlib import Path

import pytest

from spacy_elmo.experiments.contextuality_section import make_contextuality_section
from spacy_elmo.experiments.grid_section import make_grid_section
from spacy_elmo.experiments.mix_sections import make_mix_question
from spacy_elmo.experiments.neighbour_section import make_neighbour_section
from spacy_elmo.experiments.page import Code, Figure, Paragraph, Section, Table
from spacy_elmo.experiments.probe_section import make_probe_section
from spacy_elmo.experiments.results import Result, read_result
from spacy_elmo.experiments.sense_section import make_sense_section

from .written_results import contextuality, neighbours, probe, senses, write_grid_result
from .written_trials import write_trials

GRID: Result = {"kind": "grid", "command": "python", "question": "Does it help?", "paper_table": None, "variants": []}


def answers_of(section: Section) -> list[str]:
    """Give the answers, and check the order: question, answer, explanation, numbers, command."""
    assert section.title.endswith("?")
    kinds = [block.kind if isinstance(block, Paragraph) else type(block).__name__ for block in section.blocks]
    assert kinds[0] == "result"
    assert kinds[-1] == "Code"
    return [block.text for block in section.blocks if isinstance(block, Paragraph) and block.kind == "result"]


def tables_of(section: Section) -> list[Table]:
    return [block for block in section.blocks if isinstance(block, Table)]


def read_grid(path: Path) -> tuple[Result, Path]:
    return read_result(path), path.parent


def test_probes() -> None:
    section = make_probe_section([probe(), probe("dep")])
    tags, deps = answers_of(section)
    assert tags == (
        "Of the single layers of small, LSTM layer 1 knows most of a token's tag: 92.0% are right, against 80.0% for the token "
        "layer and 90.0% for LSTM layer 2. The best guess without a vector, ‘most’, has 70.5%."
    )
    assert "a token's relation to its head" in deps
    tag_table, dep_table = tables_of(section)
    assert tag_table.header == ["Read from", "All words", "New words", "Paper"]
    assert [list(row) for row in tag_table.rows] == [
        ["majority", "13.0", "–", "–"],
        ["most", "70.5", "20.0", "–"],
        ["token layer", "80.00 ± 1.00", "60.00 ± 1.00", "–"],
        ["LSTM layer 1", "92.00 ± 1.00", "75.00 ± 1.00", "97.3"],
        ["LSTM layer 2", "90.00 ± 1.00", "70.00 ± 1.00", "96.8"],
        ["mean", "93.00 ± 1.00", "76.00 ± 1.00", "–"],
    ]
    assert dep_table.header == ["Read from", "All words", "New words"]  # the paper has tags only
    assert isinstance(section.blocks[-1], Code)
    assert section.blocks[-1].text.splitlines() == [probe()["command"], probe("dep")["command"]]


def test_senses() -> None:
    section = make_sense_section([senses()])
    assert answers_of(section) == [
        "Of the single layers of small, LSTM layer 2 finds the right sense most often: F1 64.5, 2.5 points above the first sense "
        "(62.0)."
    ]
    (table,) = tables_of(section)
    assert "1,200 training examples of 90 senses, 150 test examples" in table.caption
    assert table.header == ["Sense from", "one", "two", "all", "Paper"]
    assert [table.rows[0], table.rows[-2]] == [
        ["first sense", "60.0", "66.0", "62.0", "65.9"],
        ["LSTM layer 2", "64.5", "64.5", "64.5", "69.0"],
    ]


def test_senses_of_one_test_set_of_any_name() -> None:
    (table,) = tables_of(make_sense_section([senses(tests=[{"name": "all", "instances": 150}])]))
    assert "150 test examples" in table.caption


def test_senses_that_are_worse_than_a_baseline_or_have_none() -> None:
    high = [{"name": "most frequent sense", "f1": {"one": 70.0, "two": 70.0, "all": 70.0}}]
    (answer,) = answers_of(make_sense_section([senses(baselines=high)]))
    assert answer.endswith("F1 64.5, 5.5 points below the most frequent sense (70.0).")
    (answer,) = answers_of(make_sense_section([senses(baselines=[])]))
    assert answer.endswith("F1 64.5.")


def test_contextuality() -> None:
    section = make_contextuality_section([contextuality()])
    assert answers_of(section) == [
        "Most in LSTM layer 2 of small: two uses of the same word have a cosine of 0.60 there, against 0.30 of any two words. In "
        "the token layer they have 1.00 against 0.10."
    ]
    (table,) = tables_of(section)
    assert table.rows[1] == ["LSTM layer 1", "0.80", "0.40", "0.20"]
    (figure,) = (block for block in section.blocks if isinstance(block, Figure))
    assert figure.svg.count(">0.60<") == 1


def test_contextuality_of_too_little_text() -> None:
    result = contextuality()
    for layer in result["layers"]:
        layer["same_word"] = None
    section = make_contextuality_section([result])
    assert answers_of(section) == ["No word is in enough of the 100 sentences: read more text to find out."]
    assert tables_of(section)[0].rows[0] == ["token layer", "–", "0.30", "0.10"]


def test_neighbours() -> None:
    section = make_neighbour_section([neighbours()])
    assert answers_of(section) == [
        "“play” has 2 uses here. The number of nearest neighbours that they have in common is 2 of 2 in the token layer and 1 of 2 "
        "in LSTM layer 1. A layer that knows no context has all of them in common."
    ]
    token_layer, lstm_layer = tables_of(section)
    assert (token_layer.caption, lstm_layer.caption) == ("Token layer", "LSTM layer 1")
    assert lstm_layer.header == ["We [play].", "A [Play]."]
    assert lstm_layer.rows[0] == ("0.900 They [play] chess.", "0.900 A new [play] <b>.")


def test_grids_of_two_tasks_share_a_table(tmp_path: Path) -> None:
    ner = write_grid_result(
        tmp_path / "ner", "layers", {"no_elmo": [0.1, 0.2], "last": [0.3, 0.3], "concat": [0.3, 0.4]}
    )
    other = write_grid_result(tmp_path / "other", "layers", {"no_elmo": [0.5], "lambda_1": [0.4]}, data="other")
    section = make_grid_section([read_grid(ner), read_grid(other)])
    assert section.title == "Which layers should a task use?"
    assert answers_of(section) == [
        "Named entities, F, wnut17: ‘all layers, side by side’ scores highest, 35.0 on average, 20.0 points above ‘no ELMo’, which "
        "has 15.0. Its 2 seeds overlap with those of ‘last layer only’.",
        "Named entities, F, other: ‘no ELMo’ scores highest, 50.0. There is one seed: differences of a point or two may "
        "be chance.",
    ]
    (table,) = tables_of(section)
    paper = ["SQuAD (paper)", "SNLI (paper)", "SRL (paper)"]
    assert table.header == ["Variant", "Named entities, F, wnut17", "Named entities, F, other", *paper]
    assert {row[0]: row[1:] for row in table.rows} == {
        "no ELMo": ["15.00 ± 7.07", "50.00", "80.8", "88.1", "81.6"],
        "last layer only": ["30.00 ± 0.00", "–", "84.7", "89.1", "84.1"],
        "all layers, lambda 1": ["–", "40.00", "85.0", "89.3", "84.6"],
        "all layers, side by side": ["35.00 ± 7.07", "–", "–", "–", "–"],
    }
    assert [row[0] for row in table.rows] == [
        "no ELMo",
        "last layer only",
        "all layers, lambda 1",
        "all layers, side by side",
    ]


def test_grids_with_other_variants_of_the_same_question(tmp_path: Path) -> None:
    grids: list[tuple[Result, Path]] = []
    for task, names in (("one", "ab"), ("two", "cb")):
        result = {**GRID, "variants": [{"name": name, "title": name.upper()} for name in names]}
        for name in names:
            config = {"test": f"{task}/test.spacy"}
            write_trials(tmp_path / task / name, {100.0: [0.5, 0.5]}, config=config)
        grids.append((result, tmp_path / task))
    (table,) = tables_of(make_grid_section(grids))
    assert [list(row) for row in table.rows] == [
        ["A", "50.00 ± 0.00", "–"],
        ["B", "50.00 ± 0.00", "50.00 ± 0.00"],
        ["C", "–", "50.00 ± 0.00"],
    ]


def test_grid_says_what_is_missing(tmp_path: Path) -> None:
    result = {**GRID, "variants": [{"name": name, "title": name.upper()} for name in "abcd"]}
    config = {"test": "data/test.spacy"}
    write_trials(tmp_path / "a", {10.0: [0.5, 0.6]}, config=config)
    write_trials(tmp_path / "b", {10.0: [0.2], 100.0: [0.8]}, config=config)
    (tmp_path / "b" / "10" / "1").mkdir()
    section = make_grid_section([(result, tmp_path)])
    assert answers_of(section) == [
        "Named entities, F, data, 10% of the training data: ‘A’ scores highest, 55.0 on average. Each of its 2 seeds is above "
        "every other one."
    ]
    assert tables_of(section)[0].header == ["Variant", "Named entities, F, data, 10% of the training data"]
    assert [block.text for block in section.blocks if isinstance(block, Paragraph) and block.kind == "note"] == [
        "data: No trial of ‘C’ and ‘D’ is finished.",
        "data: ‘B’ also has trials with 100% of the training data. They are left out here, since not all others have them.",
        "data: ‘B’ has 1 trial that did not finish, left out here.",
        "data: The numbers of seeds differ: ‘A’ has 2 seeds and ‘B’ has 1 seed.",
    ]


def test_mixes_are_those_of_the_variant_with_most_of_them(tmp_path: Path) -> None:
    layers = write_grid_result(tmp_path / "layers", "layers", {"lambda_1": [0.3], "no_elmo": [0.2]})
    places = write_grid_result(tmp_path / "places", "places", {"input": [0.3], "both": [0.4, 0.4], "output": [0.2]})
    section = make_mix_question([read_grid(layers), read_grid(places)])
    assert section is not None
    assert answers_of(section) == [
        "‘wnut17.ner.input’ gives LSTM layer 1 the most weight, 0.50; ‘wnut17.ner.output’ gives LSTM layer 1 the most weight, 0.50. Equal weights would be "
        "0.33."
    ]
    assert isinstance(section.blocks[-1], Code)
    assert section.blocks[-1].text == "python -m spacy elmo trials ner places"
    none = write_grid_result(tmp_path / "none", "layers", {"no_elmo": [0.2]})
    assert make_mix_question([read_grid(none)]) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "cannot be read"),
        ("[]", "is not a result for this page: it has the kind None"),
        ('{"kind": "other"}', "it has the kind 'other'. These write results: .*`spacy elmo probe --output`"),
        (
            json.dumps({**probe(), "probes": None} | {"kind": "senses"}),
            "has no 'train'. Write it again with `spacy elmo senses",
        ),
        ("[" * 100_000, "cannot be read: maximum recursion depth"),
        ('{"kind": []}', "it has the kind \\[\\]"),
        (
            json.dumps(probe(probes=3)),
            "'probes' must be a list, got 3. Write it again with `spacy elmo probe --output`",
        ),
        (json.dumps({**GRID, "variants": [{"name": "a"}]}), "each variant needs a name and a title"),
        (json.dumps({**GRID, "paper_table": []}), "paper_table is a number or null"),
        (json.dumps({**GRID, "explanation": 3}), "the explanation a text"),
    ],
)
def test_what_is_not_a_result(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "result.json").write_text(text, encoding="utf8")
    with pytest.raises(ValueError, match=message):
        read_result(tmp_path / "result.json")
