"""From a language model to the directory that the package includes."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.bundle_model import bundle_model
from spacy_elmo.bilm.weights import CONFIG, TENSORS
from spacy_elmo.files.atomic import recover_directory
from spacy_elmo.pretraining.language_model import LanguageModel
from spacy_elmo.pretraining.model_files import SOFTMAX, VOCABULARY, load_language_model, save_language_model
from spacy_elmo.pretraining.softmax import Softmax
from spacy_elmo.pretraining.vocabulary import count_words

from ..helpers import random_bilm
from ..pretraining.runs import read_files

ROOT = Path(__file__).parents[2]


def save_model(directory: Path, seed: int) -> Path:
    bilm = random_bilm(seed)
    vocabulary = count_words([["a", "b"]], max_size=10)
    softmax = Softmax(len(vocabulary), bilm.config.projection).initialize(seed, vocabulary.counts)
    save_language_model(LanguageModel(bilm, softmax), vocabulary, directory)
    return directory


def test_bundle_model_replaces_the_model_and_keeps_its_card(tmp_path: Path) -> None:
    output = tmp_path / "bundle"
    bundle_model(save_model(tmp_path / "old", 0), output)
    (output / "README.md").write_text("a card")
    before = (output / TENSORS).read_bytes()
    bundle_model(save_model(tmp_path / "new", 1), output)
    assert (output / TENSORS).read_bytes() != before
    load_language_model(output)
    assert {path.name for path in output.iterdir()} == {CONFIG, TENSORS, SOFTMAX, VOCABULARY, "README.md"}
    assert (output / "README.md").read_text() == "a card"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bundle", "new", "old"]


def test_bundle_model_refuses_unrelated_files(tmp_path: Path) -> None:
    output = tmp_path / "bundle"
    output.mkdir()
    (output / "README.md").write_text("a card")
    (output / "thesis.txt").write_text("years of work")
    with pytest.raises(SystemExit):
        bundle_model(save_model(tmp_path / "new", 1), output)
    assert {path.name: path.read_text() for path in output.iterdir()} == {
        "README.md": "a card",
        "thesis.txt": "years of work",
    }


KILLED = """
import os, shutil, sys
from pathlib import Path
from scripts.bundle_model import bundle_model
from spacy_elmo.files import atomic

stop = int(sys.argv[3])
n_calls = 0

def killing(function):
    def wrapped(*args, **kwargs):
        global n_calls
        n_calls += 1
        if n_calls > stop:
            os._exit(9)
        return function(*args, **kwargs)
    return wrapped

# All that changes a name or a file behind the draft.
Path.rename = killing(Path.rename)
shutil.copy2 = killing(shutil.copy2)
shutil.rmtree = killing(shutil.rmtree)
if sys.argv[4] == "two renames":
    atomic._exchange = lambda one, other: False
bundle_model(Path(sys.argv[1]), Path(sys.argv[2]))
"""


@pytest.mark.slow
@pytest.mark.parametrize(("replacing", "n_calls"), [("exchange", 3), ("two renames", 5)])
def test_bundle_model_loses_nothing_when_it_is_killed(tmp_path: Path, replacing: str, n_calls: int) -> None:
    sources, output = (
        [save_model(tmp_path / name, seed) for seed, name in enumerate(("old", "new"))],
        tmp_path / "bundle",
    )
    card = {"README.md": b"a card"}
    models = []
    for source in sources:
        bundle_model(source, output)
        models.append(read_files(output) | card)
    found = []
    for stop in range(n_calls):
        shutil.rmtree(output)
        bundle_model(sources[0], output)
        (output / "README.md").write_text("a card")
        command = [sys.executable, "-W", "ignore", "-c", KILLED, *map(str, (sources[1], output, stop, replacing))]
        result = subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})
        assert result.returncode == 9
        recover_directory(output)  # puts back what had stepped aside
        found.append(models.index(read_files(output)))  # the old model or the new one, whole, with the card
        bundle_model(sources[1], output)
        assert read_files(output) == models[1]
        assert sorted(path.name for path in tmp_path.iterdir()) == ["bundle", "new", "old"]
    assert found == sorted(found)
    assert set(found) == {0, 1}
