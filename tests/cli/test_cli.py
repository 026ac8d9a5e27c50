"""The commands, as typed."""

import json
import re
from pathlib import Path

import numpy
import pytest
import spacy
from numpy.testing import assert_allclose, assert_array_equal
from spacy.cli._util import app
from typer.testing import CliRunner

from spacy_elmo.bilm.weights import load_weights, save_weights

from ..command_line import run
from ..helpers import published_arrays, published_options, random_bilm, read_hdf5, write_published

CONFIG = Path(__file__).parents[2] / "configs" / "pretrain_tiny.cfg"


def test_help_names_the_commands() -> None:
    output = run("--help")
    assert "convert" in output
    assert "demo" in output
    assert "python -m spacy elmo convert WEIGHTS_DIR OUT --to bilm-tf" in run("convert", "--help")


def test_convert_there_and_back(tmp_path: Path) -> None:
    arrays = published_arrays(published_options())
    options, weights = write_published(tmp_path / "published", published_options(), arrays)
    output = run("convert", options, weights, tmp_path / "ours")
    assert "3 layers of width 12, initial state zero" in output
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


def test_convert_says_what_is_wrong(tmp_path: Path) -> None:
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
    assert "Supported: spacy-elmo, bilm-tf." in run("convert", options, weights, out, "--to", "onnx", code=1)
    assert "Supported: spacy-elmo, bilm-tf." in run("convert", options, weights, out, "--from", "onnx", code=1)
    assert "one weights directory, got 2 paths" in run("convert", options, weights, out, "--from", "spacy-elmo", code=1)
    assert "Choose another" in run("convert", tmp_path / "weights", tmp_path / "notes", code=1)
    assert (tmp_path / "notes" / "important.txt").read_text(encoding="utf8") == "keep me"
    (tmp_path / "empty.txt").write_text("\n", encoding="utf8")
    message = run("convert", tmp_path / "weights", out, "--warm-up", tmp_path / "empty.txt", code=1)
    assert "no sentence in the text" in message
    assert not out.exists()


def test_demo_tells_senses_apart(tmp_path: Path) -> None:
    output = run("demo")
    assert "The children [play] in the garden every afternoon. (verb)" in output
    assert "She wrote a [play] about two rival kings. (noun)" in output
    between = re.search(r"Similarity of the two: (\d\.\d{3})", output)
    assert between
    assert 0.3 < float(between[1]) < 0.8
    right = re.search(r"same sense for (\d+) of 60 uses", output)
    assert right
    assert int(right[1]) > 40  # by chance, 5 of the 11 other uses would be right: 27
    assert "Next: " in output
    assert "(river)" in run("demo", "--word", "bank")
    save_weights(random_bilm(), tmp_path / "weights")
    assert run("demo", "--weights", tmp_path / "weights") != output
    assert "no weights directory" in run("demo", "--weights", tmp_path / "nothing", code=1)
    (tmp_path / "weights" / "model.safetensors").write_bytes(b"half")
    message = run("demo", "--weights", tmp_path / "weights", code=1)
    assert "Could not run the demo" in message
    assert "model.safetensors" in message
    assert "play, bank, spring, bat, match" in run("demo", "--word", "table", code=1)


def test_neighbours(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("They play chess . He saw the play .\n\nCats sleep .\n", encoding="utf8")
    output = run("neighbours", tmp_path / "text.txt", "We [play] cards.", "A [play] ended.", "-n", "2", "--layer", "0")
    assert output.count("layer 0 1.000") == 4  # the token layer knows the word and no context
    assert "We [play] cards." in output
    assert "They [play] chess ." in output
    output = run("neighbours", tmp_path / "text.txt", "We [play] cards.", "-n", "3")
    assert "1.000" not in output
    assert output.index("They [play] chess .") < output.index("He saw the [play] .")
    assert "Cats" not in run("neighbours", tmp_path / "text.txt", "We [play].", "-n", "9", "--limit", "1")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["We play cards."], "one word in square brackets"),
        (["We [play] [cards]."], "one word in square brackets"),
        (["We [play cards]."], "'play cards' in square brackets is not one token"),
        (["We [pl]ay cards."], "'pl' in square brackets is not one token"),
        (["We [play].", "--layer", "3"], "no layer 3: the layers are 0 to 2"),
        (["We [play].", "--lang", "nolang"], "nolang"),
        (["We [play].", "--weights", "nothing"], "no weights directory"),
    ],
)
def test_neighbours_say_what_is_wrong(tmp_path: Path, arguments: list[str], message: str) -> None:
    (tmp_path / "text.txt").write_text("They play chess .\n", encoding="utf8")
    assert message in run("neighbours", tmp_path / "text.txt", *arguments, code=1)


def test_neighbours_in_nothing(tmp_path: Path) -> None:
    assert "nothing.txt" in run("neighbours", tmp_path / "nothing.txt", "We [play].", code=1)
    (tmp_path / "empty.txt").write_text("\n", encoding="utf8")
    assert "no sentence to search" in run("neighbours", tmp_path / "empty.txt", "We [play].", code=1)


@pytest.mark.parametrize("command", [["convert"], []])
def test_no_arguments_show_help(command: list[str]) -> None:
    result = CliRunner().invoke(app, ["elmo", *command])
    assert "Usage:" in result.output


def test_vocabulary_and_report_of_a_corpus(tmp_path: Path) -> None:
    (tmp_path / "corpus.txt").write_text("Ada wrote it. It is far.\n", encoding="utf8")
    output = run("init-vocab", tmp_path / "corpus.txt", tmp_path / "vocab.txt", "--lang", "en", "--max-size", "5")
    assert "5 words from 8 tokens in 2 sentences" in output
    assert (tmp_path / "vocab.txt").read_text(encoding="utf8") == "<S>\t2\n</S>\t2\n<UNK>\t5\n.\t2\nAda\t1\n"
    output = run("debug-data", tmp_path / "corpus.txt", "--max-chars", "6")
    assert "1 sentences, 6 tokens" in output
    assert "1 words are cut, 16.667% of the tokens" in output
    assert "'wrote'" in output
    assert "no corpus at" in run("init-vocab", tmp_path / "no.txt", tmp_path / "v.txt", code=1)
    assert "no corpus at" in run("debug-data", tmp_path / "no.txt", code=1)


def test_evaluate_a_model_in_the_package(tmp_path: Path) -> None:
    text, output = tmp_path / "text.txt", tmp_path / "new" / "scores.json"
    text.write_text("It is the capital of France. He was born in London.\n", encoding="utf8")
    assert "15 predictions" in (shown := run("evaluate", "en_elmo_sm", text, "--output", output))
    assert "raw text in the language 'en'" in shown
    scores = json.loads(output.read_text(encoding="utf8"))
    assert scores["n_predicted"] == 15  # 13 tokens and the ends of two sentences
    assert scores["perplexity_mean"] < scores["perplexity_unigram"] / 5
    shown = run("evaluate", "en_elmo_sm", text, "--tokenized")
    assert "12 predictions" in shown  # one sentence of 11 words: "France." is one
    assert "one tokenized sentence per line" in shown


def test_evaluate_says_what_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("It is so.\n", encoding="utf8")
    assert "There is no weights directory at" in run("evaluate", tmp_path / "no", tmp_path / "text.txt", code=1)
    assert "no corpus at" in run("evaluate", "en_elmo_sm", tmp_path / "no.txt", code=1)
    save_weights(random_bilm(1), tmp_path / "vectors")
    assert "softmax" in run("evaluate", tmp_path / "vectors", tmp_path / "text.txt", code=1)


def test_pretrain_says_what_is_wrong_once_on_each_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = tmp_path / "missing.txt"
    arguments = ("pretrain", CONFIG, tmp_path / "out", "--paths.train", missing, "--paths.dev", missing)
    assert "missing.txt" in run(*arguments, code=1)
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert run(*arguments, code=1) == ""
