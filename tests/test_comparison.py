"""Trials and comparisons: the numbers are right, nothing is trained twice or lost, and no more is claimed than was seen."""

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
from xml.etree import ElementTree

import numpy
import pytest
import spacy
from confection import Config
from spacy.cli._util import app
from spacy.language import Language
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Example
from spacy.util import registry
from spacy.vocab import Vocab
from typer.testing import CliRunner

import spacy_elmo.cli  # noqa: F401  spaCy does this through the entry point
from spacy_elmo.bilm.weights import save_weights
from spacy_elmo.comparison import trials as trials_module
from spacy_elmo.comparison.checksums import checksum
from spacy_elmo.comparison.compare import CONTENT, HTML, MARKDOWN, compare_runs, find_caveats, write_comparison
from spacy_elmo.comparison.locks import lock
from spacy_elmo.comparison.places import METRICS, Place, find_places, parse_shares
from spacy_elmo.comparison.report import write_report
from spacy_elmo.comparison.runs import name_runs, read_runs
from spacy_elmo.comparison.scores import Sample, conclude, main_scores
from spacy_elmo.comparison.scoring import score_tags
from spacy_elmo.comparison.subsets import choose, count_docs, read_docs, write_share
from spacy_elmo.comparison.trials import TrialError, Trials
from spacy_elmo.models import find_weights
from spacy_elmo.page import Section, Table, figures_of

from .helpers import random_bilm
from .test_page import Reader

TAGS = ["DET", "NOUN", "VERB"]
RARE = "<b>&"


def run(*arguments: str | Path, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["elmo", *map(str, arguments)])
    assert result.exit_code == code, result.output
    return " ".join(result.output.split())  # whatever the width of the terminal


# Shares


@pytest.mark.parametrize(
    ("n_docs", "share", "n_chosen"),
    [(200, 1, 2), (200, 100, 200), (10, 1, 1), (10, 25, 3), (10, 24, 2), (3, 0.1, 1), (1, 50, 1), (1000, 0.5, 5)],
)
def test_shares_have_the_right_size(n_docs: int, share: float, n_chosen: int) -> None:
    chosen = choose(n_docs, share)
    assert len(chosen) == len(set(chosen)) == n_chosen
    assert chosen == sorted(chosen)
    assert set(chosen) <= set(range(n_docs))


def test_larger_shares_have_all_of_the_smaller_ones() -> None:
    shares = [choose(97, share) for share in (1, 2, 5, 10, 25, 50, 100)]
    for smaller, larger in zip(shares, shares[1:], strict=False):
        assert set(smaller) < set(larger)


def test_shares_are_random_and_the_same_every_time() -> None:
    # Another choice would make trials of today and of tomorrow differ.
    assert choose(20, 25) == [0, 10, 14, 16, 18]
    assert choose(100, 10) != list(range(10))


def make_docs(n_docs: int) -> list[Doc]:
    vocab = Vocab()
    docs = []
    for i in range(n_docs):
        doc = Doc(vocab, words=["the", f"cat{i}", "runs"], spaces=[True, False, False], tags=TAGS)
        doc.set_ents([Span(doc, 1, 2, "ANIMAL")])
        doc.spans["sc"] = [Span(doc, 0, 2, "NP")]
        doc.cats = {"odd": float(i % 2)}
        docs.append(doc)
    return docs


def test_a_share_on_disk_has_its_docs_as_they_were(tmp_path: Path) -> None:
    docs = make_docs(20)
    docs.insert(3, Doc(docs[0].vocab))  # which spaCy does not train on
    docs.insert(4, Doc(docs[0].vocab, words=["no", "spaces"]))
    DocBin(docs=docs, store_user_data=True).to_disk(tmp_path / "train.spacy")
    kept = [doc for doc in docs if len(doc)]
    assert write_share(tmp_path / "train.spacy", 25, tmp_path / "25" / "train.spacy") == 5
    vocab = Vocab()
    found = list(DocBin().from_disk(tmp_path / "25" / "train.spacy").get_docs(vocab))
    expected = [kept[i] for i in choose(21, 25)]
    assert [doc.to_json() for doc in found] == [doc.to_json() for doc in expected]
    assert [doc.has_unknown_spaces for doc in found] == [doc.has_unknown_spaces for doc in expected]
    assert sorted(path.name for path in (tmp_path / "25").iterdir()) == ["train.spacy"]


def test_docs_of_a_directory_are_those_of_its_files(tmp_path: Path) -> None:
    docs = make_docs(5)
    (tmp_path / "docs").mkdir()
    DocBin(docs=docs[:2]).to_disk(tmp_path / "docs" / "a.spacy")
    DocBin(docs=docs[2:]).to_disk(tmp_path / "docs" / "b.spacy")
    texts = [doc.text for doc in read_docs(tmp_path / "docs").get_docs(docs[0].vocab)]
    assert texts == [doc.text for doc in docs]
    docs.append(Doc(docs[0].vocab))  # which spaCy does not train on
    DocBin(docs=docs, attrs=["TAG"]).to_disk(tmp_path / "docs" / "c.spacy")
    assert count_docs(tmp_path / "docs") == 10
    with pytest.raises(ValueError, match=r"c\.spacy stores other attributes .* than .*a\.spacy"):
        read_docs(tmp_path / "docs")


def test_docs_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("Ada wrote it.", encoding="utf8")
    (tmp_path / "broken.spacy").write_text("Ada wrote it.", encoding="utf8")
    (tmp_path / "nothing.spacy").write_bytes(b"")
    (tmp_path / "directory").mkdir()
    for name, message in {
        "missing.spacy": "no such file",
        "text.txt": "expected a .spacy file",
        "directory": "expected a .spacy file",
        "broken.spacy": "is not a file of docs",
        "nothing.spacy": "is not a file of docs",
    }.items():
        for read in (read_docs, count_docs):
            with pytest.raises(ValueError, match=message):
                read(tmp_path / name)


def test_checksums_are_of_what_is_in_files(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "one").write_text("1", encoding="utf8")
        (tmp_path / name / "two").write_text("2", encoding="utf8")
    assert checksum(tmp_path / "a") == checksum(tmp_path / "b")
    assert checksum(tmp_path / "a" / "one") == checksum(tmp_path / "b" / "one")
    assert checksum(tmp_path / "a" / "one") != checksum(tmp_path / "a" / "two")
    (tmp_path / "b" / "README.md").write_text("another card", encoding="utf8")
    assert checksum(tmp_path / "a") == checksum(tmp_path / "b")
    (tmp_path / "b" / "two").write_text("3", encoding="utf8")
    assert checksum(tmp_path / "a") != checksum(tmp_path / "b")
    (tmp_path / "b" / "two").write_text("2", encoding="utf8")
    (tmp_path / "b" / "two").rename(tmp_path / "b" / "three")
    assert checksum(tmp_path / "a") != checksum(tmp_path / "b")


def test_shares_as_typed() -> None:
    assert parse_shares("100") == [100]
    assert parse_shares("50, 1,2.5,50") == [1, 2.5, 50]
    # What would be in one directory is one share.
    assert parse_shares("33.3333333,33.3333334,99.9999999") == [33.3333, 100]
    for text in ("0", "101", "ten", "", "1,,2", "-5", "nan", "1,inf"):
        with pytest.raises(ValueError, match="above 0 and up to 100"):
            parse_shares(text)


# Scores


def test_tags_are_scored_one_by_one() -> None:
    vocab = Vocab()
    words = ["the", "cat", "sees", "a", "dog", "there"]
    predicted = Doc(vocab, words=words, tags=["DET", "NOUN", "NOUN", "DET", "VERB", "ADV"])
    gold = Doc(vocab, words=words, tags=["DET", "NOUN", "VERB", "DET", "NOUN", ""])
    scores = score_tags([Example(predicted, gold)], "tag_")
    assert scores == {
        "DET": {"p": 1.0, "r": 1.0, "f": 1.0},
        "NOUN": {"p": 0.5, "r": 0.5, "f": pytest.approx(0.5)},
        "VERB": {"p": 0.0, "r": 0.0, "f": 0.0},
    }


def test_statistics_by_hand() -> None:
    sample = Sample([40.0, 42.0, 47.0])
    assert sample.mean == pytest.approx(43.0)
    assert sample.deviation == pytest.approx(13**0.5)  # (9 + 1 + 16) / 2
    assert Sample([40.0]).mean == 40
    assert Sample([40.0]).deviation is None


@pytest.mark.parametrize(
    ("values", "first", "expected"),
    [
        (
            [46, 47, 48],
            [40, 41, 42],
            "‘B’ scores higher by 6.0 points than ‘A’ on average: 47.0 against 41.0. Every seed of ‘B’ is above every seed of ‘A’ "
            "(3 and 3 seeds); if the two were equally good, chance alone would do that once in 20 times.",
        ),
        (
            [39, 39.5],
            [40, 41, 42],
            "‘B’ scores lower by 1.8 points than ‘A’ on average: 39.2 against 41.0. Every seed of ‘B’ is below every seed of ‘A’ "
            "(2 and 3 seeds); if the two were equally good, chance alone would do that once in 10 times.",
        ),
        (
            [40, 43],
            [41, 41.5],
            "The seeds overlap: no clear difference. On average, ‘B’ scores higher by 0.25 points than ‘A’: 41.5 against 41.2 "
            "(2 and 2 seeds).",
        ),
        (
            [41, 45],
            [40, 43],
            "The seeds overlap: no clear difference. On average, ‘B’ scores higher by 1.5 points than ‘A’: 43.0 against 41.5 "
            "(2 and 2 seeds).",
        ),
        (
            [41, 42],
            [41],
            "The seeds overlap: no clear difference. On average, ‘B’ scores higher by 0.50 points than ‘A’: 41.5 against 41.0 "
            "(2 and 1 seeds).",
        ),
        (
            [41],
            [40],
            "‘B’ scores higher by 1.0 points than ‘A’: 41.0 against 40.0, with one seed each. Another seed may say something "
            "else: only several can tell.",
        ),
        ([41, 43], [42], "‘B’ scores as high as ‘A’: 42.0 on average."),
    ],
)
def test_conclusions_claim_no_more_than_the_seeds_say(
    values: Sequence[float], first: Sequence[float], expected: str
) -> None:
    assert conclude("B", Sample(values), "A", Sample(first)) == expected


def test_main_scores_are_those_with_weight() -> None:
    weights = {"ents_f": 0.4, "ents_p": 0.0, "cats_score": 0.6, "tag_acc": 1.0, "ents_per_type": None}
    scores = {"ents_f": 0.5, "ents_p": 0.5, "cats_score": 0.7, "cats_score_desc": "macro AUC", "tag_acc": None}
    assert main_scores({"scores": scores, "score_weights": weights}) == ["cats_macro_auc", "ents_f"]
    assert main_scores({"scores": {"cats_score": 0.5}, "score_weights": {"cats_score": 1.0}}) == ["cats_score"]


# Comparisons


def write_trials(
    directory: Path,
    found: dict[float, Sequence[float | None]],
    *,
    labels: dict[str, float] | None = None,
    **changes: Any,
) -> Path:
    """Write what trials would have written: for each share, the scores of seed 0, 1 and so on."""
    for share, values in found.items():
        for seed, value in enumerate(values):
            types = {label: {"p": 0.0, "r": 0.0, "f": f} for label, f in (labels or {}).items()}
            config: dict[str, Any] = {
                "path": "ner.cfg",
                "overrides": {"training.max_steps": 5, "paths.train": "my train.spacy"},
            }
            config |= {"code": None, "gold_preproc": False, "pipeline": ["elmo", "ner"], "train": "my train.spacy"}
            config |= {"n_train_docs": 200, "test": "test.spacy", "n_test_docs": 60}
            metrics: dict[str, Any] = {
                "share": share,
                "seed": seed,
                "n_docs": round(2 * share),
                "training_seconds": 10.0 + seed,
                "words_per_second": 1000.0,
                "scores": {"ents_f": value, "ents_p": 0.5, "ents_r": None, "ents_per_type": types, "speed": 1000.0},
                "score_weights": {"ents_f": 1.0, "ents_p": 0.0},
                "config": config,
                "identity": {"test": "abc", "gold_preproc": "False", "paths.train": "t", "paths.dev": "d"},
            }
            for name, change in changes.items():
                metrics[name] = {**metrics[name], **change} if isinstance(change, dict) else change
            place = Place(share, seed).below(directory)
            place.mkdir(parents=True)
            (place / METRICS).write_text(json.dumps(metrics), encoding="utf8")
    return directory


@pytest.fixture
def baseline(tmp_path: Path) -> Path:
    return write_trials(tmp_path / "baseline", {100.0: [0.40, 0.42, 0.47]}, labels={"PER": 0.5, RARE: 0.0})


def tables_of(page: Section) -> dict[str, list[list[str]]]:
    tables = {block.caption: [list(row) for row in block.rows] for block in page.blocks if isinstance(block, Table)}
    for part in page.sections:
        tables |= tables_of(part)
    return tables


def compare(*directories: Path, names: Sequence[str] = (), **options: Any) -> Section:
    return compare_runs(read_runs(directories, names), output=Path("out"), **options)


def test_comparison_by_hand(tmp_path: Path, baseline: Path) -> None:
    elmo = write_trials(
        tmp_path / "elmo", {100.0: [0.50, 0.52]}, labels={"PER": 0.6, "LOC": 1.0}, training_seconds=22.0
    )
    page = compare(baseline, elmo)
    assert page.title == "Named entities: ELMo against Baseline"
    tables = tables_of(page)
    assert tables["Named entities, F"] == [
        ["Baseline", "43.00", "3.61", "40.00", "47.00", "3", "–"],
        ["ELMo", "51.00", "1.41", "50.00", "52.00", "2", "+8.00"],
    ]
    assert tables["Other scores: mean ± standard deviation"] == [["precision", "50.00 ± 0.00", "50.00 ± 0.00"]]
    assert tables["F of each label: mean ± standard deviation, and the difference of means to Baseline"] == [
        [RARE, "0.00 ± 0.00", "–", "–"],
        ["LOC", "–", "100.00 ± 0.00", "–"],
        ["PER", "50.00 ± 0.00", "60.00 ± 0.00", "+10.00"],
    ]
    assert tables["Mean time of a training, and the speed on the test data afterwards"] == [
        ["Baseline", "11.0 s", "1.0×", "1,000"],
        ["ELMo", "22.0 s", "2.0×", "1,000"],
    ]
    assert "higher by 8.0 points" in str(page.blocks)
    assert [figure.name for figure in figures_of(page)] == ["ents_f-seeds", "ents_f-labels"]


def test_learned_mixes_are_drawn(tmp_path: Path, baseline: Path) -> None:
    elmo = write_trials(tmp_path / "elmo", {100.0: [0.50, 0.52]})
    for seed, (weights, gamma) in enumerate([([0.2, 0.8], 1.0), ([0.4, 0.6], 2.0)]):
        path = elmo / "100" / str(seed) / METRICS
        metrics = json.loads(path.read_text("utf8"))
        metrics["mixes"] = [{"component": "ner", "place": "elmo_in", "weights": weights, "gamma": gamma}]
        path.write_text(json.dumps(metrics), encoding="utf8")
    page = compare(baseline, elmo)
    *_, section = (part for part in page.sections if part.title == "What ELMo uses")
    (figure,) = figures_of(section)
    assert figure.caption == "The layers' weights, means of 2 trainings"
    texts = [text.text for text in ElementTree.fromstring(figure.svg).iter("{http://www.w3.org/2000/svg}text")]
    assert texts[-4:] == ["ner.elmo_in", "0.30", "0.70", "gamma 1.50"]


def test_one_seed_has_no_deviation(tmp_path: Path) -> None:
    runs = [write_trials(tmp_path / name, {100.0: [0.5]}, labels={"PER": 0.5}) for name in ("a", "b")]
    page = compare(*runs)
    assert tables_of(page)["Named entities, F"][1] == ["B", "50.00", "–", "50.00", "50.00", "1", "+0.00"]
    assert "±" not in str(tables_of(page).values())
    assert find_caveats(read_runs(runs)) == [
        "There is one seed of ‘A’ and ‘B’: how much it varies is not known, and no deviation is given."
    ]


def test_less_training_data(tmp_path: Path) -> None:
    scores = {1.0: [0.1, 0.2], 10.0: [0.3, 0.3], 100.0: [0.4, 0.4]}
    baseline = write_trials(tmp_path / "baseline", scores)
    elmo = write_trials(tmp_path / "elmo", {1.0: [0.2, 0.2], 10.0: [0.4, 0.5], 50.0: [0.6], 100.0: [0.7, 0.7]})
    page = compare(baseline, elmo)
    caption = "Named entities, F: mean ± standard deviation, and the difference of means to Baseline"
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
    (caveat,) = find_caveats(read_runs([baseline, elmo]))
    assert caveat.startswith("‘ELMo’ was trained on 50% of the training data as well")
    assert [figure.name for figure in figures_of(page)] == ["ents_f-seeds", "ents_f-shares"]


def test_shares_in_common_are_enough(tmp_path: Path, baseline: Path) -> None:
    small = write_trials(tmp_path / "small", {10.0: [0.3, 0.4]})
    with pytest.raises(ValueError, match=r"no share .* in common: .*baseline has 100%; .*small has 10%"):
        compare(baseline, small)
    both = write_trials(tmp_path / "both", {10.0: [0.5, 0.6], 100.0: [0.9]})
    page = compare(small, both)
    assert "With 10% of the training data: ‘Both’ scores higher by 20.0 points" in str(page.blocks)


def test_four_runs(tmp_path: Path, baseline: Path) -> None:
    others = [write_trials(tmp_path / f"run_{i}", {100.0: [0.5, 0.1 * i]}, labels={"PER": 0.1 * i}) for i in range(3)]
    page = compare(baseline, *others)
    assert page.title == "Named entities: Run 0, Run 1, Run 2 against Baseline"
    assert len(page.blocks) == 3
    rows = tables_of(page)["F of each label: mean ± standard deviation, and the difference of means to Baseline"]
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


def test_scores_that_are_missing(tmp_path: Path, baseline: Path) -> None:
    partly = write_trials(tmp_path / "partly", {100.0: [0.5, None, 0.7]})
    assert tables_of(compare(baseline, partly))["Named entities, F"][1][1:6] == [
        "60.00",
        "14.14",
        "50.00",
        "70.00",
        "2",
    ]
    with pytest.raises(ValueError, match=r"Not all runs have the score 'tag_acc'\. They have: ents_f, ents_p\."):
        compare(baseline, partly, score="tag_acc")
    assert "Named entities, precision" in tables_of(compare(baseline, partly, score="ents_p"))
    other = write_trials(
        tmp_path / "other",
        {100.0: [None]},
        scores={"cats_score": 0.5, "ents_p": None},
        score_weights={"cats_score": 1.0},
    )
    with pytest.raises(ValueError, match=r"no score in common.*baseline has ents_f; .*other has cats_score"):
        compare(baseline, other)


def test_runs_that_cannot_be_compared(tmp_path: Path, baseline: Path) -> None:
    def refuse(message: str, *directories: Path, **options: Any) -> None:
        with pytest.raises(ValueError, match=message):
            compare(*directories, **options)

    refuse("two runs or more, got 1", baseline)
    refuse("no such directory", baseline, tmp_path / "nothing")
    (tmp_path / "empty").mkdir()
    refuse(f"no finished trial in {tmp_path / 'empty'}", baseline, tmp_path / "empty")
    refuse("compared with itself", baseline, baseline)
    refuse("2 runs and 1 names", baseline, tmp_path, names=["A"])
    refuse("same name: A, A", baseline, tmp_path, names=["A", "A"])
    other = write_trials(tmp_path / "other", {100.0: [0.5]}, identity={"test": "xyz"}, config={"test": "dev.spacy"})
    refuse(r"other test data .* seed 0 on dev\.spacy, the other on test\.spacy", baseline, other)
    gold = write_trials(tmp_path / "gold", {100.0: [0.5]}, identity={"gold_preproc": "True"})
    refuse("--gold-preproc", baseline, gold)
    path = Place(100.0, 0).below(gold) / METRICS
    whole = path.read_text(encoding="utf8")
    path.write_text(whole[:-30], encoding="utf8")
    refuse(f"{path} cannot be read", baseline, gold)
    for text, missing in (("[]", "share"), (whole.replace('"scores"', '"x"'), "scores"), ("{}", "share")):
        path.write_text(text, encoding="utf8")
        refuse(f"is not the metrics of a trial: it has no {missing}", baseline, gold)
    path.write_text(whole.replace('"pipeline"', '"x"'), encoding="utf8")
    refuse("it has no config.pipeline", baseline, gold)
    shutil.copytree(Place(100.0, 0).below(baseline), Place(100.0, 3).below(baseline))
    refuse("metrics of share 100, seed 0, as if copied", baseline, other)


def test_other_training_data_are_named(tmp_path: Path, baseline: Path) -> None:
    other = write_trials(tmp_path / "other", {100.0: [0.5, 0.6]}, identity={"paths.train": "u", "paths.dev": "e"})
    Place(100.0, 2).below(other).mkdir()
    caveats = find_caveats(read_runs([baseline, other]))
    assert [caveat.split(":")[0] for caveat in caveats] == [
        "1 trial of ‘Other’ did not come to an end",
        "‘Other’ was trained on other data than ‘Baseline’, so that a difference may come from the data.",
        "‘Other’ was chosen on other dev data than ‘Baseline’, so that a difference may come from the data.",
    ]


def test_other_settings_of_training_are_named(tmp_path: Path) -> None:
    def write(name: str, overrides: dict[str, Any], **training: Any) -> Path:
        config: dict[str, Any] = {"overrides": {"paths.train": name, **overrides}}
        if training:
            config["training"] = {"dropout": 0.1, "batcher": {"size": 10, "start": None}, **training}
        return write_trials(tmp_path / name, {100.0: [0.5, 0.6]}, config=config)

    def caveats(*directories: Path) -> list[str]:
        return find_caveats(read_runs(directories))

    first = write("first", {"training.max_steps": 5}, max_steps=5, seed=0)
    # Where a value comes from does not matter, nor where the data are.
    assert caveats(first, write("same", {}, max_steps=5, batcher={"size": 10}, seed=1)) == []
    other = write("other", {"components.ner.moves": 3}, max_steps=6, batcher={"size": 20})
    assert caveats(first, other) == [
        "‘Other’ was trained with other settings than ‘First’, so that a difference may come from those: "
        "components.ner.moves, training.batcher.size, training.max_steps."
    ]
    # Of earlier versions, the overrides alone are known.
    assert caveats(first, write("old", {"training.max_steps": 5})) == []
    (caveat,) = caveats(first, write("older", {"training.max_steps": 7}))
    assert caveat.endswith("from those: training.max_steps.")


def test_names_of_runs() -> None:
    assert name_runs([Path("x/baseline"), Path("x/with_elmo-2")]) == ["Baseline", "With ELMo 2"]
    assert name_runs([Path("ner/elmo"), Path("tagger/elmo")]) == ["NER, ELMo", "Tagger, ELMo"]
    assert name_runs([Path("biLM"), Path("_")]) == ["biLM", "_"]


def test_written_comparison(tmp_path: Path, baseline: Path) -> None:
    elmo = write_trials(tmp_path / "elmo", {100.0: [0.50, 0.52]}, labels={RARE: 0.6})
    out = tmp_path / "out"
    answer = run("compare", baseline, elmo, "--output", out, "--title", "A & B")
    assert "higher by 8.0 points" in answer
    assert sorted(path.name for path in out.iterdir()) == [
        CONTENT,
        "ents_f-labels.svg",
        "ents_f-seeds.svg",
        HTML,
        MARKDOWN,
    ]
    page = Reader((out / HTML).read_text(encoding="utf8"))
    assert page.texts_in("h1") == ["A & B"]
    assert RARE in page.texts_in("th")
    assert not page.tags("b")
    assert len(page.tags("svg")) == 2
    (code,) = page.texts_in("code")
    assert code.splitlines() == [
        f"python -m spacy elmo trials ner.cfg {baseline} --test test.spacy --seeds 3 --shares 100 --training.max_steps 5 "
        "--paths.train 'my train.spacy'",
        f"python -m spacy elmo trials ner.cfg {elmo} --test test.spacy --seeds 2 --shares 100 --training.max_steps 5 "
        "--paths.train 'my train.spacy'",
        f"python -m spacy elmo compare {baseline} {elmo} --output {out} --title 'A & B'",
    ]
    markdown = (out / MARKDOWN).read_text(encoding="utf8")
    assert "| \\<b\\>\\& | 0.00 ± 0.00 | 60.00 ± 0.00 | +60.00 |" in markdown
    assert "](ents_f-seeds.svg)" in markdown
    # A second one replaces it, other figures and all, and never something else.
    run("compare", baseline, elmo, "--output", out, "--score", "ents_p")
    assert sorted(path.name for path in out.glob("*.svg")) == ["ents_p-seeds.svg"]
    (out / "drawing.svg").write_text("<svg/>", encoding="utf8")
    assert "has other files in it, such as 'drawing.svg'" in run("compare", baseline, elmo, "-o", out, code=1)
    (out / "drawing.svg").unlink()
    (out / "notes.txt").write_text("keep me", encoding="utf8")
    before = (out / HTML).read_text(encoding="utf8")
    assert "has other files in it, such as 'notes.txt'" in run("compare", baseline, elmo, "-o", out, code=1)
    assert (out / HTML).read_text(encoding="utf8") == before
    assert "no such directory" in run("compare", baseline, tmp_path / "no", "--output", tmp_path / "new", code=1)
    assert not (tmp_path / "new").exists()


def test_full_disk_leaves_the_old_comparison(tmp_path: Path, baseline: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = compare(baseline, write_trials(tmp_path / "elmo", {100.0: [0.5]}))
    write_comparison(page, tmp_path / "out")
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    write_text = Path.write_text

    def fail(path: Path, *arguments: Any, **options: Any) -> int:
        if path.name == CONTENT:
            raise OSError(28, "No space left on device")
        return write_text(path, *arguments, **options)

    monkeypatch.setattr(Path, "write_text", fail)
    with pytest.raises(OSError, match="could not be written: .*No space left"):
        write_comparison(page, tmp_path / "out")
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before


def test_report_of_comparisons_and_of_a_language_model(tmp_path: Path, baseline: Path) -> None:
    elmo = write_trials(tmp_path / "elmo", {100.0: [0.50, 0.52]}, labels={RARE: 0.6})
    for title in ("One", "Two"):
        run("compare", baseline, elmo, "--output", tmp_path / title, "--title", title)
    bilm = tmp_path / "bilm"
    bilm.mkdir()
    line = {"step": 3, "words": 4000, "loss": 5.0, "perplexity": 90.0}
    line |= {f"perplexity_{name}": 90.0 for name in ("forward", "backward", "unigram")}
    (bilm / "metrics.jsonl").write_text(json.dumps(line) + "\n", encoding="utf8")
    scores = {"forward": 1234.56, "backward": 80.0, "mean": 85.5, "unigram": 900.0}
    text = json.dumps({f"perplexity_{name}": value for name, value in scores.items()})
    (bilm / "perplexity.json").write_text(text, encoding="utf8")
    page = tmp_path / "pages" / "report.html"
    assert "3 parts" in run("report", page, tmp_path / "One", tmp_path / "Two", "--bilm", bilm)
    read = Reader(page.read_text(encoding="utf8"))
    assert read.texts_in("h1") == ["What ELMo brings"]
    assert read.texts_in("h2") == ["One", "Two", "The language model"]
    assert read.texts_in("td")[-4:] == ["1,234.6", "80.0", "85.5", "900.0"]
    assert len(read.tags("svg")) == 5
    assert "It read 4,000 words in 3 steps." in read.texts_in("p")
    old = page.read_bytes()
    (bilm / "perplexity.json").write_text("{", encoding="utf8")
    wrong: dict[str, list[str | Path]] = {
        "no comparison in": [page, tmp_path],
        "nothing to report": [page],
        "ends in .html": [tmp_path / "One", tmp_path / "Two"],
        "has no perplexities": [page, "--bilm", bilm],
        "is not a pretraining run": [page, "--bilm", tmp_path / "One"],
        "no pretraining run at": [page, "--bilm", tmp_path / "no"],
    }
    for message, arguments in wrong.items():
        assert message in run("report", *arguments, code=1)
    content = tmp_path / "One" / CONTENT
    content.write_text(content.read_text(encoding="utf8")[:-20], encoding="utf8")
    with pytest.raises(ValueError, match=f"{content} cannot be read"):
        write_report(page, [tmp_path / "One"], title="x")
    assert page.read_bytes() == old


# Trials

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
        trials.todo  # noqa: B018


def run_all(trials: Trials) -> list[dict[str, Any]]:
    return [trials.run(place) for place in trials.todo]


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
    assert trials.todo == [Place(100, 2)]
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
    assert replace(trials).todo == []
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
    assert trials.todo == [Place(100, 1)]
    resumed = run_all(trials)
    straight = make_trials(corpus, seeds=2, output=corpus / "straight").run(Place(100, 1))
    assert resumed[0]["scores"]["tag_per_type"] == straight["scores"]["tag_per_type"]
    # What a kill would leave of the metrics, were they not written in one piece.
    path = corpus / "out" / "100" / "0" / METRICS
    path.write_bytes(path.read_bytes()[:-10])
    assert make_trials(corpus, seeds=2).todo == [Place(100, 0)]


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
    assert make_trials(corpus).todo == trials.todo


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
    assert make_trials(corpus).todo


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
        trials.todo  # noqa: B018


def test_a_lock_ends_with_its_process(tmp_path: Path) -> None:
    code = f"""
import sys
from pathlib import Path
from spacy_elmo.comparison.locks import lock
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
