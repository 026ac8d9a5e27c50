"""Files of ELMoForManyLangs that are incomplete, damaged or hostile."""

import json
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from spacy_elmo.formats import detect_format, elmoformanylangs

from ..many_langs import make_model, write_model
from ..traps import Trap

FILES = ("token_embedder.pkl", "encoder.pkl")


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A good model, for a test to break."""
    return write_model(tmp_path / "model", make_model())


def change_tensors(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    tensors = torch.load(path, weights_only=True)
    change(tensors)
    torch.save(tensors, path, _use_new_zipfile_serialization=False)


def change_sizes(directory: Path, section: str, name: str, value: Any) -> None:
    sizes = json.loads((directory / "cnn.json").read_text(encoding="utf8"))
    sizes[section][name] = value
    (directory / "cnn.json").write_text(json.dumps(sizes))


def expect(directory: Path, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        elmoformanylangs.read([directory])


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("zipped", [False, True], ids=["torch 0.4", "newer"])
def test_hostile_pickles_run_nothing(directory: Path, tmp_path: Path, name: str, zipped: bool) -> None:
    trap = Trap(tmp_path / "sprung")
    for hostile in (trap, {"projection.weight": trap}, [trap]):
        torch.save(hostile, directory / name, _use_new_zipfile_serialization=zipped)
        expect(
            directory,
            rf"{name} is damaged or incomplete, or it holds something else than weights, which could run code",
        )
        (directory / name).write_bytes(pickle.dumps(hostile))
        expect(directory, rf"{name} is damaged or incomplete")
    assert not (tmp_path / "sprung").exists()
    pickle.loads(pickle.dumps(trap))
    assert (tmp_path / "sprung").exists()  # the trap works


def test_errors_do_not_advise_to_run_code(directory: Path, tmp_path: Path) -> None:
    torch.save(Trap(tmp_path / "sprung"), directory / "encoder.pkl")
    with pytest.raises(ValueError, match="Download it again, from a source that you trust") as error:
        elmoformanylangs.read([directory])
    assert "weights_only" not in str(error.value)
    assert error.value.__suppress_context__ or error.value.__context__ is None


@pytest.mark.parametrize("name", FILES)
def test_files_that_may_not_be_read(directory: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    open_any = Path.open

    def refuse(path: Path, *arguments: Any, **settings: Any) -> Any:
        if path.name == name:
            raise PermissionError(13, "Permission denied", str(path))
        return open_any(path, *arguments, **settings)

    monkeypatch.setattr(Path, "open", refuse)
    monkeypatch.setattr("zipfile.is_zipfile", lambda path: False)  # what it says of files that cannot be opened
    expect(directory, rf"^\S+{name} cannot be read: .*Permission denied: .*\.$")


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("zipped", [False, True], ids=["torch 0.4", "newer"])
@pytest.mark.parametrize("keep", [0, 1, 10, 300, 0.5, -1])
def test_truncated_pickles(directory: Path, name: str, zipped: bool, keep: float) -> None:
    path = directory / name
    torch.save(torch.load(path, weights_only=True), path, _use_new_zipfile_serialization=zipped)
    data = path.read_bytes()
    path.write_bytes(data[: int(keep * len(data)) if keep == 0.5 else int(keep)])
    expect(directory, rf"{name} is damaged or incomplete")


@pytest.mark.parametrize(
    "content",
    [
        [1, 2],
        None,
        {"projection.weight": [1.0]},
        {"projection.weight": torch.ones(5, 18, dtype=torch.int64)},
        {"projection.weight": torch.ones(5, 18).to_sparse()},
    ],
)
def test_pickles_of_something_else(directory: Path, content: Any) -> None:
    torch.save(content, directory / "token_embedder.pkl")
    expect(directory, "token_embedder.pkl is damaged or incomplete, or it holds something else than weights")


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("encoder.pkl", lambda t: t.pop("forward_layer_0.state_linearity.bias"), r"missing \['forward_layer_0.state_l"),
        ("encoder.pkl", lambda t: t.update(peephole=torch.ones(1)), r"unexpected \['peephole'\]"),
        ("encoder.pkl", lambda t: t.update({7: torch.ones(1)}), r"unexpected \['7'\]"),
        (
            "token_embedder.pkl",
            lambda t: t.update({"projection.bias": torch.ones(6)}),
            r"projection.bias is \(6,\), expected \(5,\)",
        ),
        ("token_embedder.pkl", lambda t: t.clear(), r"missing \['char_emb_layer.embedding.weight', 'convolutions"),
    ],
)
def test_other_tensors(directory: Path, name: str, change: Callable[[dict[str, Any]], None], message: str) -> None:
    change_tensors(directory / name, change)
    expect(directory, rf"The weights in .*{name} do not fit the sizes in .*cnn.json.*{message}")


def test_tables_and_tensors_of_two_models(directory: Path) -> None:
    with (directory / "word.dic").open("a", encoding="utf8") as file:
        file.write("more\t10\n")
    expect(directory, r"word_emb_layer.embedding.weight is \(10, 6\), expected \(11, 6\)")


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_values_that_are_not_finite(directory: Path, value: float) -> None:
    change_tensors(directory / "encoder.pkl", lambda t: t["forward_layer_0.state_linearity.bias"].fill_(value))
    expect(directory, "have values that are infinite or not a number")


@pytest.mark.parametrize("name", [*FILES, "config.json", "char.dic", "word.dic"])
def test_missing_files(directory: Path, name: str) -> None:
    (directory / name).unlink()
    assert detect_format([directory]).module == "elmoformanylangs"
    expect(directory, rf"There is no {name} in .*model: was the model copied whole\?")


def test_sizes_that_are_nowhere(directory: Path) -> None:
    (directory / "cnn.json").unlink()
    expect(
        directory, r"config.json names 'cnn.json' as the file with the sizes, but it is not in .*model. Copy it there"
    )
    (directory / "config.json").write_text("{}")
    expect(directory, "config.json has no config_path")
    (directory / "config.json").write_text('{"config_path": "/"}')
    expect(directory, "names '' as the file with the sizes")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"{", "is not JSON"),
        (b"[1]", r"expected an object, got \[1\]"),
        (b"\xff", "is not UTF-8, at byte 0"),
        (b"[" * 100_000, "expected an object|is not JSON"),
        (b"{}", "are not those of ELMoForManyLangs: KeyError"),
        (b'{"token_embedder": 3, "encoder": 4}', "are not those of ELMoForManyLangs: TypeError"),
    ],
)
def test_sizes_that_are_none(directory: Path, text: bytes, message: str) -> None:
    (directory / "cnn.json").write_bytes(text)
    expect(directory, rf"cnn.json.* {message}")


@pytest.mark.parametrize(
    ("section", "name", "value", "message"),
    [
        ("encoder", "name", "lstm", "The encoder must be 'elmo', got 'lstm'. Other kinds are not supported"),
        ("token_embedder", "name", "lstm", "The token_embedder must be 'cnn', got 'lstm'"),
        ("encoder", "dim", "9", r"cells must be a whole number from 1 to \d+, got '9'"),
        ("encoder", "cell_clip", -1, "cell_clip must be a number above 0"),
        ("token_embedder", "activation", "elu", "activation must be one of relu, tanh, got 'elu'"),
        ("token_embedder", "max_characters_per_token", 2, "max_chars must be a whole number from 3"),
        ("token_embedder", "word_dim", -1, "word_dim must be a whole number from 1"),
        ("token_embedder", "filters", None, "filters must be a list"),
    ],
)
def test_sizes_that_are_not_supported(directory: Path, section: str, name: str, value: Any, message: str) -> None:
    change_sizes(directory, section, name, value)
    expect(directory, rf"The sizes in .*cnn.json cannot be used: {message}")


def test_a_model_that_reads_nothing(directory: Path) -> None:
    change_sizes(directory, "token_embedder", "word_dim", 0)
    change_sizes(directory, "token_embedder", "char_dim", 0)
    expect(directory, "char_dim must be a whole number from 1")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text + "a b c\n", r"line 28: expected an entry, a tab and a number, got 'a b c'"),
        (lambda text: text + "x\ty\t7\n", r"line 28: expected an entry, a tab and a number"),
        (lambda text: text + "x\t-1\n", r"line 28: expected an entry, a tab and a number"),
        (lambda text: text + "x\t99\n", "must have each entry and each number from 0 on once"),
        (lambda text: text + " \t28\n", "must have each entry and each number from 0 on once"),
        (lambda text: text + "h\t27\n", "must have each entry and each number from 0 on once"),
        (lambda text: text.replace("<pad>", "<padding>"), r"has no row for <pad>\. Was it edited"),
        (lambda text: "", "has no row for <bos>, <eos>, <eow>, <bow>, <pad>, <oov>"),
    ],
)
def test_tables_that_are_damaged(directory: Path, change: Callable[[str], str], message: str) -> None:
    text = (directory / "char.dic").read_text(encoding="utf8")
    n_lines = len(text.split("\n"))
    (directory / "char.dic").write_text(change(text), encoding="utf8", newline="\n")
    expect(directory, rf"char.dic.*{message.replace('line 28', f'line {n_lines}')}")


def test_paths_that_are_no_directory(directory: Path) -> None:
    for paths in ([directory, directory], [directory / "encoder.pkl"]):
        with pytest.raises(ValueError, match="Expected one directory with token_embedder.pkl and encoder.pkl, got "):
            elmoformanylangs.read(paths)


def test_weights_that_are_not_converted_are_explained(directory: Path) -> None:
    from spacy_elmo.bilm.weights import load_weights

    message = f"{directory} is a model of ELMoForManyLangs. First run: python -m spacy elmo convert {directory} OUT"
    with pytest.raises(ValueError, match=re.escape(message)):
        load_weights(directory)
