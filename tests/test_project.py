"""The repository: what is written down in two places is the same, and what is promised works."""

import configparser
import hashlib
import json
import os
import shutil
import subprocess
import sys
import warnings
import zipfile
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
import spacy
import srsly
import torch
from numpy.testing import assert_allclose
from spacy.cli.init_config import fill_config
from spacy.cli.train import train
from spacy.tokens import DocBin, Span
from spacy.util import registry
from thinc.api import Config
from torch.nn import Parameter

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.bilm.weights import load_weights
from spacy_elmo.models import find_weights
from spacy_elmo.pretraining.settings import read_config, read_settings

ROOT = Path(__file__).parents[1]


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


CONFIGS = {path: Config().from_disk(path, interpolate=False) for path in sorted((ROOT / "configs").glob("*.cfg"))}


@pytest.mark.parametrize(
    "path", [path for path in CONFIGS if "bilm_training" in CONFIGS[path]], ids=lambda path: path.name
)
def test_pretraining_configs_are_whole_and_right(path: Path) -> None:
    places = {"paths.train": "train.txt", "paths.dev": "dev.txt", "paths.weights": "weights"}
    overrides = {name: place for name, place in places.items() if name.split(".")[1] in CONFIGS[path]["paths"]}
    settings = read_settings(read_config(path, overrides))
    assert (settings.corpus.train, settings.corpus.dev) == ("train.txt", "dev.txt")
    parameter = Parameter(torch.zeros(2))
    optimizer = settings.make_optimizer([parameter])
    settings.make_schedule(optimizer, 100)
    parameter.grad = torch.ones(2)
    optimizer.step()
    assert parameter.abs().sum() > 0


@pytest.mark.parametrize("name", ["pretrain_medium", "pretrain_paper"])
def test_sizes_are_those_that_were_published(name: str) -> None:
    overrides = {"paths.train": "train.txt", "paths.dev": "dev.txt"}
    settings = read_settings(read_config(ROOT / "configs" / f"{name}.cfg", overrides))
    assert isinstance(settings.bilm, BiLMConfig)
    with torch.device("meta"):
        n_parameters = sum(parameter.numel() for parameter in BiLM(settings.bilm).parameters())
    assert round(n_parameters / 1e6, 1) == {"pretrain_medium": 28.0, "pretrain_paper": 93.6}[name]


TASKS = [path for path in CONFIGS if "nlp" in CONFIGS[path]]
FINETUNE = ROOT / "configs" / "ner_finetune.cfg"
WITH_TWIN = [path for path in TASKS if path != FINETUNE]


@pytest.mark.parametrize("path", TASKS, ids=lambda path: path.name)
def test_task_configs_are_complete(path: Path, tmp_path: Path) -> None:
    fill_config(tmp_path / "filled.cfg", path, silent=True)
    filled = Config().from_disk(tmp_path / "filled.cfg", interpolate=False)
    assert filled == CONFIGS[path], "spacy init fill-config would add to it"


@pytest.mark.parametrize(
    "path", [path for path in WITH_TWIN if "elmo" in CONFIGS[path]["components"]], ids=lambda p: p.name
)
def test_task_configs_differ_from_their_twins_only_in_elmo(path: Path) -> None:
    config = CONFIGS[path].copy()
    twin = CONFIGS[path.with_stem(f"{path.stem}_baseline")]
    del config["components"]["elmo"], config["paths"]["weights"]
    config["nlp"]["pipeline"].remove("elmo")
    (component,) = config["components"].values()
    tok2vec = component["model"]["tok2vec"]
    assert tok2vec["@architectures"] == "spacy_elmo.Tok2Vec.v1"
    assert tok2vec["elmo_in"]["@architectures"] == "spacy_elmo.ElmoListener.v1"
    if tok2vec["encode"] is None:
        tok2vec["elmo_in"] = None
    else:  # what is left then is spaCy's own
        del tok2vec["elmo_in"], tok2vec["elmo_out"]
        tok2vec["@architectures"] = "spacy.Tok2Vec.v2"
    assert config == twin


def test_every_twin_has_a_config() -> None:
    names = {path.stem for path in WITH_TWIN}
    assert {f"{name}_baseline" for name in names if not name.endswith("_baseline")} == {
        name for name in names if name.endswith("_baseline")
    }


@pytest.fixture(scope="module")
def docs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with a few docs that have all that any of the configs learns."""
    nlp = spacy.blank("en")
    made = []
    for text, label in (("Ada wrote it in London .", "good"), ("It was Bob who saw Paris .", "bad")) * 6:
        doc = nlp(text)
        doc.set_ents([Span(doc, i, i + 1, "NAME") for i, token in enumerate(doc) if token.text[1:] and token.is_title])
        doc.cats = {name: float(name == label) for name in ("good", "bad")}
        for token in doc:
            token.tag_ = "NAME" if token.is_title else "OTHER"
        made.append(doc)
    path = tmp_path_factory.mktemp("docs") / "docs.spacy"
    DocBin(docs=made).to_disk(path)
    return path


@pytest.mark.parametrize("path", TASKS, ids=lambda path: path.name)
def test_task_configs_train(path: Path, docs: Path, tmp_path: Path) -> None:
    overrides = {
        "paths.train": str(docs),
        "paths.dev": str(docs),
        "training.max_steps": 2,
        "training.eval_frequency": 1,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of spaCy's, about so few docs
        train(path, tmp_path, overrides=overrides)
    assert (tmp_path / "model-last" / "config.cfg").is_file()
    scores = srsly.read_json(tmp_path / "model-last" / "meta.json")["performance"]
    (main,) = (name for name, weight in CONFIGS[path]["training"]["score_weights"].items() if weight == 1.0)
    assert main in scores


def test_finetuning_moves_the_bilm(docs: Path, tmp_path: Path) -> None:
    frozen = CONFIGS[FINETUNE].copy()
    frozen["components"]["elmo"]["frozen"] = True
    assert frozen == CONFIGS[ROOT / "configs" / "ner.cfg"]
    overrides = {"paths.train": str(docs), "paths.dev": str(docs), "training.max_steps": 3}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        train(FINETUNE, tmp_path, overrides=overrides)
    moved = spacy.load(tmp_path / "model-last").get_pipe("elmo").load().state_dict()
    for name, before in load_weights(find_weights(None)).state_dict().items():
        assert not before.equal(moved[name]), name
        assert (before - moved[name]).abs().max() < 1e-3  # three steps at a tenth of 0.001


@pytest.mark.slow
@pytest.mark.parametrize("path", TASKS, ids=lambda path: path.name)
def test_spacy_debugs_task_configs(path: Path, docs: Path, tmp_path: Path) -> None:
    paths = ("--paths.train", docs, "--paths.dev", docs)
    run(sys.executable, "-W", "ignore", "-m", "spacy", "debug", "config", path, *paths, cwd=tmp_path)
    output = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "spacy", "debug", "data", path, *paths],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    # It complains about so few docs, by its exit code, too.
    assert "12 training docs" in output.stdout
    assert "Traceback" not in output.stderr


PREDICT = """
import json, sys
import en_pipeline
doc = en_pipeline.load()("Ada saw Paris .")
print(json.dumps([doc.cats, doc.tensor.tolist()]))
"""


@pytest.mark.slow
def test_packaged_pipeline_predicts_the_same(docs: Path, tmp_path: Path) -> None:
    overrides = {
        "paths.train": str(docs),
        "paths.dev": str(docs),
        "training.max_steps": 4,
        "training.eval_frequency": 4,
    }
    train(ROOT / "configs" / "textcat.cfg", tmp_path / "out", overrides=overrides)
    model = tmp_path / "out" / "model-last"
    python = (sys.executable, "-W", "ignore", "-m")
    (tmp_path / "packages").mkdir()
    run(*python, "spacy", "package", model, tmp_path / "packages", "--build", "none", cwd=tmp_path)
    nlp = spacy.load(model)
    (source,) = (tmp_path / "packages").iterdir()
    assert any(line.startswith("spacy-elmo>=") for line in srsly.read_json(source / "meta.json")["requirements"])
    run(*python, "pip", "wheel", "-q", "--no-deps", "-w", tmp_path / "wheels", source, cwd=tmp_path)
    (wheel,) = (tmp_path / "wheels").iterdir()
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "installed")
    shutil.rmtree(tmp_path / "out")
    shutil.rmtree(tmp_path / "packages")
    output = run(sys.executable, "-W", "ignore", "-c", PREDICT, cwd=tmp_path, PYTHONPATH=str(tmp_path / "installed"))
    cats, tensor = json.loads(output)
    doc = nlp("Ada saw Paris .")
    assert cats == pytest.approx(doc.cats, abs=1e-6)
    assert_allclose(tensor, doc.tensor, atol=1e-5)


def test_links_of_the_docs_lead_somewhere() -> None:
    cards = (ROOT / "spacy_elmo" / "models").glob("*/README.md")
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *cards]:
        for part in page.read_text(encoding="utf8").split("](")[1:]:
            link = part.split(")")[0].replace("\n", "")
            if link.startswith("http"):
                continue
            target, _, anchor = link.partition("#")
            path = page.parent / target if target else page
            assert path.exists(), f"{page.name}: {link}"
            if anchor:
                lines = path.read_text(encoding="utf8").splitlines()
                headings = [line.lstrip("# ").lower().replace(" ", "-") for line in lines if line.startswith("#")]
                assert anchor in headings, f"{page.name}: {link}"


def test_settings_in_the_docs_are_those_of_the_factory() -> None:
    page = (ROOT / "docs" / "usage.md").read_text(encoding="utf8")
    table = page.split("## Settings of the component")[1].split("## ")[0]
    documented: dict[str, Any] = {}
    for line in table.splitlines():
        if line.startswith("| `"):
            names, values = (cell.replace("`", "").split(",") for cell in line.split("|")[1:3])
            documented |= {name.strip(): json.loads(value) for name, value in zip(names, values, strict=True)}
    assert documented == spacy.blank("en").get_factory_meta("elmo").default_config


def test_project_runs(tmp_path: Path) -> None:
    (tmp_path / "project.yml").write_bytes((ROOT / "project.yml").read_bytes())
    output = run(sys.executable, "-m", "spacy", "project", "run", "demo", cwd=tmp_path)
    assert "She wrote a [play] about two rival kings." in output


def copy_project(target: Path) -> None:
    for name in ("project.yml", "configs", "assets", "scripts"):
        source = ROOT / name
        shutil.copytree(source, target / name) if source.is_dir() else shutil.copy(source, target)


def assert_outputs_exist(directory: Path, workflow: str) -> None:
    """Check that what the project says that it writes was written."""
    project = srsly.read_yaml(ROOT / "project.yml")
    for command in project["commands"]:
        if command["name"] in project["workflows"][workflow]:
            for place in command.get("outputs", []):
                for name, value in project["vars"].items():
                    place = place.replace(f"${{vars.{name}}}", str(value))
                assert (directory / place).exists(), place


@pytest.mark.slow
def test_project_runs_all(tmp_path: Path) -> None:
    copy_project(tmp_path)
    # A part of the training, so that it fits a test.
    config = tmp_path / "configs" / "pretrain_tiny.cfg"
    config.write_text(config.read_text(encoding="utf8").replace("epochs = 12", "epochs = 4"), encoding="utf8")
    fewer = ("--vars.seeds", "1", "--vars.ner_steps", "20", "--vars.textcat_steps", "20")
    output = run(sys.executable, "-m", "spacy", "project", "run", "all", ".", *fewer, cwd=tmp_path)
    assert "The best model is training/bilm/model-best" in output
    scores = srsly.read_json(tmp_path / "training" / "bilm" / "perplexity.json")
    assert scores["perplexity_mean"] < 0.5 * scores["perplexity_unigram"]
    assert_outputs_exist(tmp_path, "all")


@pytest.mark.slow
def test_project_rebuilds_the_bundled_model(tmp_path: Path) -> None:
    copy_project(tmp_path)
    smaller = {"wikipedia": "assets/wikipedia_sample/dump.xml", "held_out_every": 10}
    smaller |= {"en_config": "pretrain_tiny", "en_steps": 120}
    options = [part for name, value in smaller.items() for part in (f"--vars.{name}", str(value))]
    output = run(sys.executable, "-m", "spacy", "project", "run", "en_elmo_sm", ".", *options, cwd=tmp_path)
    assert "58 articles of 222 paragraphs" in output
    assert "46 train, 6 dev, 6 test articles" in output
    assert_outputs_exist(tmp_path, "en_elmo_sm")
    scores = srsly.read_json(tmp_path / "training" / "en_elmo_sm" / "perplexity.json")
    assert scores["perplexity_mean"] < 0.8 * scores["perplexity_unigram"]
    bundle = tmp_path / "training" / "en_elmo_sm" / "bundle"
    carried = ROOT / "spacy_elmo" / "models" / "en_elmo_sm"
    assert {path.name for path in bundle.iterdir()} == {path.name for path in carried.iterdir()} - {"README.md"}
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"weights": str(bundle)})
    tensor = nlp("They play a play on Broadway .").tensor
    assert tensor.shape == (7, 128)
    assert abs(tensor[1] - tensor[3]).max() > 0.01


def test_recipe_of_the_bundled_model_has_its_sizes() -> None:
    recipe = CONFIGS[ROOT / "configs" / "en_elmo_sm.cfg"]
    carried = srsly.read_json(ROOT / "spacy_elmo" / "models" / "en_elmo_sm" / "config.json")
    assert {name: carried[name] for name in recipe["bilm"]} == recipe["bilm"]


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
    assets = [asset for asset in srsly.read_yaml(ROOT / "project.yml")["assets"] if folder in asset["dest"]]
    assert len(assets) == 3
    assert {asset["checksum"] for asset in assets} <= found


EXAMPLE = """
import spacy, spacy_elmo, sys
assert spacy_elmo.__file__.startswith(sys.argv[1]), spacy_elmo.__file__
nlp = spacy.blank("en")
nlp.add_pipe("elmo")
doc = nlp("They play a play on Broadway .")
assert doc.tensor.shape == (7, 256) and doc.tensor.dtype == "float32"
assert doc[1].similarity(doc[3]) < 0.999
assert doc._.elmo_layers.shape == (3, 7, 256)
nlp.to_disk("pipe")
assert (spacy.load("pipe")("They play a play on Broadway .").tensor == doc.tensor).all()
"""


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
