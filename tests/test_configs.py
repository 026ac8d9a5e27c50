"""The configs: complete, right, comparable with their baselines, and they train."""

import warnings
from pathlib import Path

import pytest
import spacy
import srsly
import torch
from spacy.cli.init_config import fill_config
from spacy.cli.train import train
from thinc.api import Config
from torch.nn import Parameter

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.bilm.weights import load_weights
from spacy_elmo.corpora.statistics import LEAST_MAX_CHARS
from spacy_elmo.models import find_weights
from spacy_elmo.pretraining.settings import load_run_config, read_settings

from .command_line import run_spacy

ROOT = Path(__file__).parents[1]
CONFIGS = {path: Config().from_disk(path, interpolate=False) for path in sorted((ROOT / "configs").glob("*.cfg"))}


@pytest.mark.parametrize(
    "path", [path for path in CONFIGS if "bilm_training" in CONFIGS[path]], ids=lambda path: path.name
)
def test_pretraining_configs_are_complete(path: Path) -> None:
    paths = {"paths.train": "train.txt", "paths.dev": "dev.txt", "paths.weights": "weights"}
    overrides = {name: value for name, value in paths.items() if name.split(".")[1] in CONFIGS[path]["paths"]}
    settings = read_settings(load_run_config(path, overrides))
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
    settings = read_settings(load_run_config(ROOT / "configs" / f"{name}.cfg", overrides))
    assert isinstance(settings.bilm, BiLMConfig)
    with torch.device("meta"):
        n_parameters = sum(parameter.numel() for parameter in BiLM(settings.bilm).parameters())
    assert round(n_parameters / 1e6, 1) == {"pretrain_medium": 28.0, "pretrain_paper": 93.6}[name]


TASKS = [path for path in CONFIGS if "nlp" in CONFIGS[path]]
FINETUNE = ROOT / "configs" / "ner_finetune.cfg"
WITH_BASELINE = [path for path in TASKS if path != FINETUNE]


@pytest.mark.parametrize("path", TASKS, ids=lambda path: path.name)
def test_task_configs_are_complete(path: Path, tmp_path: Path) -> None:
    fill_config(tmp_path / "filled.cfg", path, silent=True)
    filled = Config().from_disk(tmp_path / "filled.cfg", interpolate=False)
    assert filled == CONFIGS[path], "spacy init fill-config would add to it"


@pytest.mark.parametrize(
    "path", [path for path in WITH_BASELINE if "elmo" in CONFIGS[path]["components"]], ids=lambda p: p.name
)
def test_task_configs_differ_from_their_baselines_in_elmo(path: Path) -> None:
    config = CONFIGS[path].copy()
    baseline = CONFIGS[path.with_stem(f"{path.stem}_baseline")]
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
    if path.stem in ("crf_ner", "ner"):  # ELMo takes the place of the hashed words, which the baseline needs
        assert tok2vec["embed"].pop("attrs") == ["SHAPE"]
        assert tok2vec["embed"].pop("rows") == [2500]
        baseline = baseline.copy()
        for name in ("attrs", "rows"):
            del baseline["components"][path.stem]["model"]["tok2vec"]["embed"][name]
    assert config == baseline


def test_every_baseline_has_a_config() -> None:
    names = {path.stem for path in WITH_BASELINE}
    assert {f"{name}_baseline" for name in names if not name.endswith("_baseline")} == {
        name for name in names if name.endswith("_baseline")
    }


@pytest.mark.slow
@pytest.mark.parametrize("path", TASKS, ids=lambda path: path.name)
def test_task_configs_train(path: Path, task_docs: Path, tmp_path: Path) -> None:
    overrides = {
        "paths.train": str(task_docs),
        "paths.dev": str(task_docs),
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


@pytest.mark.slow
def test_finetuning_changes_the_bilm(task_docs: Path, tmp_path: Path) -> None:
    frozen = CONFIGS[FINETUNE].copy()
    frozen["components"]["elmo"]["frozen"] = True
    assert frozen == CONFIGS[ROOT / "configs" / "ner.cfg"]
    overrides = {"paths.train": str(task_docs), "paths.dev": str(task_docs), "training.max_steps": 3}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        train(FINETUNE, tmp_path, overrides=overrides)
    moved = spacy.load(tmp_path / "model-last").get_pipe("elmo").load().state_dict()
    for name, before in load_weights(find_weights(None)).state_dict().items():
        assert not before.equal(moved[name]), name
        assert (before - moved[name]).abs().max() < 1e-3  # three steps at a tenth of 0.001


@pytest.mark.parametrize("path", TASKS, ids=lambda path: path.name)
def test_spacy_debugs_task_configs(path: Path, task_docs: Path) -> None:
    paths = ("--paths.train", task_docs, "--paths.dev", task_docs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert "Config validation for [training]" in run_spacy("debug", "config", path, *paths)
        # It complains about so few docs, by its exit code, too.
        assert "12 training docs" in run_spacy("debug", "data", path, *paths, code=1)


def test_recipe_of_the_bundled_model_has_its_sizes() -> None:
    recipe = CONFIGS[ROOT / "configs" / "en_elmo_sm.cfg"]["bilm"]
    carried = srsly.read_json(ROOT / "spacy_elmo" / "models" / "en_elmo_sm" / "config.json")
    assert recipe.pop("max_chars") is None  # for English text: 50
    assert carried["projection_clip"] == 6 * recipe.pop("projection_clip")  # as scripts/rescale_model.py made it
    assert carried["max_chars"] == LEAST_MAX_CHARS
    assert {name: carried[name] for name in recipe} == recipe
