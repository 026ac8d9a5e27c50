"""Grids of trials: several variants of one config."""

import json
from pathlib import Path

import pytest
from confection import Config

from spacy_elmo.experiments.grid import load_grid, prepare_grid
from spacy_elmo.experiments.grid_trials import read_variants
from spacy_elmo.experiments.variants import Variant
from spacy_elmo.files.atomic import write_file

from ..command_line import run
from .tagger import TAGGER_CONFIG, before_update, make_trials, mark_as_finished
from .written_trials import write_trials

CONFIGS = Path(__file__).parents[2] / "configs"

GRID = """
[grid]
question = "Does it help?"
paper_table = null

[variants]

[variants.without]
title = "no ELMo"
place = "none"

[variants.with]
place = "both"
layers = "top"
"""

ELMO = """
[components.elmo]
factory = "elmo"

[components.tagger.model.tok2vec]
@architectures = "spacy_elmo.Tok2Vec.v1"

[components.tagger.model.tok2vec.embed]
@architectures = "spacy.MultiHashEmbed.v2"
width = 8
attrs = ["NORM"]
rows = [50]
include_static_vectors = false

[components.tagger.model.tok2vec.encode]
@architectures = "spacy.MaxoutWindowEncoder.v2"
width = 8
depth = 1
window_size = 1
maxout_pieces = 2

[components.tagger.model.tok2vec.elmo_in]
@architectures = "spacy_elmo.ElmoListener.v1"

[training]
"""


def test_grids_of_the_paper() -> None:
    layers, places = load_grid(CONFIGS / "grid_layers.cfg"), load_grid(CONFIGS / "grid_places.cfg")
    assert (layers.paper_table, places.paper_table) == (2, 3)
    assert layers.variants[0] == Variant("no_elmo", "no ELMo", "none", {})
    assert [(variant.place, variant.settings) for variant in layers.variants[1:]] == [
        ("input", {"layers": "top"}),
        ("input", {"layers": "mix", "l2": 1.0}),
        ("input", {"layers": "mix", "l2": 0.001}),
        ("input", {"layers": "concat"}),
    ]
    assert [variant.place for variant in places.variants] == ["input", "both", "output"]
    assert all(variant.settings == {"layers": "mix", "l2": 0.001} for variant in places.variants)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('question = "Does it help?"', "", "is not a grid: it needs a block .grid. with a question"),
        ('place = "both"', "", "the place of .variants.with. must be one of none, input, output, both, got None"),
        ('place = "both"', 'place = "top"', "must be one of none, input, output, both, got 'top'"),
        (
            'place = "both"',
            'place = ["input"]',
            "must be one of none, input, output, both, got .'input'.$|got .'input'..$",
        ),
        ('"no ELMo"', "0.001", r"the title of .variants.without. must be a text in quotation marks, got 0\.001\.$"),
        ('"Does it help?"', "3", r"the question of .grid. must be a text in quotation marks, got 3\.$"),
        (
            "[variants]",
            "explanation = 3\n[variants]",
            r"the explanation of .grid. must be a text in quotation marks, got 3",
        ),
        (
            "paper_table = null",
            'paper_table = "2"',
            "the paper_table of .grid. must be a whole number or null, got '2'",
        ),
        (
            "[variants]",
            "[variants]\nx = 1",
            r".variants. can only have blocks, got x = 1\. Write a block .variants.NAME.",
        ),
    ],
)
def test_what_is_not_a_grid(old: str, new: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "grid.cfg").write_text(GRID.replace(old, new), encoding="utf8")
    with pytest.raises(ValueError, match=message):
        load_grid(tmp_path / "grid.cfg")


@pytest.fixture
def grid_of_a_tagger(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tagger with ELMo, a grid of it, and their data, in the working directory."""
    monkeypatch.chdir(corpus)
    before, after = TAGGER_CONFIG.split("[components.tagger.model.tok2vec]")
    text = before.replace('["tagger"]', '["elmo", "tagger"]') + ELMO + after.split("[training]\n")[1]
    Path("tagger.cfg").write_text(text, encoding="utf8")
    Path("grid.cfg").write_text(GRID, encoding="utf8")


@pytest.mark.slow
@pytest.mark.usefixtures("grid_of_a_tagger")
def test_grid_trains_each_variant_and_resumes() -> None:
    words = ["tagger.cfg", "out", "--grid", "grid.cfg", "--test", "test.spacy"]
    paths = ["--paths.train", "train.spacy", "--paths.dev", "dev.spacy"]
    output = run("trials", *words, "--seeds", "1", *paths)
    assert "2 trials" in output
    assert output.index("without, fraction 100%, seed 0: tag_acc") < output.index(
        "with, fraction 100%, seed 0: tag_acc"
    )
    assert "The metrics of each are in VARIANT/FRACTION/SEED/metrics.json, and grid.json lists the variants" in output
    output = run("trials", *words, "--seeds", "2", *paths)
    assert "4 trials, 2 of them already finished" in output
    result = json.loads(Path("out/grid.json").read_text(encoding="utf8"))
    assert result == {
        "kind": "grid",
        "command": f"python -m spacy elmo trials {' '.join(words)} --seeds 2 --fractions 100 {' '.join(paths)}",
        "question": "Does it help?",
        "explanation": "",
        "paper_table": None,
        "variants": [{"name": "without", "title": "no ELMo"}, {"name": "with", "title": "with"}],
    }
    without, with_elmo = read_variants(result, Path("out"))
    assert (without.name, without.seeds, without.config["pipeline"]) == ("no ELMo", [0, 1], ["tagger"])
    assert (with_elmo.name, with_elmo.seeds, with_elmo.config["pipeline"]) == ("with", [0, 1], ["elmo", "tagger"])
    tok2vec = Config().from_disk("out/with/config.cfg")["components"]["tagger"]["model"]["tok2vec"]
    assert (tok2vec["elmo_in"]["layers"], tok2vec["elmo_out"]["layers"]) == ("top", "top")


@pytest.mark.usefixtures("grid_of_a_tagger")
def test_refused_grid_leaves_the_files_of_finished_trials() -> None:
    runs, files = prepare_grid(Path("grid.cfg"), make_trials(Path()))
    for path, text in files.items():
        write_file(path, text)
    mark_as_finished(runs["without"])
    words = ["tagger.cfg", "out", "--grid", "grid.cfg", "--test", "test.spacy", "--training.max_steps", "7"]
    output = run("trials", *words, "--paths.train", "train.spacy", "--paths.dev", "dev.spacy", code=1)
    assert "The existing trials in out/without differ in the config or its overrides" in output
    assert {path: path.read_text(encoding="utf8") for path in files} == files


@pytest.mark.usefixtures("grid_of_a_tagger")
def test_overwritten_grid_replaces_nothing_before_it_can_start() -> None:
    runs, files = prepare_grid(Path("grid.cfg"), make_trials(Path()))
    for path, text in files.items():
        write_file(path, text)
    metrics = [mark_as_finished(run) for run in runs.values()]
    words = ["trials", "tagger.cfg", "out", "--grid", "grid.cfg", "--test", "test.spacy", "--seeds", "1", "--overwrite"]
    words += ["--paths.train", "train.spacy", "--paths.dev", "dev.spacy"]
    output = run(*words, "--components.tagger.factory", "nothing", code=1)
    assert "The training with fraction 100%, seed 0 failed: ValueError: [E002]" in output
    assert {path: path.read_text(encoding="utf8") for path in files} == files
    assert all(path.exists() for path in metrics)
    # The first trial that is ready replaces those of all variants, so that no old score is beside the new command.
    before_update.append(lambda: (_ for _ in ()).throw(MemoryError("too small")))
    output = run(*words, "--training.max_steps", "7", code=1)
    assert "MemoryError: too small" in output
    assert "--training.max_steps 7" in json.loads(Path("out/grid.json").read_text(encoding="utf8"))["command"]
    assert all(Config().from_disk(path)["training"]["max_steps"] == 7 for path in files if path.name == "config.cfg")
    assert not any(path.exists() for path in metrics)


def test_grid_of_a_config_without_elmo_writes_nothing(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(corpus)
    Path("grid.cfg").write_text(GRID, encoding="utf8")
    words = ["tagger.cfg", "out", "--grid", "grid.cfg", "--test", "test.spacy"]
    output = run("trials", *words, "--paths.train", "train.spacy", "--paths.dev", "dev.spacy", code=1)
    assert "No component of the config has a spacy_elmo.Tok2Vec.v1" in output
    assert not Path("out").exists()


def test_unfinished_grid_has_the_variants_that_are_finished(tmp_path: Path) -> None:
    result = {"command": "python -m spacy elmo trials", "variants": [{"name": name, "title": name} for name in "ab"]}
    with pytest.raises(ValueError, match="There is no finished trial of the grid in"):
        read_variants(result, tmp_path)
    write_trials(tmp_path / "b", {100.0: [0.5]})
    assert [found.name for found in read_variants(result, tmp_path)] == ["b"]
