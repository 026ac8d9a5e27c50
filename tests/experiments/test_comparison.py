"""Comparisons: the numbers of several models on one page, and no other file is lost."""

from pathlib import Path
from typing import Any

import pytest

from spacy_elmo.experiments.comparison import HTML, MARKDOWN, write_comparison
from spacy_elmo.experiments.page import figures_of

from ..command_line import run
from .html_reader import HTMLReader
from .written_trials import RARE, compare, tables_of, write_trials


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
    assert tables["F of each label: mean ± standard deviation, and the difference of the means from Baseline"] == [
        [RARE, "0.00 ± 0.00", "–", "–"],
        ["LOC", "–", "100.00 ± 0.00", "–"],
        ["PER", "50.00 ± 0.00", "60.00 ± 0.00", "+10.00"],
    ]
    assert tables["Mean time of a training, and speed on the test data"] == [
        ["Baseline", "11.0 s", "1.0×", "1,000"],
        ["ELMo", "22.0 s", "2.0×", "1,000"],
    ]
    assert "scores 8.0 points higher" in str(page.blocks)
    assert [figure.name for figure in figures_of(page)] == ["ents_f-seeds", "ents_f-labels"]


def test_written_comparison(tmp_path: Path, baseline: Path) -> None:
    elmo = write_trials(tmp_path / "elmo", {100.0: [0.50, 0.52]}, labels={RARE: 0.6})
    out = tmp_path / "out"
    answer = run("compare", baseline, elmo, "--output", out, "--title", "A & B")
    assert "scores 8.0 points higher" in answer
    assert sorted(path.name for path in out.iterdir()) == [
        "ents_f-labels.svg",
        "ents_f-seeds.svg",
        HTML,
        MARKDOWN,
    ]
    page = HTMLReader((out / HTML).read_text(encoding="utf8"))
    assert page.texts_in("h1") == ["A & B"]
    assert RARE in page.texts_in("th")
    assert not page.tags("b")
    assert len(page.tags("svg")) == 2
    (code,) = page.texts_in("code")
    assert code.splitlines() == [
        f"python -m spacy elmo trials ner.cfg {baseline} --test test.spacy --seeds 3 --fractions 100 --training.max_steps 5 "
        "--paths.train 'my train.spacy'",
        f"python -m spacy elmo trials ner.cfg {elmo} --test test.spacy --seeds 2 --fractions 100 --training.max_steps 5 "
        "--paths.train 'my train.spacy'",
        f"python -m spacy elmo compare {baseline} {elmo} --output {out} --title 'A & B'",
    ]
    markdown = (out / MARKDOWN).read_text(encoding="utf8")
    assert "| \\<b\\>\\& | 0.00 ± 0.00 | 60.00 ± 0.00 | +60.00 |" in markdown
    assert "](ents_f-seeds.svg)" in markdown
    # A new comparison replaces the old one with its figures, but no other file.
    (out / "comparison.json").write_text("{}", encoding="utf8")  # version 0.1 wrote it
    run("compare", baseline, elmo, "--output", out, "--score", "ents_p")
    assert sorted(path.name for path in out.iterdir()) == ["ents_p-seeds.svg", HTML, MARKDOWN]
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
        if path.name == HTML:
            raise OSError(28, "No space left on device")
        return write_text(path, *arguments, **options)

    monkeypatch.setattr(Path, "write_text", fail)
    with pytest.raises(OSError, match="could not be written: .*No space left"):
        write_comparison(page, tmp_path / "out")
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before
