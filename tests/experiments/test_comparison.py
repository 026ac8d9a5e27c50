"""Comparisons: the numbers of several runs on one page, and nothing that is there already is lost."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from spacy_elmo.experiments.comparability import find_caveats
from spacy_elmo.experiments.compare import CONTENT, HTML, MARKDOWN, compare_runs, write_comparison
from spacy_elmo.experiments.page import Section, Table, figures_of
from spacy_elmo.experiments.places import METRICS, Place
from spacy_elmo.experiments.report import write_report
from spacy_elmo.experiments.runs import name_runs, read_runs

from ..command_line import run
from .test_page import Reader

RARE = "<b>&"


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


def test_runs_whose_names_are_spelled_alike(tmp_path: Path) -> None:
    runs = [write_trials(tmp_path / name, {100.0: [0.5]}) for name in ("run_1", "run-1")]
    assert [run.name for run in read_runs(runs)] == list(map(str, runs))
    page = compare(*runs, names=["A", "B"])
    assert page.title == "Named entities: B against A"
    assert "--names A,B" in str(page.sections[-1])


def test_trials_of_different_configs_are_no_run(tmp_path: Path, baseline: Path) -> None:
    mixed = write_trials(tmp_path / "mixed", {100.0: [0.5, 0.5]}, identity={"config": "one"})
    path = Place(100.0, 1).below(mixed) / METRICS
    path.write_text(path.read_text(encoding="utf8").replace('"one"', '"other"'), encoding="utf8")
    with pytest.raises(ValueError, match="different configs or data: share 100, seed 0 and share 100, seed 1"):
        compare(baseline, mixed)


def test_scores_of_any_name_have_figures(tmp_path: Path) -> None:
    changes = {"score_weights": {"ents_f": 0.0, "spans_a/b (c)_f": 1.0}, "scores": {"spans_a/b (c)_f": 0.5}}
    one, other = (write_trials(tmp_path / name, {100.0: [0.5]}, **changes) for name in ("one", "other"))
    write_comparison(compare(one, other), tmp_path / "out")
    assert (tmp_path / "out" / "spans_a-b--c-_f-seeds.svg").exists()


def test_several_mixes_in_one_place_are_not_averaged(tmp_path: Path, baseline: Path) -> None:
    mixes = [
        {"component": "ner", "place": "", "weights": weights, "gamma": 1.0} for weights in ([1.0, 0.0], [0.0, 1.0])
    ]
    elmo = write_trials(tmp_path / "elmo", {100.0: [0.50, 0.52]}, mixes=mixes)
    figure = next(figure for figure in figures_of(compare(baseline, elmo)) if figure.name == "mixes-1")
    assert "1.00" in figure.svg
    assert "0.50" not in figure.svg


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
    for text in ('{"title": "x", "blocks": ["x"], "sections": []}', '{"title": null, "blocks": [], "sections": []}'):
        content.write_text(text, encoding="utf8")
        with pytest.raises(ValueError, match=f"{content} cannot be read"):
            write_report(page, [tmp_path / "One"], title="x")
    assert page.read_bytes() == old
