"""`spacy elmo convert`, as typed."""

import json
import zipfile
from pathlib import Path

import numpy
import pytest
import spacy
from numpy.testing import assert_allclose, assert_array_equal

from spacy_elmo.bilm.weights import load_weights, save_weights

from ..command_line import run
from ..helpers import published_arrays, published_options, random_bilm, read_hdf5, write_published
from ..many_langs import make_model, write_model


def test_convert_roundtrip(tmp_path: Path) -> None:
    arrays = published_arrays(published_options())
    options, weights = write_published(tmp_path / "published", published_options(), arrays)
    output = run("convert", options, weights, tmp_path / "ours")
    assert "3 layers of width 12, language not given, initial state zero" in output
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"weights": str(tmp_path / "ours")})
    assert nlp("Ada wrote it").tensor.shape == (3, 12)
    run("convert", tmp_path / "ours", tmp_path / "again", "--to", "bilm-tf")
    for key, array in read_hdf5(tmp_path / "again" / "weights.hdf5").items():
        assert_array_equal(array, arrays.pop(key))
    assert not arrays
    assert json.loads((tmp_path / "again" / "options.json").read_text()) == published_options()


def test_convert_with_warm_up(tmp_path: Path) -> None:
    save_weights(random_bilm(), tmp_path / "cold")
    (tmp_path / "text.txt").write_text("Ada wrote it .\n\nIt is far .\n" * 300, encoding="utf8")
    output = run("convert", tmp_path / "cold", tmp_path / "warm", "--warm-up", tmp_path / "text.txt")
    assert "initial state stored" in output
    assert "had not settled" not in output
    (tmp_path / "line.txt").write_text("Ada wrote it .", encoding="utf8")
    output = run("convert", tmp_path / "cold", tmp_path / "warm", "--warm-up", tmp_path / "line.txt")
    assert "the stored initial state had not settled yet" in output
    run("convert", tmp_path / "cold", tmp_path / "warm", "--warm-up", tmp_path / "text.txt")
    warm = load_weights(tmp_path / "warm")
    assert warm.initial_hidden is not None
    assert numpy.abs(warm.initial_hidden.numpy()).max() > 0.01
    assert_allclose(warm.char_cnn.embedding.weight.detach(), random_bilm().char_cnn.embedding.weight.detach())
    output = run("convert", tmp_path / "warm", tmp_path / "published", "--to", "bilm-tf")
    assert "The format bilm-tf cannot store the initial state" in output


def test_convert_reports_errors(tmp_path: Path) -> None:
    (tmp_path / "options.json").write_text("{", encoding="utf8")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "important.txt").write_text("keep me", encoding="utf8")
    save_weights(random_bilm(), tmp_path / "weights")
    out = tmp_path / "out"
    options, weights = write_published(
        tmp_path / "published", published_options(), published_arrays(published_options())
    )
    assert "are not JSON" in run("convert", tmp_path / "options.json", weights, out, code=1)
    assert "no file or directory at" in run("convert", tmp_path / "no.json", weights, out, code=1)
    assert "no file or directory at" in run("convert", tmp_path / "nothing", out, code=1)
    assert "at least two paths: SOURCE... OUT" in run("convert", tmp_path / "weights", code=1)
    assert "bilm-tf (options.json and weights.hdf5)" in run("convert", options, weights, code=1)
    assert "to write: 'onnx'. Supported: spacy-elmo, bilm-tf." in run(
        "convert", options, weights, out, "--to", "onnx", code=1
    )
    readable = "to read: 'onnx'. Supported: elmoformanylangs, spacy-elmo, bilm-tf."
    assert readable in run("convert", options, weights, out, "--from", "onnx", code=1)
    assert "one weights directory, got 2 paths" in run("convert", options, weights, out, "--from", "spacy-elmo", code=1)
    assert "Choose another" in run("convert", tmp_path / "weights", tmp_path / "notes", code=1)
    assert (tmp_path / "notes" / "important.txt").read_text(encoding="utf8") == "keep me"
    (tmp_path / "empty.txt").write_text("\n", encoding="utf8")
    message = run("convert", tmp_path / "weights", out, "--warm-up", tmp_path / "empty.txt", code=1)
    assert "no sentence in the text" in message
    assert not out.exists()


@pytest.mark.parametrize(("precision", "fraction"), [("float16", 0.52), ("int8", 0.31)])
def test_convert_to_smaller_weights(tmp_path: Path, precision: str, fraction: float) -> None:
    sizes = {"filters": [[1, 64]], "projection": 64, "cells": 256}
    save_weights(random_bilm(2, **sizes), tmp_path / "weights")
    out = run("convert", tmp_path / "weights", tmp_path / "small", "--precision", precision)
    assert f"parameters in {precision}" in out
    whole, small = (sum(path.stat().st_size for path in (tmp_path / name).iterdir()) for name in ("weights", "small"))
    assert small < fraction * whole
    for name, tensor in random_bilm(2, **sizes).state_dict().items():
        loaded = load_weights(tmp_path / "small").state_dict()[name]
        assert (loaded - tensor).abs().max() <= tensor.abs().max() / 253
    run("convert", tmp_path / "small", tmp_path / "back")
    assert load_weights(tmp_path / "back").config == random_bilm(2, **sizes).config


def test_convert_refuses_precisions_that_a_format_cannot_store(tmp_path: Path) -> None:
    save_weights(random_bilm(), tmp_path / "weights")
    for options, message in (
        (("--to", "bilm-tf", "--precision", "int8"), "cannot store weights in 'int8'. Its precisions are: float32."),
        (("--precision", "int4"), "cannot store weights in 'int4'. Its precisions are: float32, float16, int8."),
    ):
        out = run("convert", tmp_path / "weights", tmp_path / "out", *options, code=1)
        assert message in out
        assert not (tmp_path / "out").exists()


def zip_files(path: Path, *files: Path) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for file in files:
            archive.write(file, file.name)
        archive.writestr("meta.json", "{}")
    return path


def test_convert_published_models_in_directories_and_zip_files(tmp_path: Path) -> None:
    arrays = published_arrays(published_options())
    paths = write_published(tmp_path / "published", published_options(), arrays)
    (tmp_path / "published" / "vocab.txt").touch()
    paths[0].rename(tmp_path / "published" / "elmo_small_options.json")
    paths[1].rename(tmp_path / "published" / "model.hdf5")
    files = list((tmp_path / "published").iterdir())
    for source in (tmp_path / "published", zip_files(tmp_path / "195.zip", *files)):
        run("convert", source, tmp_path / "ours")
        found = load_weights(tmp_path / "ours").char_cnn.embedding.weight.detach().numpy()
        assert_array_equal(found, arrays["char_embed"])
        save_weights(random_bilm(7), tmp_path / "ours")
    (tmp_path / "published" / "more.h5").touch()
    message = run("convert", tmp_path / "published", tmp_path / "out", code=1)
    assert "in it" not in message
    assert "got elmo_small_options.json, model.hdf5, more.h5." in message
    message = run("convert", zip_files(tmp_path / "empty.zip"), tmp_path / "out", code=1)
    assert "No supported format fits" in message
    assert "or a ZIP file of these" in message
    assert not (tmp_path / "out").exists()


def test_convert_records_the_language(tmp_path: Path) -> None:
    save_weights(random_bilm(), tmp_path / "weights")
    assert "language not given" in run("convert", tmp_path / "weights", tmp_path / "same")
    assert "language de" in run("convert", tmp_path / "weights", tmp_path / "german", "--lang", "de")
    assert load_weights(tmp_path / "german").config.lang == "de"
    # It stays, with any precision, until another one is given.
    assert "language de" in run("convert", tmp_path / "german", tmp_path / "small", "--precision", "int8")
    assert load_weights(tmp_path / "small").config == load_weights(tmp_path / "german").config
    assert "language nl" in run("convert", tmp_path / "small", tmp_path / "dutch", "--lang", "nl")
    assert "spaCy has no language 'deutsch'" in run(
        "convert", tmp_path / "weights", tmp_path / "x", "--lang", "deutsch"
    )
    assert "spaCy has no" not in run("convert", tmp_path / "weights", tmp_path / "x", "--lang", "ja")  # needs a package
    warning = "The format bilm-tf cannot store the language 'de': it was left out"
    assert warning in run("convert", tmp_path / "german", tmp_path / "published", "--to", "bilm-tf")
    assert "cannot store" not in run("convert", tmp_path / "weights", tmp_path / "published", "--to", "bilm-tf")
    assert "cannot store" not in run("convert", tmp_path / "german", tmp_path / "same")
    message = run("convert", tmp_path / "weights", tmp_path / "out", "--lang", "to German", code=1)
    assert "lang must be the code of a language, such as 'de', got 'to German'" in message


def test_convert_records_the_normal_form(tmp_path: Path) -> None:
    save_weights(random_bilm(), tmp_path / "weights")
    run("convert", tmp_path / "weights", tmp_path / "nfkc", "--normalize", "NFKC")
    run("convert", tmp_path / "nfkc", tmp_path / "again")
    assert load_weights(tmp_path / "again").config.normalize == "NFKC"
    message = run("convert", tmp_path / "nfkc", tmp_path / "out", "--to", "bilm-tf", code=1)
    assert "bilm-tf cannot store this model: it converts words to NFKC before it reads them" in message
    run("convert", tmp_path / "nfkc", tmp_path / "none", "--normalize", "none")
    assert load_weights(tmp_path / "none").config == random_bilm().config
    message = run("convert", tmp_path / "weights", tmp_path / "out", "--normalize", "nfkc", code=1)
    assert "normalize must be one of NFC, NFD, NFKC, NFKD, got 'nfkc'" in message
    assert not (tmp_path / "out").exists()


def test_convert_models_of_elmoformanylangs(tmp_path: Path) -> None:
    directory = write_model(tmp_path / "de.model", make_model(4))
    output = run("convert", directory, tmp_path / "ours", "--from", "elmoformanylangs", "--lang", "de")
    assert "3 layers of width 10, language de" in output
    message = run("convert", directory, tmp_path / "out", "--to", "elmoformanylangs", code=1)
    assert "Unsupported format to write: 'elmoformanylangs'. Supported: spacy-elmo, bilm-tf." in message
    message = run("convert", directory, tmp_path / "out", "--from", "spacy-elmo", code=1)
    assert "is a model of ELMoForManyLangs" in message
    (directory / "encoder.pkl").write_bytes(b"")
    path = zip_files(tmp_path / "142.zip", *directory.iterdir())
    assert f"{path}/encoder.pkl is damaged" in run("convert", path, tmp_path / "out", code=1)
    assert not (tmp_path / "out").exists()


def test_convert_a_bundled_model_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run("convert", "en_elmo_sm", "small", "--precision", "int8")
    nlp, other = spacy.blank("en"), spacy.blank("en")
    nlp.add_pipe("elmo", config={"weights": "small", "precision": "int8"})
    other.add_pipe("elmo", config={"precision": "int8"})
    assert_array_equal(nlp("Ada wrote it").tensor, other("Ada wrote it").tensor)
    (tmp_path / "en_elmo_sm").mkdir()
    assert "is a bundled model, and a directory here as well" in run("convert", "en_elmo_sm", "small", code=1)
