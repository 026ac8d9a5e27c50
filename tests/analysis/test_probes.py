"""Linear probes, on tokens whose labels one layer knows and another does not."""

from pathlib import Path

import numpy
import pytest
import spacy
import torch
from numpy.testing import assert_allclose, assert_array_equal
from spacy.language import Language
from spacy.tokens import Doc

from spacy_elmo.analysis.probes import LabelledTokens, embed_tokens, new_words, probe_layers, score_most_frequent
from spacy_elmo.bilm.weights import save_weights

from ..helpers import random_bilm


@pytest.fixture
def nlp(tmp_path: Path) -> Language:
    save_weights(random_bilm(1), tmp_path / "weights")
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"weights": str(tmp_path / "weights")})
    return nlp


def make_tokens(n: int, seed: int) -> LabelledTokens:
    """Make tokens with three labels. Layer 0 is noise; in layer 1 each label has a direction of its own."""
    random = numpy.random.default_rng(seed)
    labels_N = random.integers(3, size=n)
    layers_LNW = random.standard_normal((2, n, 4))
    layers_LNW[1] += 8 * numpy.eye(4)[labels_N]
    texts = [f"word{i}" for i in random.integers(50, size=n)]
    return LabelledTokens(texts, torch.tensor(labels_N), torch.tensor(layers_LNW, dtype=torch.float32))


def test_tokens_are_embedded_sentence_by_sentence(nlp: Language) -> None:
    words, starts = ["Ada", "wrote", "\n", "it", "Cats", "sleep"], [True, False, False, False, True, False]
    doc = Doc(nlp.vocab, words=words, pos=["PROPN", "VERB", "SPACE", "PRON", "NOUN", "VERB"], sent_starts=starts)
    labels = {"VERB": 0}
    tokens = embed_tokens(nlp, [doc], labels)
    assert tokens.texts == ["Ada", "wrote", "it", "Cats", "sleep"]
    assert labels == {"VERB": 0, "PROPN": 1, "PRON": 2, "NOUN": 3}
    assert tokens.labels_N.tolist() == [1, 0, 2, 3, 0]
    alone = nlp(Doc(nlp.vocab, words=["Cats", "sleep"]))
    assert_allclose(tokens.layers_LNW[:, 3:], alone._.elmo_layers, atol=1e-6)


def test_any_attribute_can_be_the_label(nlp: Language) -> None:
    doc = Doc(nlp.vocab, words=["Ada", "wrote"], tags=["NNP", "VBD"], ents=["B-PERSON", "O"])
    for attribute, expected in {
        "tag_": ["NNP", "VBD"],
        "ent_type_": ["PERSON", ""],
        "is_title": ["True", "False"],
    }.items():
        labels: dict[str, int] = {}
        embed_tokens(nlp, [doc], labels, attribute=attribute)
        assert list(labels) == expected
    with pytest.raises(AttributeError, match="no_such"):
        embed_tokens(nlp, [doc], {}, attribute="no_such")


def test_probing_needs_tokens(nlp: Language) -> None:
    with pytest.raises(ValueError, match="The docs have no tokens to probe"):
        embed_tokens(nlp, [Doc(nlp.vocab)], {})


def test_probes_find_the_layer_with_the_labels() -> None:
    train, dev, test = make_tokens(1500, 0), make_tokens(200, 1), make_tokens(500, 2)
    noise, known, mix = probe_layers(train, dev, test, n_labels=3, n_epochs=40, seeds=[0, 1])
    assert [score.layers for score in (noise, known, mix)] == [[0], [1], [0, 1]]
    for score in (noise, known, mix):
        assert len(score.accuracies) == 2
        assert sum(score.mix) == pytest.approx(1)
    for seed in range(2):
        assert noise.accuracies[seed].overall < 0.45  # by chance, a third
        assert known.accuracies[seed].overall > 0.97
        assert mix.accuracies[seed].overall > 0.95
    assert known.mix == [1.0]
    assert mix.mix[1] > 0.52


def test_a_seed_gives_the_same_probe() -> None:
    train, dev, test = make_tokens(300, 0), make_tokens(50, 1), make_tokens(80, 2)

    def mixes(*seeds: int) -> list[list[float]]:
        return [list(probe_layers(train, dev, test, n_labels=3, n_epochs=2, seeds=[seed]))[-1].mix for seed in seeds]

    first, again, other = mixes(0, 0, 1)
    assert first == again
    assert first != other


def test_accuracy_of_new_words() -> None:
    vectors_LNW = torch.zeros(1, 4, 2)
    train = LabelledTokens(["a", "a", "a", "b"], torch.tensor([0, 0, 1, 1]), vectors_LNW)
    test = LabelledTokens(["a", "b", "c", "d"], torch.tensor([0, 0, 0, 1]), vectors_LNW)
    assert_array_equal(new_words(train, test), [False, False, True, True])
    # "b" was always 1; of "c" and "d" nothing is known, and 0 is the first of the most frequent labels.
    assert score_most_frequent(train, test) == (0.5, 0.5)
