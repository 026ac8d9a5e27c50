"""Language models on disk: what goes in comes out, and nothing is ever half written."""

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from spacy_elmo.bilm import weights
from spacy_elmo.bilm.weights import load_weights, save_weights
from spacy_elmo.pretraining import model_files
from spacy_elmo.pretraining.language_model import LanguageModel
from spacy_elmo.pretraining.model_files import (
    SOFTMAX,
    VOCABULARY,
    has_softmax,
    load_language_model,
    save_language_model,
    tokenizer_lang_of,
    vocabulary_of,
)
from spacy_elmo.pretraining.perplexity import measure_likelihood
from spacy_elmo.pretraining.softmax import Softmax
from spacy_elmo.pretraining.vocabulary import Vocabulary, count_words

from ..helpers import random_bilm
from .runs import assert_same_tensors, read_files

TEXT = [["the", "duck", "sat"], ["the", "naïve", "duck"]]
OTHER_TEXT = [["a", "b", "c", "d", "e"]]


def make_model(seed: int = 0, text: list[list[str]] = TEXT) -> tuple[LanguageModel, Vocabulary]:
    vocabulary = count_words(text, max_size=100)
    bilm = random_bilm(seed)
    softmax = Softmax(len(vocabulary), bilm.config.projection).initialize(seed + 1, vocabulary.counts)
    with torch.no_grad():
        softmax.bias.copy_(torch.linspace(-1, 1, len(vocabulary)) + seed)
    return LanguageModel(bilm, softmax), vocabulary


def test_language_model_roundtrip(tmp_path: Path) -> None:
    model, vocabulary = make_model()
    model.bilm.initial_hidden, model.bilm.initial_cell = torch.rand(2, 2, 6), torch.rand(2, 2, 10)
    save_language_model(*make_model(7, OTHER_TEXT), tmp_path / "out")
    save_language_model(model, vocabulary, tmp_path / "out")
    assert sorted(read_files(tmp_path)) == [
        f"out/{name}" for name in ("config.json", "model.safetensors", SOFTMAX, VOCABULARY)
    ]
    loaded, words = load_language_model(tmp_path / "out")
    assert words == vocabulary == vocabulary_of(tmp_path / "out")
    assert_same_tensors(loaded.state_dict(), model.state_dict())
    assert "bilm.initial_hidden" in loaded.state_dict()
    assert measure_likelihood(loaded, words, TEXT) == measure_likelihood(model, vocabulary, TEXT)
    # It is a weights directory, too.
    assert_same_tensors(load_weights(tmp_path / "out").state_dict(), model.bilm.state_dict())


def test_language_of_the_tokenizer_is_stored(tmp_path: Path) -> None:
    for lang in ("zh", None):
        save_language_model(*make_model(), tmp_path / "out", lang=lang)
        assert tokenizer_lang_of(tmp_path / "out") == lang
    assert tokenizer_lang_of(tmp_path / "nowhere") is None


def test_weights_without_a_softmax(tmp_path: Path) -> None:
    model, vocabulary = make_model()
    save_weights(model.bilm, tmp_path / "bare")
    assert not has_softmax(tmp_path / "bare")
    with pytest.raises(
        ValueError, match=r"bare have no softmax .*pretrain configs/finetune.cfg OUT --paths.weights .*bare"
    ):
        load_language_model(tmp_path / "bare")
    for name in (SOFTMAX, VOCABULARY):
        save_language_model(model, vocabulary, tmp_path / "out")
        assert has_softmax(tmp_path / "out")
        (tmp_path / "out" / name).unlink()
        assert not has_softmax(tmp_path / "out")
        with pytest.raises(ValueError, match="have no softmax"):
            load_language_model(tmp_path / "out")
    with pytest.raises(ValueError, match="There is no weights directory at .*nowhere"):
        load_language_model(tmp_path / "nowhere")


def test_softmax_that_does_not_fit(tmp_path: Path) -> None:
    save_language_model(*make_model(), tmp_path / "out")
    path = tmp_path / "out" / SOFTMAX
    tensors = load_file(path)
    data = path.read_bytes()
    for kept in (0, 5, len(data) - 1):
        path.write_bytes(data[:kept])
        with pytest.raises(ValueError, match=r"softmax\.safetensors is not a safetensors file, or an incomplete one"):
            load_language_model(tmp_path / "out")
    save_file({"weight": tensors["weight"]}, path)
    with pytest.raises(ValueError, match=r"do not fit the 7 words of vocab\.txt: missing \['bias'\]"):
        load_language_model(tmp_path / "out")
    save_file({**tensors, "more": torch.zeros(1)}, path)
    with pytest.raises(ValueError, match=r"unexpected \['more'\]"):
        load_language_model(tmp_path / "out")
    save_file({**tensors, "weight": tensors["weight"][:-1].contiguous()}, path)
    with pytest.raises(ValueError, match=r"weight is \(6, 6\), expected \(7, 6\)"):
        load_language_model(tmp_path / "out")


def test_softmax_that_is_not_a_number(tmp_path: Path) -> None:
    model, vocabulary = make_model()
    with torch.no_grad():
        model.softmax.weight[0, 0] = torch.nan
    save_language_model(model, vocabulary, tmp_path / "out")
    with pytest.raises(ValueError, match="infinite or not a number"):
        load_language_model(tmp_path / "out")


def test_vocabulary_of_another_softmax(tmp_path: Path) -> None:
    model, vocabulary = make_model()
    save_language_model(model, vocabulary, tmp_path / "out")
    count_words(OTHER_TEXT, max_size=100).to_disk(tmp_path / "out" / VOCABULARY)
    with pytest.raises(ValueError, match=r"do not fit the 8 words of vocab\.txt: of another shape"):
        load_language_model(tmp_path / "out")
    (tmp_path / "out" / VOCABULARY).write_text("no vocabulary", encoding="utf8")
    with pytest.raises(ValueError, match="expected a word, a tab and its frequency"):
        load_language_model(tmp_path / "out")


@pytest.mark.parametrize("precision", [torch.float16, torch.float64])
def test_softmax_of_another_precision(tmp_path: Path, precision: torch.dtype) -> None:
    model, vocabulary = make_model()
    save_language_model(model, vocabulary, tmp_path / "out")
    path = tmp_path / "out" / SOFTMAX
    save_file({name: tensor.to(precision) for name, tensor in load_file(path).items()}, path)
    loaded, _ = load_language_model(tmp_path / "out")
    assert loaded.softmax.weight.dtype == torch.float32
    torch.testing.assert_close(loaded.softmax.weight, model.softmax.weight, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("part", ["weights", "softmax", "vocabulary"])
def test_failing_write_keeps_the_existing_model(tmp_path: Path, part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    save_language_model(*make_model(), tmp_path / "out")
    before = read_files(tmp_path)

    def fail(*_: Any, **__: Any) -> None:
        raise OSError("no space left on device")

    if part == "vocabulary":
        monkeypatch.setattr(Vocabulary, "to_disk", fail)
    else:
        monkeypatch.setattr(weights if part == "weights" else model_files, "format_tensors", fail)
    for directory in ("out", "new"):
        with pytest.raises(OSError, match="no space left"):
            save_language_model(*make_model(7, OTHER_TEXT), tmp_path / directory)
    assert read_files(tmp_path) == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_language_model_keeps_unrelated_files(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work", encoding="utf8")
    with pytest.raises(ValueError, match=r"has other files in it, such as 'thesis\.txt'"):
        save_language_model(*make_model(), tmp_path)
    assert read_files(tmp_path) == {"thesis.txt": b"years of work"}
