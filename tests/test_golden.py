"""Exactness: models in published files give the layers that AllenNLP computed with them (tests/golden)."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy
import pytest
import spacy
import torch
from numpy.testing import assert_allclose
from spacy.language import Language
from spacy.tokens import Doc

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.embed import embed_sentences
from spacy_elmo.formats import bilm_tf

from . import command_line, reference
from .golden.make_golden import MODELS
from .helpers import Arrays, assert_same_arrays, read_hdf5

GOLDEN = Path(__file__).parent / "golden"
SENTENCES: list[list[str]] = json.loads((GOLDEN / "sentences.json").read_text(encoding="utf8"))


@pytest.fixture(params=MODELS)
def golden(request: pytest.FixtureRequest) -> Path:
    """The directory of a golden model."""
    return GOLDEN / str(request.param)


def stored_layers(golden: Path) -> list[Any]:
    """RETURNS (list): AllenNLP's layers of each sentence, (layers, words, width)."""
    with numpy.load(golden / "layers.npz") as file:
        return [file[str(i)] for i in range(len(SENTENCES))]


def convert_golden(golden: Path, directory: Path) -> Path:
    """Convert a golden model as a user would, and say where the weights are."""
    command_line.run("convert", golden / "options.json", golden / "weights.hdf5", directory / "weights")
    return directory / "weights"


def make_docs(nlp: Language) -> list[Doc]:
    return [Doc(nlp.vocab, words=words) for words in SENTENCES]


def test_golden_models_match_their_script(golden: Path) -> None:
    assert bilm_tf.read_options(golden / "options.json") == BiLMConfig(
        **MODELS[golden.name], max_chars=50, skip_connections=True
    )
    layers = stored_layers(golden)
    width = 2 * MODELS[golden.name]["projection"]
    assert [array.shape for array in layers] == [
        (MODELS[golden.name]["depth"] + 1, len(words), width) for words in SENTENCES
    ]
    assert {array.dtype for array in layers} == {numpy.dtype("float32")}


@pytest.mark.parametrize("grad", [False, True], ids=["inference", "training"])
def test_bilm_computes_the_layers_of_allennlp(golden: Path, grad: bool) -> None:
    bilm = bilm_tf.read([golden / "options.json", golden / "weights.hdf5"])
    with torch.set_grad_enabled(grad):
        together = embed_sentences(bilm, SENTENCES, max_batch_items=1000)
        in_batches = embed_sentences(bilm, SENTENCES, max_batch_items=30)
        alone = [embed_sentences(bilm, [words], max_batch_items=1000)[0] for words in SENTENCES]
    for found in (together, in_batches, alone):
        for layers, expected in zip(found, stored_layers(golden), strict=True):
            assert_allclose(layers.detach().numpy(), expected, rtol=0, atol=1e-5)


def test_pipeline_computes_the_layers_of_allennlp(golden: Path, tmp_path: Path) -> None:
    nlp = spacy.blank("xx")
    nlp.add_pipe("elmo", config={"weights": str(convert_golden(golden, tmp_path))})
    together = list(nlp.pipe(make_docs(nlp), batch_size=len(SENTENCES)))
    alone = [nlp(doc) for doc in make_docs(nlp)]
    for found in (together, alone):
        for doc, expected in zip(found, stored_layers(golden), strict=True):
            assert_allclose(doc._.elmo_layers, expected, rtol=0, atol=1e-5)
            # All that a new mix does is to take the mean.
            assert_allclose(doc.tensor, expected.mean(axis=0), rtol=0, atol=1e-5)


def test_converted_models_are_written_back_as_they_were(golden: Path, tmp_path: Path) -> None:
    command_line.run("convert", convert_golden(golden, tmp_path), tmp_path / "back", "--to", "bilm-tf")
    assert_same_arrays(read_hdf5(tmp_path / "back" / "weights.hdf5"), read_hdf5(golden / "weights.hdf5"))
    options = (golden / "options.json").read_text(encoding="utf8")
    assert (tmp_path / "back" / "options.json").read_text(encoding="utf8") == options


# The reference, and the same with one mistake at a time: golden data that a mistake does not change prove nothing.

Mistake = Callable[[dict[str, Any], Arrays], None]
TELLING = [0, 4, 8]  # sentences, because the reference is slow


def run_reference(golden: Path, sentences: Iterable[int], mistake: Mistake | None = None) -> dict[int, Any]:
    options = json.loads((golden / "options.json").read_text(encoding="utf8"))
    arrays = read_hdf5(golden / "weights.hdf5")
    if mistake is not None:
        mistake(options, arrays)
    return {i: reference.run_sentence(options, arrays, SENTENCES[i])[0] for i in sentences}


def top_error(golden: Path, found: dict[int, Any]) -> float:
    """RETURNS (float): The largest difference of the top layers from AllenNLP's."""
    expected = stored_layers(golden)
    return max(float(abs(layers[-1] - expected[i][-1]).max()) for i, layers in found.items())


def test_reference_computes_the_layers_of_allennlp(golden: Path) -> None:
    found = run_reference(golden, range(len(SENTENCES)))
    for layers, expected in zip(found.values(), stored_layers(golden), strict=True):
        assert_allclose(layers, expected, rtol=0, atol=1e-5)


def gates_in_another_order(options: dict[str, Any], arrays: Arrays) -> None:
    for key in (key for key in arrays if key.endswith(("/W_0", "/B"))):
        i, j, f, o = numpy.split(arrays[key], 4, axis=-1)
        arrays[key] = numpy.concatenate([i, f, j, o], axis=-1)


def no_forget_bias(options: dict[str, Any], arrays: Arrays) -> None:
    n = options["lstm"]["dim"]
    for key in (key for key in arrays if key.endswith("/B")):
        arrays[key][2 * n : 3 * n] -= 1


def highway_gate_the_wrong_way_round(options: dict[str, Any], arrays: Arrays) -> None:
    for key in (key for key in arrays if "carry" in key):
        arrays[key] *= -1  # 1 - sigmoid(x) is sigmoid(-x)


def highways_in_another_order(options: dict[str, Any], arrays: Arrays) -> None:
    for name in ("W_carry", "b_carry", "W_transform", "b_transform"):
        keys = [f"CNN_high_{i}/{name}" for i in range(options["char_cnn"]["n_highway"])]
        for key, array in zip(keys, [arrays[key] for key in reversed(keys)], strict=True):
            arrays[key] = array


def ids_not_shifted(options: dict[str, Any], arrays: Arrays) -> None:
    arrays["char_embed"] = numpy.concatenate([arrays["char_embed"][1:], arrays["char_embed"][:1]])


def padding_as_no_word(options: dict[str, Any], arrays: Arrays) -> None:
    arrays["char_embed"][reference.PADDING] = 0


def another_activation(options: dict[str, Any], arrays: Arrays) -> None:
    options["char_cnn"]["activation"] = "tanh" if options["char_cnn"]["activation"] == "relu" else "relu"


def no_cell_clip(options: dict[str, Any], arrays: Arrays) -> None:
    options["lstm"]["cell_clip"] = None


def no_projection_clip(options: dict[str, Any], arrays: Arrays) -> None:
    options["lstm"]["proj_clip"] = None


def one_more_byte(options: dict[str, Any], arrays: Arrays) -> None:
    options["char_cnn"]["max_characters_per_token"] += 1


def directions_swapped(options: dict[str, Any], arrays: Arrays) -> None:
    for key in [key for key in arrays if key.startswith("RNN_0")]:
        other = key.replace("RNN_0", "RNN_1")
        arrays[key], arrays[other] = arrays[other], arrays[key]


def input_and_hidden_swapped(options: dict[str, Any], arrays: Arrays) -> None:
    for key in (key for key in arrays if key.endswith("/W_0")):
        arrays[key] = numpy.concatenate(numpy.split(arrays[key], 2)[::-1])


MISTAKES = [
    gates_in_another_order,
    no_forget_bias,
    highway_gate_the_wrong_way_round,
    highways_in_another_order,
    ids_not_shifted,
    padding_as_no_word,
    another_activation,
    no_cell_clip,
    no_projection_clip,
    one_more_byte,
    directions_swapped,
    input_and_hidden_swapped,
]


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_in_reading_files_are_detected(golden: Path, mistake: Mistake) -> None:
    if mistake is highways_in_another_order and MODELS[golden.name]["highways"] == 1:
        return
    assert top_error(golden, run_reference(golden, TELLING, mistake)) > 1e-2


def test_characters_cut_at_the_length_of_a_word_are_detected(golden: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    widest = max(width for width, _ in MODELS[golden.name]["filters"])
    spell = reference.spell

    def cut(content: list[int], limit: int) -> list[int]:
        return spell(content, limit)[: max(len(content[: limit - 2]) + 2, widest)]

    monkeypatch.setattr(reference, "spell", cut)
    assert top_error(golden, run_reference(golden, TELLING)) > 1e-2


def test_missing_sentence_marks_are_detected(golden: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spell = reference.spell
    empty = {reference.BEGIN_SENTENCE, reference.END_SENTENCE}
    monkeypatch.setattr(reference, "spell", lambda ids, limit: spell([i for i in ids if i not in empty], limit))
    assert top_error(golden, run_reference(golden, TELLING)) > 1e-2


def test_a_carried_state_is_detected(golden: Path) -> None:
    options = json.loads((golden / "options.json").read_text(encoding="utf8"))
    arrays = read_hdf5(golden / "weights.hdf5")
    memory, found = None, {}
    for i in TELLING:
        found[i], memory = reference.run_sentence(options, arrays, SENTENCES[i], memory)
    assert top_error(golden, found) > 1e-2


def test_a_recurrent_residual_is_detected(golden: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    step = reference.step

    def step_with_residual(options: Any, arrays: Any, name: str, x: Any, h: Any, c: Any) -> Any:
        h, c = step(options, arrays, name, x, h, c)
        return (h, c) if "Cell0" in name and MODELS[golden.name]["depth"] > 1 else (x + h, c)

    def no_residual_outside(options: dict[str, Any], arrays: Arrays) -> None:
        options["lstm"]["use_skip_connections"] = False

    monkeypatch.setattr(reference, "step", step_with_residual)
    assert top_error(golden, run_reference(golden, TELLING, no_residual_outside)) > 1e-2
