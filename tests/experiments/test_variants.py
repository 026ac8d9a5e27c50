"""Variants of a config: where ELMo goes in, and how its layers are mixed."""

from pathlib import Path
from typing import Any

import pytest
from confection import Config, ConfigValidationError

from spacy_elmo.experiments.variants import Variant, make_variant

CONFIGS = Path(__file__).parents[2] / "configs"


def load(name: str) -> Config:
    return Config().from_disk(CONFIGS / f"{name}.cfg", interpolate=False)


def vary(config: Config, place: str, **settings: Any) -> Config:
    return make_variant(config, Variant("mine", "mine", place, settings))


@pytest.mark.parametrize("name", ["ner", "crf_ner", "tagger"])
def test_elmo_goes_to_the_input_and_the_output_of_the_encoder(name: str) -> None:
    config = load(name)
    (component,) = (name for name in config["components"] if name != "elmo")
    path = ("components", component, "model", "tok2vec")

    def block(variant: Config) -> Any:
        section: Any = variant
        for key in path:
            section = section[key]
        return section

    listener = {**block(config)["elmo_in"], "layers": "top", "l2": 1.0}
    for place, expected in {
        "input": (listener, None),
        "output": (None, listener),
        "both": (listener, listener),
    }.items():
        variant = vary(config, place, layers="top", l2=1.0)
        assert (block(variant)["elmo_in"], block(variant)["elmo_out"]) == expected
        block(variant).update(elmo_in=block(config)["elmo_in"], elmo_out=None)
        assert variant == config  # nothing else changed
    assert config == load(name)


def test_elmo_goes_to_the_output_of_the_classifier() -> None:
    config = load("textcat")
    listener = config["components"]["textcat"]["model"]["tok2vec"]["elmo_in"]
    model = vary(config, "output")["components"]["textcat"]["model"]
    assert (model["tok2vec"]["elmo_in"], model["tok2vec"]["elmo_out"], model["output"]) == (None, None, listener)
    model = vary(config, "both")["components"]["textcat"]["model"]
    assert (model["tok2vec"]["elmo_in"], model["tok2vec"]["elmo_out"], model["output"]) == (listener, None, listener)


def test_without_elmo_the_config_is_its_baseline() -> None:
    variant = vary(load("textcat"), "none", layers="top")
    del variant["paths"]["weights"]
    assert variant == load("textcat_baseline")


def test_without_elmo_no_list_names_it() -> None:
    config = load("ner")
    config["training"]["frozen_components"] = ["elmo"]
    config["training"]["annotating_components"] = ["elmo", "ner"]
    variant = vary(config, "none")
    assert variant["nlp"]["pipeline"] == ["ner"]
    assert variant["training"]["frozen_components"] == []
    assert variant["training"]["annotating_components"] == ["ner"]


def test_settings_that_a_listener_does_not_have_are_refused() -> None:
    with pytest.raises(ConfigValidationError, match="layer"):
        vary(load("ner"), "input", layer="top")
    with pytest.raises(ConfigValidationError, match="layers must be one of .* got 'bottom'"):
        vary(load("ner"), "input", layers="bottom")


def test_settings_may_be_variables_of_the_config() -> None:
    config = load("ner")
    block = config["components"]["ner"]["model"]["tok2vec"]
    block["elmo_in"]["dropout"] = "${training.dropout}"
    variant = vary(config, "both", l2="${training.dropout}")["components"]["ner"]["model"]["tok2vec"]
    assert variant["elmo_in"] == {**block["elmo_in"], "l2": "${training.dropout}"}
    assert variant["elmo_out"]["dropout"] == "${training.dropout}"
    with pytest.raises(ConfigValidationError, match="dropout"):
        vary(config, "both", dropout="${training.train_corpus}")


def test_configs_without_a_place_for_elmo_are_refused() -> None:
    with pytest.raises(ValueError, match=r"No component of the config has a spacy_elmo.Tok2Vec.v1 with .* as elmo_in"):
        vary(load("ner_baseline"), "input")
    config = load("ner")
    config["components"]["ner"]["model"]["tok2vec"]["embed"] = None
    with pytest.raises(ValueError, match="'mine' has no ELMo at the input, and .* has no embed either"):
        vary(config, "output")
    config = load("ner")
    config["components"]["ner"]["model"]["tok2vec"]["encode"] = None
    with pytest.raises(ValueError, match=r"'mine' has ELMo at the output, but .* has no encoder"):
        vary(config, "both")
