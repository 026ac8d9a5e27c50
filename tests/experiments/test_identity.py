"""What makes trials the same: the content of files, not their paths."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spacy_elmo.bilm.weights import save_weights
from spacy_elmo.experiments import identity as identity_module
from spacy_elmo.files.checksums import checksum
from spacy_elmo.models import find_weights

from ..helpers import random_bilm
from .tagger import TAGGER_CONFIG, expect_refusal, make_trials, mark_as_finished, run_all, write_elmo_config


def test_a_directory_that_contains_the_trials_does_not_count(corpus: Path) -> None:
    (corpus / "tagger.cfg").write_text(
        TAGGER_CONFIG.replace("[paths]\n", f'[paths]\nroot = "{corpus}"\n'), encoding="utf8"
    )
    run_all(make_trials(corpus))
    assert make_trials(corpus).find_unfinished() == []


def test_files_outside_of_paths_count(corpus: Path) -> None:
    shutil.copy(corpus / "dev.spacy", corpus / "other.spacy")
    overrides = {"corpora.dev.path": str(corpus / "other.spacy")}
    corpora = '[corpora]\n\n[corpora.dev]\n@readers = "spacy.Corpus.v1"\npath = null\n'
    (corpus / "tagger.cfg").write_text(TAGGER_CONFIG + corpora, encoding="utf8")
    mark_as_finished(make_trials(corpus, overrides=overrides))
    shutil.copy(corpus / "train.spacy", corpus / "other.spacy")
    expect_refusal(make_trials(corpus, overrides=overrides), "differ in the files of corpora.dev.path")


def test_long_text_in_a_config_is_no_path(corpus: Path) -> None:
    with (corpus / "tagger.cfg").open("a", encoding="utf8") as file:
        file.write(f'\n[pretraining]\n\n[corpora]\n\n[corpora.prompt]\ntext = "{"word " * 1000}"\n')
    mark_as_finished(make_trials(corpus))


@pytest.mark.parametrize("weights", ["directory", "default", "private"])
def test_other_weights_make_other_trials(weights: str, corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory, name = write_elmo_config(corpus), "components.elmo.weights"
    options: dict[str, Any] = {}
    if weights == "directory":
        options = {"overrides": {name: str(directory)}}
    elif weights == "default":

        def find(value: str | None) -> Path:
            return directory if value is None else Path(value)

        monkeypatch.setattr(identity_module, "find_weights", find)
    else:
        config = (corpus / "tagger.cfg").read_text("utf8")
        config = config.replace('spacy_elmo.ElmoListener.v1"', f'spacy_elmo.Elmo.v1"\nweights = "{directory}"')
        (corpus / "tagger.cfg").write_text(config, encoding="utf8")
        name = "components.tagger.model.tok2vec.weights"
    trials = make_trials(corpus, **options)
    path = mark_as_finished(trials)
    save_weights(random_bilm(2), directory)
    expect_refusal(replace(trials), rf"differ in the files of {name}; see .*100/0\. Replace .*--overwrite")
    identity = {key: value for key, value in trials.identity.items() if key != name}
    path.write_text(json.dumps({"identity": identity}), encoding="utf8")
    expect_refusal(
        replace(trials), f"written by an earlier version, which did not record the files of {name}; .*--overwrite"
    )


def test_bundled_weights_count(corpus: Path) -> None:
    write_elmo_config(corpus)
    expected = checksum(find_weights(None))
    for weights in (None, "en_elmo_sm"):
        trials = make_trials(corpus, overrides={"components.elmo.weights": weights})
        assert trials.identity["components.elmo.weights"] == expected
    # Weights in [paths] are recorded there alone.
    config = (corpus / "tagger.cfg").read_text("utf8").replace("[paths]\n", "[paths]\nweights = null\n")
    (corpus / "tagger.cfg").write_text(config, encoding="utf8")
    names = {"components.elmo.weights": "${paths.weights}", "paths.weights": str(corpus / "weights")}
    identity = make_trials(corpus, overrides=names).identity
    assert identity["paths.weights"] == checksum(corpus / "weights")
    assert "components.elmo.weights" not in identity
    # Weights that cannot be read are refused later, by spaCy or by the component.
    for wrong in (3, "nowhere"):
        trials = make_trials(corpus, overrides={"components.elmo.weights": wrong})
        assert "components.elmo.weights" not in trials.identity


def test_checksums_depend_on_content(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "one").write_text("1", encoding="utf8")
        (tmp_path / name / "two").write_text("2", encoding="utf8")
    assert checksum(tmp_path / "a") == checksum(tmp_path / "b")
    assert checksum(tmp_path / "a" / "one") == checksum(tmp_path / "b" / "one")
    assert checksum(tmp_path / "a" / "one") != checksum(tmp_path / "a" / "two")
    (tmp_path / "b" / "README.md").write_text("another card", encoding="utf8")
    assert checksum(tmp_path / "a") == checksum(tmp_path / "b")
    (tmp_path / "b" / "two").write_text("3", encoding="utf8")
    assert checksum(tmp_path / "a") != checksum(tmp_path / "b")
    (tmp_path / "b" / "two").write_text("2", encoding="utf8")
    (tmp_path / "b" / "two").rename(tmp_path / "b" / "three")
    assert checksum(tmp_path / "a") != checksum(tmp_path / "b")
