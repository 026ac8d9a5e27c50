"""The repository: what is written down in two places is the same, and what is promised works."""

import configparser
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
import spacy
import srsly
from numpy.testing import assert_allclose
from spacy.cli.train import train
from spacy.util import registry

from .command_line import run_project

ROOT = Path(__file__).parents[1]
MOST_LINES = 400  # of a test file


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    result = subprocess.run(
        [str(part) for part in command], cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def test_entry_points_are_what_is_registered() -> None:
    spacy.blank("en")  # loads the factories of all plugins
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    declared = dict(setup["options.entry_points"])
    groups = {
        "spacy_architectures": registry.architectures,
        "spacy_factories": registry.factories,
        "spacy_loggers": registry.loggers,
        "thinc_optimizers": registry.optimizers,
        "thinc_schedules": registry.schedules,
    }
    for group, functions in groups.items():
        lines = declared.pop(group).strip().splitlines()
        for line in lines:
            name, target = line.split(" = ")
            module, function = target.split(":")
            found = functions.get(name)
            assert (found.__module__, found.__name__) == (module, function)
        ours = {name for name in functions.get_all() if name.startswith("spacy_elmo.")}
        assert ours == {line.split(" = ")[0] for line in lines if line.startswith("spacy_elmo.")}
    assert declared.keys() == {"spacy_cli"}
    assert "elmo" in {entry.name for entry in entry_points(group="spacy_cli")}


def test_version_is_the_newest_of_the_changelog() -> None:
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf8")
    versions = re.findall(r"^## \[?(\d+\.\d+\.\d+)", text, flags=re.MULTILINE)
    assert setup["metadata"]["version"] == versions[0]


def test_test_files_are_short() -> None:
    lengths = {
        str(path.relative_to(ROOT)): len(path.read_text(encoding="utf8").splitlines())
        for path in (ROOT / "tests").rglob("*.py")
    }
    assert {name: length for name, length in lengths.items() if length > MOST_LINES} == {}


PREDICT = """
import json, sys
import en_pipeline
doc = en_pipeline.load()("Ada saw Paris .")
print(json.dumps([doc.cats, doc.tensor.tolist()]))
"""


@pytest.mark.slow
def test_packaged_pipeline_predicts_the_same(task_docs: Path, tmp_path: Path) -> None:
    overrides = {
        "paths.train": str(task_docs),
        "paths.dev": str(task_docs),
        "training.max_steps": 4,
        "training.eval_frequency": 4,
    }
    train(ROOT / "configs" / "textcat.cfg", tmp_path / "out", overrides=overrides)
    model, packages = tmp_path / "out" / "model-last", tmp_path / "packages"
    nlp = spacy.load(model)
    packages.mkdir()
    python = (sys.executable, "-W", "ignore", "-m")
    run(*python, "spacy", "package", model, packages, "--build", "wheel", cwd=tmp_path)
    (source,) = packages.iterdir()
    assert any(line.startswith("spacy-elmo>=") for line in srsly.read_json(source / "meta.json")["requirements"])
    (wheel,) = (source / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "installed")
    shutil.rmtree(tmp_path / "out")
    shutil.rmtree(packages)
    output = run(sys.executable, "-W", "ignore", "-c", PREDICT, cwd=tmp_path, PYTHONPATH=str(tmp_path / "installed"))
    cats, tensor = json.loads(output)
    doc = nlp("Ada saw Paris .")
    assert cats == pytest.approx(doc.cats, abs=1e-6)
    assert_allclose(tensor, doc.tensor, atol=1e-5)


@pytest.mark.slow
def test_project_runs(tmp_path: Path) -> None:
    (tmp_path / "project.yml").write_bytes((ROOT / "project.yml").read_bytes())
    output = run(sys.executable, "-m", "spacy", "project", "run", "demo", cwd=tmp_path)
    assert "She wrote a [play] about two rival kings." in output


def copy_project(target: Path) -> None:
    for name in ("project.yml", "configs", "assets", "scripts"):
        source = ROOT / name
        shutil.copytree(source, target / name) if source.is_dir() else shutil.copy(source, target)


def assert_outputs_exist(directory: Path, workflow: str, **variables: str | int) -> None:
    """Check that what the project says that it writes was written."""
    project = srsly.read_yaml(ROOT / "project.yml")
    for command in project["commands"]:
        if command["name"] in project["workflows"][workflow]:
            for output in command.get("outputs", []):
                for name, value in {**project["vars"], **variables}.items():
                    output = output.replace(f"${{vars.{name}}}", str(value))
                assert (directory / output).exists(), output


@pytest.mark.slow
def test_project_runs_all(tmp_path: Path) -> None:
    copy_project(tmp_path)
    # A part of the training, so that it fits a test.
    config = tmp_path / "configs" / "pretrain_tiny.cfg"
    config.write_text(config.read_text(encoding="utf8").replace("epochs = 12", "epochs = 2"), encoding="utf8")
    output = run_project(tmp_path, "all", seeds=1, ner_steps=20, textcat_steps=20)
    assert "The best model is training/bilm/model-best" in output
    scores = srsly.read_json(tmp_path / "training" / "bilm" / "perplexity.json")
    assert scores["perplexity_mean"] < 0.5 * scores["perplexity_unigram"]
    assert_outputs_exist(tmp_path, "all")


@pytest.mark.slow
def test_project_adapts_to_the_sample(tmp_path: Path) -> None:
    copy_project(tmp_path)
    output = run_project(tmp_path, "adapt", seeds=1, ner_steps=20)
    before, after = (float(output.split(f"Dev perplexity{when}: ")[1].split()[0]) for when in (" before training", ""))
    assert after < 0.95 * before
    assert_outputs_exist(tmp_path, "adapt")
    trials = tmp_path / "training" / "ner" / "ner_sample-ner"
    identities = [srsly.read_json(trials / name / "100/0/metrics.json")["identity"] for name in ("elmo", "adapted")]
    differing = {name for name in identities[0] | identities[1] if len({each.get(name) for each in identities}) > 1}
    assert differing == {"config", "components.elmo.weights", "paths.weights"}


@pytest.mark.slow
def test_project_analyses_the_sample(tmp_path: Path) -> None:
    copy_project(tmp_path)
    steps = {f"{name}_steps": 2 for name in ("grid_ner", "grid_textcat", "fraction")}
    output = run_project(tmp_path, "analysis", fraction_seeds=1, analysis_fractions="50,100", **steps)
    assert "It has 8 sections" in output
    assert_outputs_exist(tmp_path, "analysis")
    page = (tmp_path / "training" / "analysis" / "page.html").read_text(encoding="utf8")
    # The noun and the verb have the same neighbours only in the layer that sees no context.
    assert "“play” has 2 uses here." in page
    assert "5 of 5 in the token layer, 0 of 5 in LSTM layer 1 and 0 of 5 in LSTM layer 2" in page


@pytest.mark.slow
def test_project_embeds_the_sample(tmp_path: Path) -> None:
    copy_project(tmp_path)
    # The smaller file of the sample, so that it fits a test.
    (tmp_path / "assets" / "sample" / "dev.txt").replace(tmp_path / "assets" / "sample" / "train.txt")
    assert "training/vectors has all vectors" in run_project(tmp_path, "embed")
    assert_outputs_exist(tmp_path, "embed")
    page = (ROOT / "docs" / "embedding.md").read_text(encoding="utf8")
    code = page.split("<!-- example: search -->\n```python\n")[1].split("```")[0]
    output = run(sys.executable, "-W", "ignore", "-c", code, cwd=tmp_path / "training")
    best, *others = (line.split(maxsplit=1) for line in output.splitlines())
    assert len(others) == 4
    assert float(best[0]) > float(others[-1][0]) > 0.3
    assert all(sentence in (tmp_path / "assets" / "sample" / "train.txt").read_text("utf8") for _, sentence in others)


def run_wiki(directory: Path, lang: str, **variables: str | int) -> str:
    """Run the workflow for a sample, with a tiny model."""
    copy_project(directory)
    variables = {"lang": lang, "wiki_config": "pretrain_tiny", **variables}
    output = run_project(directory, "wiki_elmo", dump=f"assets/wikipedia_sample/{lang}.xml", **variables)
    assert_outputs_exist(directory, "wiki_elmo", lang=lang)
    return output


@pytest.mark.slow
def test_project_rebuilds_the_bundled_model(tmp_path: Path) -> None:
    output = run_wiki(tmp_path, "en", held_out_every=10, wiki_steps=120)
    assert "58 articles of 222 paragraphs" in output
    assert "46 train, 6 dev, 6 test articles" in output
    scores = srsly.read_json(tmp_path / "training" / "en_elmo_sm" / "perplexity.json")
    assert scores["perplexity_mean"] < 0.8 * scores["perplexity_unigram"]
    bundle = tmp_path / "training" / "en_elmo_sm" / "bundle"
    carried = ROOT / "spacy_elmo" / "models" / "en_elmo_sm"
    assert {path.name for path in bundle.iterdir()} == {path.name for path in carried.iterdir()}
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"weights": str(bundle)})
    tensor = nlp("They play a play on Broadway .").tensor
    assert tensor.shape == (7, 128)
    assert abs(tensor[1] - tensor[3]).max() > 0.01


@pytest.mark.slow
@pytest.mark.parametrize(("lang", "segmenter", "max_chars"), [("de", "null", 50), ("zh", "jieba", 146)])
def test_project_trains_on_any_wikipedia(lang: str, segmenter: str, max_chars: int, tmp_path: Path) -> None:
    output = run_wiki(tmp_path, lang, segmenter=segmenter, held_out_every=5, wiki_steps=20)
    assert "13 articles of 26 paragraphs" in output
    assert "Left out: 2 redirects, 4 disambiguation pages" in output
    assert f"max_chars = {max_chars}: no word is cut" in output
    assert (f"raw text in the language {lang!r}" + (", cut by 'jieba'" if segmenter == "jieba" else "")) in output
    bundle = tmp_path / "training" / f"{lang}_elmo_sm" / "bundle"
    card = (bundle / "README.md").read_text(encoding="utf8")
    assert f"# {lang}_elmo_sm" in card
    # The example of the card runs.
    code = card.split("```python\n")[1].split("```")[0].replace("PATH/TO/THIS/DIRECTORY", str(bundle))
    names: dict[str, Any] = {}
    exec(code, names)
    doc = names["nlp"]({"de": "Das Rad steht. Es regnet.", "zh": "木轮停着。下雨了！"}[lang])
    assert len(list(doc.sents)) == 2
    assert doc.tensor.shape == (len(doc), 128)
    assert len(doc) == {"de": 7, "zh": 6}[lang]


def test_workflow_all_has_every_command_of_the_others() -> None:
    workflows = srsly.read_yaml(ROOT / "project.yml")["workflows"]
    assert workflows["all"] == [*workflows["pretrain"], *workflows["ner"], *workflows["textcat"], "report"]


def test_commands_depend_on_what_others_make() -> None:
    project = srsly.read_yaml(ROOT / "project.yml")
    made = {path for command in project["commands"] for path in command.get("outputs", [])}
    wanted = {path for command in project["commands"] for path in command.get("deps", [])}
    assert {path for path in wanted if path.startswith(("corpus/", "training/"))} <= made


@pytest.mark.parametrize("folder", ["wnut17", "sst5"])
def test_assets_are_those_of_the_checksums(folder: str, shared: Path) -> None:
    found = {hashlib.md5(path.read_bytes()).hexdigest() for path in (shared / "data" / folder).iterdir()}
    assets = [asset for asset in srsly.read_yaml(ROOT / "project.yml")["assets"] if f"/{folder}/" in asset["dest"]]
    assert len(assets) == 3
    assert {asset["checksum"] for asset in assets} <= found


EXAMPLE = """
import spacy, spacy_elmo, sys
assert spacy_elmo.__file__.startswith(sys.argv[1]), spacy_elmo.__file__
nlp = spacy.blank("en")
nlp.add_pipe("elmo")
doc = nlp("They play a play on Broadway .")
assert doc.tensor.shape == (7, 384) and doc.tensor.dtype == "float32"
assert doc[1].similarity(doc[3]) < 0.999
assert doc._.elmo_layers.shape == (3, 7, 384)
nlp.to_disk("pipe")
assert (spacy.load("pipe")("They play a play on Broadway .").tensor == doc.tensor).all()
"""


@pytest.mark.slow
def test_wheel_works_in_an_empty_directory(tmp_path: Path) -> None:
    run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", tmp_path / "dist", ROOT, cwd=tmp_path)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "installed")
    (tmp_path / "empty").mkdir()
    run(
        *(sys.executable, "-W", "ignore", "-c", EXAMPLE, tmp_path / "installed"),
        cwd=tmp_path / "empty",
        PYTHONPATH=str(tmp_path / "installed"),
    )
