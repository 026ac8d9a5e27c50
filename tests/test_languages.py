"""Weights and pipelines of one language, and of two."""

import re
import warnings
from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.language import Language

from spacy_elmo import models
from spacy_elmo.bilm.weights import load_config, save_weights
from spacy_elmo.cli.convert import convert
from spacy_elmo.embedding.model import load_embedder
from spacy_elmo.embedding.settings import EmbeddingSettings
from spacy_elmo.files.checksums import checksum
from spacy_elmo.models import bundled_models, choose_model, find_weights

from .helpers import random_bilm
from .listening import make_examples


def save(directory: Path, lang: str | None) -> str:
    save_weights(random_bilm(lang=lang), directory)
    return str(directory)


def add_elmo(lang: str, weights: str | None) -> Language:
    nlp = spacy.blank(lang)
    nlp.add_pipe("elmo", config={"weights": weights})
    return nlp


def test_the_default_model_in_another_language() -> None:
    message = (
        "The pipeline is for the language 'de', but the weights of 'elmo' are of 'en', so its vectors will be of little use. "
        "Set weights to a directory for 'de': `python -m spacy elmo convert` makes one from published weights, and "
        "`python -m spacy elmo pretrain` from text."
    )
    with pytest.warns(UserWarning, match=re.escape(message)):
        add_elmo("de", None)


def test_the_warning_comes_once(tmp_path: Path) -> None:
    weights = save(tmp_path / "weights", "de")
    with pytest.warns(UserWarning, match="is for the language 'en', but the weights of 'elmo' are of 'de'"):
        nlp = add_elmo("en", weights)
    nlp.initialize(lambda: make_examples(nlp))
    nlp("Ada wrote it")
    nlp.to_disk(tmp_path / "pipeline")
    spacy.load(tmp_path / "pipeline")("Ada wrote it")  # who made the pipeline knows


def test_training_from_a_config_warns(tmp_path: Path) -> None:
    config = add_elmo("de", save(tmp_path / "weights", "de")).config.copy()
    config["nlp"]["lang"] = "nl"
    nlp = spacy.util.load_model_from_config(config)
    with pytest.warns(UserWarning, match="is for the language 'nl', but the weights of 'elmo' are of 'de'"):
        nlp.initialize()


@pytest.mark.parametrize(
    ("pipeline", "weights"), [("de", "de"), ("de", None), ("xx", "de"), ("de", "xx"), ("en", "en")]
)
def test_no_warning(tmp_path: Path, pipeline: str, weights: str | None) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nlp = add_elmo(pipeline, save(tmp_path / "weights", weights))
        nlp.initialize(lambda: make_examples(nlp))


@pytest.fixture
def german(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package with a second bundled model."""
    for name, lang in (("en_elmo_sm", "en"), ("de_elmo_sm", "de")):
        save(tmp_path / "models" / name, lang)
    monkeypatch.setattr(models, "__file__", str(tmp_path / "models" / "__init__.py"))
    return tmp_path / "models" / "de_elmo_sm"


def test_the_bundled_model_of_the_language_is_chosen(german: Path, tmp_path: Path) -> None:
    assert bundled_models() == ["de_elmo_sm", "en_elmo_sm"]
    assert choose_model(None, "de") == "de_elmo_sm"
    assert choose_model("here", "de") == "here"
    # Null stays null for the default, whose name could also be that of a directory.
    assert choose_model(None, "en") is None
    assert choose_model(None, "nl") is None
    assert choose_model(None, "d") is None
    nlp = add_elmo("de", None)
    assert nlp.get_pipe("elmo").load().config.lang == "de"
    assert nlp.config["components"]["elmo"]["weights"] is None
    nlp.to_disk(tmp_path / "pipeline")
    assert spacy.load(tmp_path / "pipeline").get_pipe("elmo").load().config.lang == "de"
    assert add_elmo("en", None).get_pipe("elmo").load().config.lang == "en"
    with pytest.warns(UserWarning, match="is for the language 'nl', but the weights of 'elmo' are of 'en'"):
        add_elmo("nl", None)


def test_embedding_is_identified_by_the_chosen_model(german: Path) -> None:
    embedder = load_embedder(EmbeddingSettings(lang="de", shard_size=17))
    assert embedder.elmo.load().config.lang == "de"
    assert embedder.identity["weights"] == checksum(german)


def test_names_of_bundled_models_start_with_their_language() -> None:
    for name in bundled_models():
        assert load_config(find_weights(name)).lang == name.split("_")[0]


def make_chinese(segmenter: str) -> Language:
    tokenizer = {"@tokenizers": "spacy.zh.ChineseTokenizer", "segmenter": segmenter}
    return spacy.blank("zh", config={"nlp": {"tokenizer": tokenizer}})


def test_words_that_are_cut_in_another_way(tmp_path: Path) -> None:
    save_weights(random_bilm(lang="zh", segmenter="jieba"), tmp_path / "weights")
    config = {"weights": str(tmp_path / "weights")}
    make_chinese("jieba").add_pipe("elmo", config=config)
    message = (
        "The weights of 'elmo' were trained on words as 'jieba' cuts them, but the tokenizer of the pipeline cuts by 'char'. "
        'Set segmenter = "jieba" in [nlp.tokenizer].'
    )
    nlp = make_chinese("char")
    with pytest.warns(UserWarning, match=re.escape(message)):
        nlp.add_pipe("elmo", config=config)
    nlp.initialize()  # it has warned
    save_weights(random_bilm(lang="zh"), tmp_path / "unknown")
    make_chinese("jieba").add_pipe("elmo", config={"weights": str(tmp_path / "unknown")})


def test_the_segmenter_survives_conversion(tmp_path: Path) -> None:
    save_weights(random_bilm(lang="zh", segmenter="jieba"), tmp_path / "weights")
    convert([tmp_path / "weights"], tmp_path / "out", to="spacy-elmo", precision="int8")
    assert load_config(tmp_path / "out").segmenter == "jieba"


@pytest.mark.parametrize("segmenter", ["", "a b", 3, ["jieba"]])
def test_segmenters_that_make_no_sense(segmenter: Any) -> None:
    with pytest.raises(ValueError, match=r"segmenter must be a name, such as 'jieba', got"):
        random_bilm(segmenter=segmenter)
