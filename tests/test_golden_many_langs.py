"""Exactness: models of ELMoForManyLangs give the layers that its own embedder computed with them (tests/golden/many_langs)."""

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest
import spacy
import torch
from numpy.testing import assert_allclose
from spacy.tokens import Doc

from spacy_elmo.bilm.embed import embed_sentences
from spacy_elmo.bilm.frozen import freeze
from spacy_elmo.bilm.weights import load_weights

from . import command_line, many_langs
from .golden.make_many_langs import HERE, MODELS
from .many_langs import Array, Model, make_model, run_sentence

SENTENCES: list[list[str]] = json.loads((HERE / "sentences.json").read_text(encoding="utf8"))


@pytest.fixture(params=MODELS)
def golden(request: pytest.FixtureRequest) -> Path:
    """The directory of a golden model."""
    return HERE / str(request.param)


@pytest.fixture
def model(golden: Path) -> Model:
    """What the files of a golden model hold."""
    return make_model(list(MODELS).index(golden.name), **MODELS[golden.name])


def stored_layers(golden: Path) -> list[Array]:
    """RETURNS (list): The original's layers of each sentence, (layers, words, width)."""
    with numpy.load(golden / "layers.npz") as file:
        return [file[str(i)] for i in range(len(SENTENCES))]


def zip_model(golden: Path, directory: Path) -> Path:
    """Pack a model in a folder, as it is published."""
    with zipfile.ZipFile(directory / "142.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for path in golden.iterdir():
            archive.write(path, f"de.model/{path.name}")
    return directory / "142.zip"


@pytest.mark.parametrize("zipped", [False, True], ids=["directory", "ZIP"])
def test_pipeline_computes_the_layers_of_the_original(golden: Path, tmp_path: Path, zipped: bool) -> None:
    source = zip_model(golden, tmp_path) if zipped else golden
    command_line.run("convert", source, tmp_path / "weights", "--lang", "de")
    nlp = spacy.blank("de")
    nlp.add_pipe("elmo", config={"weights": str(tmp_path / "weights")})
    # spaCy's docs have no empty words, and whitespace gets no vector.
    sentences = [[word for word in sentence if word.strip()] for sentence in SENTENCES]
    for i, doc in enumerate(nlp.pipe([Doc(nlp.vocab, words=words) for words in sentences])):
        if sentences[i] == SENTENCES[i]:
            assert_allclose(doc._.elmo_layers, stored_layers(golden)[i], rtol=0, atol=5e-6)


@pytest.mark.parametrize("kind", ["training", "prediction", "packed"])
def test_bilm_computes_the_layers_of_the_original(golden: Path, tmp_path: Path, kind: str) -> None:
    command_line.run("convert", golden, tmp_path / "weights")
    bilm = load_weights(tmp_path / "weights")
    bilm = freeze(bilm, "float32") if kind == "packed" else bilm
    with torch.set_grad_enabled(kind == "training"):
        together = embed_sentences(bilm, SENTENCES, max_batch_items=1000)
        alone = [embed_sentences(bilm, [words], max_batch_items=1000)[0] for words in SENTENCES]
    for found in (together, alone):
        for layers, expected in zip(found, stored_layers(golden), strict=True):
            assert layers.shape == expected.shape
            assert_allclose(layers.detach().numpy(), expected, rtol=0, atol=5e-6)


def test_reference_computes_the_layers_of_the_original(golden: Path, model: Model) -> None:
    for words, expected in zip(SENTENCES, stored_layers(golden), strict=True):
        assert_allclose(run_sentence(model, words), expected, rtol=0, atol=1e-6)


# The reference with one mistake at a time: golden data that a mistake does not change prove nothing.

Mistake = Callable[[Model], None]


def gates_in_the_order_of_bilm_tf(model: Model) -> None:
    for name in (name for name in model.arrays if "linearity" in name):
        i, f, g, o = numpy.split(model.arrays[name], 4)
        model.arrays[name] = numpy.concatenate([i, g, f, o])


def forget_bias_added(model: Model) -> None:
    n = model.sizes["encoder"]["dim"]
    for name in (name for name in model.arrays if name.endswith("linearity.bias")):
        model.arrays[name][n : 2 * n] += 1


def highway_gate_the_wrong_way_round(model: Model) -> None:
    for name in (name for name in model.arrays if "highways" in name):
        n = len(model.arrays[name]) // 2
        model.arrays[name][n:] *= -1


def marks_of_words_not_swapped(model: Model) -> None:
    ids = model.characters
    ids["<bow>"], ids["<eow>"] = ids["<eow>"], ids["<bow>"]


def padding_of_zeros(model: Model) -> None:
    if "char_emb_layer.embedding.weight" in model.arrays:
        model.arrays["char_emb_layer.embedding.weight"][model.characters["<pad>"]] = 0


def filters_before_words(model: Model) -> None:
    model.arrays["projection.weight"] = numpy.roll(model.arrays["projection.weight"], 1, axis=1)


def one_more_character(model: Model) -> None:
    model.sizes["token_embedder"]["max_characters_per_token"] += 1


def no_clipping(model: Model) -> None:
    model.sizes["encoder"].update(cell_clip=0, proj_clip=0)


def directions_swapped(model: Model) -> None:
    for name in [name for name in model.arrays if name.startswith("forward")]:
        other = name.replace("forward", "backward")
        model.arrays[name], model.arrays[other] = model.arrays[other], model.arrays[name]


OF_CHARACTERS = {highway_gate_the_wrong_way_round, marks_of_words_not_swapped, padding_of_zeros}
MISTAKES: list[Mistake] = [
    gates_in_the_order_of_bilm_tf,
    forget_bias_added,
    highway_gate_the_wrong_way_round,
    marks_of_words_not_swapped,
    padding_of_zeros,
    filters_before_words,
    one_more_character,
    no_clipping,
    directions_swapped,
]


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_detected(golden: Path, model: Model, mistake: Mistake) -> None:
    expected: list[Any] = stored_layers(golden)
    mistake(model)
    errors = [
        float(abs(run_sentence(model, words) - layers).max())
        for words, layers in zip(SENTENCES, expected, strict=True)
        if words
    ]
    needs_characters = mistake in OF_CHARACTERS and not MODELS[golden.name].get("char_dim", True)
    needs_clips = mistake is no_clipping and MODELS[golden.name].get("cell_clip") == 0
    assert max(errors) < 1e-6 if needs_characters or needs_clips else max(errors) > 1e-2


def test_words_are_cut_before_they_are_looked_up() -> None:
    # "Zauberhaft" has as many characters as are read of "Zauberhafte".
    model = make_model(char_dim=0)
    assert_allclose(run_sentence(model, ["Zauberhafte"]), run_sentence(model, ["Zauberhaft"]))
    assert len("Zauberhaft") + 2 == many_langs.SIZES["token_embedder"]["max_characters_per_token"]
