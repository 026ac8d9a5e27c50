"""A rescaled model predicts what it did before, from larger vectors."""

from pathlib import Path

import pytest
import torch

from scripts.rescale_model import rescale, rescale_model
from spacy_elmo.pretraining.language_model import LanguageModel
from spacy_elmo.pretraining.model_files import load_language_model
from spacy_elmo.pretraining.perplexity import measure_likelihood

from ..helpers import random_bilm
from .script_runner import run_in_one_line
from .test_bundle_model import save_model
from .test_widen_model import SENTENCES, run, set_initial_state


@pytest.mark.parametrize("has_initial_state", [False, True])
def test_rescaling_keeps_the_likelihood(tmp_path: Path, has_initial_state: bool) -> None:
    model, vocabulary = load_language_model(save_model(tmp_path / "model", 1))
    if has_initial_state:
        set_initial_state(model)
    rescaled = rescale(model, 4.0)
    for found, expected in zip(run(rescaled), run(model), strict=True):
        torch.testing.assert_close(found, 4 * expected, rtol=0, atol=1e-6)
    likelihoods = [measure_likelihood(each, vocabulary, SENTENCES) for each in (model, rescaled)]
    assert likelihoods[1].forward == pytest.approx(likelihoods[0].forward, abs=1e-5)
    assert likelihoods[1].backward == pytest.approx(likelihoods[0].backward, abs=1e-5)
    assert rescaled.bilm.config.projection_clip == pytest.approx(1.2)


def test_rescale_model_writes_a_language_model(tmp_path: Path) -> None:
    source = save_model(tmp_path / "model", 1)
    assert "vectors 0.5 times as large" in run_in_one_line(rescale_model, source, tmp_path / "half", "--factor", "0.5")
    half, _ = load_language_model(tmp_path / "half")
    torch.testing.assert_close(run(half)[0], run(load_language_model(source)[0])[0] / 2, rtol=0, atol=1e-6)


def test_models_without_projections_are_refused(tmp_path: Path) -> None:
    model, _ = load_language_model(save_model(tmp_path / "model", 1))
    with pytest.raises(ValueError, match="It has 18 filters, 10 cells and a projection of 10"):
        rescale(LanguageModel(random_bilm(0, projection=10), model.softmax), 2.0)
