"""The format of ELMoForManyLangs, against the reference: any sizes, and everything that weights go through."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from spacy_elmo.bilm.characters import Mark
from spacy_elmo.bilm.embed import embed_sentences
from spacy_elmo.bilm.frozen import freeze
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.bilm.weights import from_bytes, load_stored, load_weights, save_weights, to_bytes
from spacy_elmo.formats import bilm_tf, elmoformanylangs

from ..many_langs import CHARACTERS, SENTENCES, VARIANTS, make_model, run_sentence, write_model


def read(directory: Path, seed: int = 0, **changes: Any) -> BiLM:
    return elmoformanylangs.read([write_model(directory, make_model(seed, **changes))])


def run(bilm: BiLM, sentences: list[list[str]] = SENTENCES) -> list[torch.Tensor]:
    with torch.no_grad():
        return embed_sentences(bilm, sentences, max_batch_items=30)


def assert_same(one: BiLM, other: BiLM) -> None:
    assert one.config == other.config
    for found, expected in zip(run(one), run(other), strict=True):
        assert torch.equal(found, expected)


@pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS.keys())
@pytest.mark.parametrize("grad", [False, True], ids=["inference", "training"])
def test_layers_are_those_of_the_reference(tmp_path: Path, changes: dict[str, Any], grad: bool) -> None:
    bilm = read(tmp_path, 5, **changes)
    with torch.set_grad_enabled(grad):
        found = embed_sentences(bilm, SENTENCES, max_batch_items=30)
    for words, layers in zip(SENTENCES, found, strict=True):
        assert_allclose(layers.detach().numpy(), run_sentence(make_model(5, **changes), words), rtol=0, atol=5e-6)


@pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS.keys())
@pytest.mark.parametrize("grad", [False, True], ids=["inference", "training"])
def test_in_float64_the_layers_are_the_same(tmp_path: Path, changes: dict[str, Any], grad: bool) -> None:
    """Without the rounding of float32, which large weights amplify, nothing is left of the difference."""
    model = make_model(5, **changes)
    # Larger weights, and few digits: the file has float32, where another bias of the forget gate must not be rounded.
    arrays = {name: (2048 * array).round() / 1024 for name, array in model.arrays.items()}
    bilm = elmoformanylangs.read([write_model(tmp_path, model._replace(arrays=arrays))]).double()
    with torch.set_grad_enabled(grad):
        found = embed_sentences(bilm, SENTENCES, max_batch_items=30)
    exact = model._replace(arrays={name: array.astype("float64") for name, array in arrays.items()})
    for words, layers in zip(SENTENCES, found, strict=True):
        assert_allclose(layers.detach().numpy(), run_sentence(exact, words), rtol=0, atol=1e-12)


@given(sentence=st.lists(st.text([*"ausetrЯ好Z.q"], max_size=14) | st.sampled_from(["the", "New York"]), max_size=5))
def test_any_sentence(tmp_path_factory: pytest.TempPathFactory, sentence: list[str]) -> None:
    directory = tmp_path_factory.getbasetemp() / "any"
    bilm = read(directory, 6) if not directory.exists() else elmoformanylangs.read([directory])
    assert_allclose(run(bilm, [sentence])[0].numpy(), run_sentence(make_model(6), sentence), rtol=0, atol=5e-6)


@pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS.keys())
@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_round_trips_keep_everything(tmp_path: Path, changes: dict[str, Any], precision: Any) -> None:
    bilm = freeze(read(tmp_path / "theirs", 1, **changes), precision)
    # Over other weights, so that a writer or a reader that does nothing fails.
    save_weights(read(tmp_path / "others", 2, **changes), tmp_path / "ours")
    assert not torch.equal(run(load_weights(tmp_path / "ours"))[0], run(bilm)[0])
    save_weights(bilm, tmp_path / "ours")
    assert_same(freeze(load_stored(tmp_path / "ours"), precision), bilm)
    assert_same(freeze(from_bytes(to_bytes(bilm)), precision), bilm)


@pytest.mark.parametrize("changes", [{}, {"word_dim": 0}, {"char_dim": 0}])
def test_int8_is_close_to_float32(tmp_path: Path, changes: dict[str, Any]) -> None:
    whole, small = (torch.cat(run(freeze(read(tmp_path, 3, **changes), name)), dim=1) for name in ("float32", "int8"))
    assert not torch.equal(whole, small)
    assert float(torch.nn.functional.cosine_similarity(whole, small, dim=-1).min()) > 0.99


def test_a_literal_mark_in_a_text_is_no_mark(tmp_path: Path) -> None:
    bilm = read(tmp_path)
    with torch.no_grad():
        vectors = bilm.encode_words(["<bos>", "<eos>", Mark.BEGIN_SENTENCE, Mark.END_SENTENCE])
    assert len({tuple(vector.tolist()) for vector in vectors}) == 4


def test_config_has_the_tables(tmp_path: Path) -> None:
    config = read(tmp_path).config
    assert config.characters == "".join(entry for entry in CHARACTERS if len(entry) == 1)
    assert config.words == ("<pad>", "the", "house", "你好", "New York", "Zauberhaft", ".")
    assert (config.lang, config.normalize, config.always_project) == (None, None, True)
    assert "characters" not in repr(config)
    assert "words" not in repr(config)


def test_the_last_of_several_entries_of_whitespace_counts(tmp_path: Path) -> None:
    model = make_model(5)
    spaces = {
        "char.dic": {"Z": "\u00a0"},
        "word.dic": {"New York": "\u00a0", "Zauberhaft": " "},
    }  # after \u3000, in its file
    write_model(tmp_path, model)
    tables = []
    for name, ids in (("char.dic", model.characters), ("word.dic", model.words)):
        text = (tmp_path / name).read_text(encoding="utf8")
        for entry, space in spaces[name].items():
            text = text.replace(f"{entry}\t", f"{space}\t")
        (tmp_path / name).write_text(text, encoding="utf8", newline="\n")
        *_, last = spaces[name]
        tables.append({key: row for key, row in ids.items() if key not in spaces[name]} | {"\u3000": ids[last]})
    expected = model._replace(characters=tables[0], words=tables[1])
    sentences = [*SENTENCES, ["\u3000", "a\u3000b", "\u00a0"]]
    for words, layers in zip(sentences, run(elmoformanylangs.read([tmp_path]), sentences), strict=True):
        assert_allclose(layers.numpy(), run_sentence(expected, words), rtol=0, atol=5e-6)


@pytest.mark.parametrize("path", ["cnn.json", "../elsewhere/cnn.json", "D:\\models\\cnn.json", "/models/cnn.json"])
def test_sizes_are_found_by_their_name(tmp_path: Path, path: str) -> None:
    write_model(tmp_path, make_model())
    (tmp_path / "config.json").write_text(json.dumps({"config_path": path}))
    assert elmoformanylangs.read([tmp_path]).config.cells == 9


def test_published_sizes_need_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_model(tmp_path, make_model())
    (tmp_path / "cnn.json").unlink()
    config = {"config_path": "/home/author/configs/cnn_50_100_512_4096_sample.json"}
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(
        ValueError, match=r"do not fit the sizes in cnn_50_100_512_4096_sample.json, .*expected \(512, 2148\)"
    ):
        elmoformanylangs.read([tmp_path])
    monkeypatch.setattr(elmoformanylangs, "PUBLISHED_SIZES", make_model().sizes)
    assert elmoformanylangs.read([tmp_path]).config.cells == 9


@pytest.mark.parametrize("dtype", [torch.float16, torch.float64])
def test_other_precisions_and_newer_files(tmp_path: Path, dtype: torch.dtype) -> None:
    expected = read(tmp_path)
    for name in ("token_embedder.pkl", "encoder.pkl"):
        tensors = torch.load(tmp_path / name, weights_only=True)
        torch.save({key: tensor.to(dtype) for key, tensor in tensors.items()}, tmp_path / name)
    found = elmoformanylangs.read([tmp_path])
    assert {parameter.dtype for parameter in found.parameters()} == {torch.float32}
    assert_allclose(run(found)[0].numpy(), run(expected)[0].numpy(), atol=1e-2)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, "it has a table of words"),
        ({"word_dim": 0}, "it reads characters of its own, and not bytes"),
        ({"char_dim": 0}, "it has a table of words"),
    ],
)
def test_bilm_tf_cannot_store_such_models(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=rf"The format of bilm-tf cannot store this model: {message}\."):
        bilm_tf.write(read(tmp_path / "theirs", **changes), tmp_path / "out")
    assert not (tmp_path / "out").exists()
