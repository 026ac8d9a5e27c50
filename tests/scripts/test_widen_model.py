"""A wider model predicts what the narrower one did, and can learn more."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from scripts.widen_model import widen, widen_model
from spacy_elmo.bilm.embed import embed_sentences
from spacy_elmo.pretraining.language_model import LanguageModel
from spacy_elmo.pretraining.model_files import load_language_model
from spacy_elmo.pretraining.perplexity import measure_likelihood
from spacy_elmo.pretraining.softmax import all_words
from spacy_elmo.pretraining.streams import Streams

from ..helpers import random_bilm
from .script_runner import run_in_one_line
from .test_bundle_model import save_model

SENTENCES = [["a", "b", "cc"], ["b"], ["a", "naïve", "b", "a"]]


def run(model: LanguageModel) -> list[Tensor]:
    """RETURNS (list[Tensor]): For each sentence, layers_LTAP."""
    with torch.no_grad():
        layers = embed_sentences(model.bilm, SENTENCES, max_batch_items=100)
    return [layers_LTW.reshape(*layers_LTW.shape[:2], 2, -1) for layers_LTW in layers]


def set_initial_state(model: LanguageModel) -> None:
    model.bilm.initial_hidden = torch.linspace(-0.3, 0.3, 24).reshape(2, 2, 6)
    model.bilm.initial_cell = torch.linspace(0.5, -0.5, 40).reshape(2, 2, 10)


@pytest.mark.parametrize("has_initial_state", [False, True])
def test_widening_keeps_layers_and_likelihood(tmp_path: Path, has_initial_state: bool) -> None:
    model, vocabulary = load_language_model(save_model(tmp_path / "narrow", 1))
    if has_initial_state:
        set_initial_state(model)
    wide = widen(model, 9, torch.Generator().manual_seed(0))
    assert wide.bilm.config.projection == 9
    for found, expected in zip(run(wide), run(model), strict=True):
        torch.testing.assert_close(found[..., :6], expected, rtol=0, atol=1e-6)
        assert (found[..., 6:].std(dim=(1, 2, 3)) > 0.05).all()  # in each layer
    likelihoods = [measure_likelihood(each, vocabulary, SENTENCES) for each in (model, wide)]
    assert likelihoods[1].forward == pytest.approx(likelihoods[0].forward, abs=1e-5)
    assert likelihoods[1].backward == pytest.approx(likelihoods[0].backward, abs=1e-5)


def test_new_dimensions_learn(tmp_path: Path) -> None:
    model, vocabulary = load_language_model(save_model(tmp_path / "narrow", 1))
    wide = widen(model, 9, torch.Generator().manual_seed(0))
    (tmp_path / "text.txt").write_text("".join(" ".join(words) + "\n" for words in SENTENCES), encoding="utf8")
    streams = Streams(tmp_path / "text.txt", vocabulary, n_rows=2, rows=range(2), unroll=4, with_end=False)
    loss, _ = wide(next(iter(streams)), wide.bilm.start(2), all_words(len(vocabulary)), carry_state=False)
    loss.backward()
    assert wide.softmax.weight.grad is not None
    assert (wide.softmax.weight.grad[:, 6:].abs().amax(dim=0) > 0).all()


def test_widen_model_writes_a_language_model(tmp_path: Path) -> None:
    source = save_model(tmp_path / "narrow", 1)
    printed = run_in_one_line(widen_model, source, tmp_path / "wide", "--projection", "9")
    assert "a projection of 9, was 6" in printed
    wide, _ = load_language_model(tmp_path / "wide")
    torch.testing.assert_close(run(wide)[0][..., :6], run(load_language_model(source)[0])[0], rtol=0, atol=1e-6)


def test_refused_widths(tmp_path: Path) -> None:
    source = save_model(tmp_path / "narrow", 1)
    printed = run_in_one_line(widen_model, source, tmp_path / "wide", "--projection", "6", code=1)
    assert "must become wider than 6, got 6" in printed
    model, _ = load_language_model(source)
    without_projection = LanguageModel(random_bilm(0, projection=10), model.softmax)
    for narrow, projection in ((without_projection, 12), (model, 10), (model, 18)):
        with pytest.raises(ValueError, match="Only a model that projects its filters and cells can be widened"):
            widen(narrow, projection, torch.Generator())
