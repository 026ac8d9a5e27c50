"""Files that earlier releases saved still load, and give what those releases computed from them.

make_legacy.py made the files, with the release that each directory is named after.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy
import pytest
import spacy
from numpy.testing import assert_allclose
from safetensors.torch import load_file
from spacy.language import Language

from spacy_elmo.pretraining.pretrain import pretrain

from .make_legacy import VECTORS, list_annotations, list_arrays

RELEASE = Path(__file__).parent / "0.1.0"
EXPECTED: dict[str, Any] = json.loads((RELEASE / "annotations.json").read_text(encoding="utf8"))
TEXTS: list[str] = EXPECTED["texts"]


def expected_arrays(prefix: str) -> dict[str, Any]:
    """Read the arrays that a release computed, by their names without a prefix."""
    with numpy.load(RELEASE / "arrays.npz") as arrays:
        return {name.removeprefix(prefix): arrays[name] for name in arrays.files if name.startswith(prefix)}


def assert_same_arrays(found: dict[str, Any], expected: dict[str, Any]) -> None:
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        # As far as float32 goes: vectors with a gamma of 5 have values of 8 and more.
        tolerance = 1e-6 * max(1.0, abs(array).max()) if len(array) else 0.0
        assert_allclose(found[name], array, rtol=0, atol=tolerance, err_msg=name)


def assert_same_predictions(nlp: Language, name: str) -> None:
    docs = list(nlp.pipe(TEXTS))
    for doc, expected in zip(docs, EXPECTED[name], strict=True):
        found = list_annotations(doc)
        assert found == {**expected, "cats": pytest.approx(expected["cats"], abs=1e-6)}
    assert_same_arrays(list_arrays(nlp, docs), expected_arrays(f"{name}."))


@pytest.mark.parametrize(("name", "config"), VECTORS.items(), ids=VECTORS)
def test_weights_give_the_same_vectors(name: str, config: dict[str, Any]) -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"weights": str(RELEASE / "weights"), **config})
    found = {str(i): doc.tensor for i, doc in enumerate(nlp.pipe(TEXTS))}
    assert_same_arrays(found, expected_arrays(f"weights.{name}."))


@pytest.mark.parametrize("name", ["listeners", "tasks"])
def test_pipelines_give_the_same_predictions(name: str, tmp_path: Path) -> None:
    nlp = spacy.load(RELEASE / "pipelines" / name)
    assert_same_predictions(nlp, name)
    # And what the current code saves of them does, too.
    nlp.to_disk(tmp_path)
    assert_same_predictions(spacy.load(tmp_path), name)


def test_a_checkpoint_is_resumed_to_the_same_weights(tmp_path: Path) -> None:
    output, whole = tmp_path / "run", RELEASE / "pretraining" / "whole"
    shutil.copytree(RELEASE / "pretraining" / "stopped", output)
    corpora = {f"corpus.{name}": str(RELEASE / "pretraining" / f"{name}.txt") for name in ("train", "dev")}
    pretrain(output / "config.cfg", output, overrides=corpora, resume=True)
    for name in ("model.safetensors", "softmax.safetensors"):
        assert_same_arrays(load_file(output / "model-last" / name), load_file(whole / "model-last" / name))
    found, expected = (
        [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf8").splitlines()]
        for run in (output, whole)
    )
    assert [line["step"] for line in found] == list(range(1, 9))
    timing = ("seconds", "words_per_second")
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.keys() == theirs.keys()
        assert ours == pytest.approx({**theirs, **{name: ours[name] for name in timing}}, rel=1e-6)
    scores, best = (json.loads((run / "scores.json").read_text(encoding="utf8")) for run in (output, whole))
    assert (scores.pop("before"), best.pop("before")) == (None, None)
    assert scores == pytest.approx({**best, "seconds": scores["seconds"]}, rel=1e-6)
