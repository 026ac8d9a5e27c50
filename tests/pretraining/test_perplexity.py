"""Perplexities against the reference layers and a softmax that is spelled out."""

import math
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from spacy_elmo.bilm.initial_state import find_initial_state
from spacy_elmo.formats import bilm_tf
from spacy_elmo.pretraining import perplexity
from spacy_elmo.pretraining.language_model import LanguageModel
from spacy_elmo.pretraining.perplexity import Likelihood, check_finite_perplexity, measure_likelihood
from spacy_elmo.pretraining.softmax import Softmax
from spacy_elmo.pretraining.vocabulary import Vocabulary, count_words

from .. import reference
from ..helpers import Arrays, published_arrays, published_options, write_published
from ..reference import Array

TRAINED_ON = [["the", "duck", "sat"], ["the", "duck"], ["a", "naïve", "duck"]]
SENTENCES = [["the", "zebra", "sat", "the"], ["duck"], [], ["a", "duck", "<S>", "日本"], ["the"] * 9]
N_UNKNOWN = 3

OPTIONS = published_options()
ARRAYS = published_arrays(OPTIONS)
VOCABULARY = count_words(TRAINED_ON, max_size=100)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> LanguageModel:
    return make_model(tmp_path_factory.mktemp("published"))


def make_model(directory: Path, arrays: Arrays = ARRAYS) -> LanguageModel:
    bilm = bilm_tf.read(write_published(directory, OPTIONS, arrays))
    softmax = Softmax(len(VOCABULARY), bilm.config.projection).initialize(0, VOCABULARY.counts)
    with torch.no_grad():
        softmax.weight.mul_(3)
        softmax.bias.copy_(torch.linspace(-1, 1, len(VOCABULARY)))
    return LanguageModel(bilm, softmax).double()


def read_one_way(direction: int, words: list[str], memory: reference.Memory | None) -> list[Array]:
    """Run the reference from one end of a sentence, and give the top output after its mark and after each word."""
    limit = OPTIONS["char_cnn"]["max_characters_per_token"]
    mark = reference.BEGIN_SENTENCE if direction == 0 else reference.END_SENTENCE
    letters = [[mark], *(reference.word_bytes(word) for word in (words if direction == 0 else words[::-1]))]
    tokens = [reference.encode_spelling(OPTIONS, ARRAYS, reference.spell(content, limit)) for content in letters]
    for layer in range(OPTIONS["lstm"]["n_layers"]):
        name = f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
        h, c = numpy.zeros(OPTIONS["lstm"]["projection_dim"]), numpy.zeros(OPTIONS["lstm"]["dim"])
        if memory is not None:
            h, c = memory.hidden[layer, direction], memory.cell[layer, direction]
        outputs = []
        for x in tokens:
            h, c = reference.step(OPTIONS, ARRAYS, name, x, h, c)
            outputs.append(x + h if layer > 0 else h)
        tokens = outputs
    return tokens


def log_probability(softmax: Softmax, vector: Array, word: int) -> float:
    scores = softmax.weight.detach().numpy() @ vector + softmax.bias.detach().numpy()
    return float(scores[word] - math.log(sum(math.exp(score) for score in scores)))


def spelled_out(
    model: LanguageModel, sentences: list[list[str]], memory: reference.Memory | None = None
) -> dict[str, Any]:
    """Predict every word, one at a time."""
    sums = {"forward": 0.0, "backward": 0.0, "unigram": 0.0, "n_predicted": 0, "n_unknown": 0}
    # Each frequency is one higher than it was; the start of a sentence, which is not predicted, is just one.
    frequencies = {i: count + 1 for i, count in enumerate(VOCABULARY.counts)} | {VOCABULARY.BEGIN: 1}
    for words in sentences:
        ids = [VOCABULARY.id_of(word) for word in words]
        for vector, word in zip(read_one_way(0, words, memory), [*ids, VOCABULARY.END], strict=True):
            sums["forward"] -= log_probability(model.softmax, vector, word)
            sums["unigram"] -= math.log(frequencies[word] / sum(frequencies.values()))
            sums["n_predicted"] += 1
            sums["n_unknown"] += word == VOCABULARY.UNKNOWN
        for vector, word in zip(read_one_way(1, words, memory), [*ids[::-1], VOCABULARY.BEGIN], strict=True):
            sums["backward"] -= log_probability(model.softmax, vector, word)
    return sums


def assert_same(likelihood: Likelihood, expected: dict[str, Any] | Likelihood) -> None:
    if isinstance(expected, Likelihood):
        expected = vars(expected)
    assert vars(likelihood) == {
        name: pytest.approx(value, rel=1e-9) if isinstance(value, float) else value for name, value in expected.items()
    }


# Against the reference


def test_likelihood_agrees_with_the_reference(model: LanguageModel) -> None:
    expected = spelled_out(model, SENTENCES)
    assert expected["n_predicted"] == 23
    assert expected["n_unknown"] == N_UNKNOWN
    assert abs(expected["forward"] - expected["backward"]) > 1
    assert_same(measure_likelihood(model, VOCABULARY, SENTENCES), expected)


def test_likelihood_starts_from_the_stored_state(tmp_path: Path) -> None:
    model = make_model(tmp_path)
    zero = measure_likelihood(model, VOCABULARY, SENTENCES)
    find_initial_state(model.bilm, TRAINED_ON)
    assert model.bilm.initial_hidden is not None
    assert model.bilm.initial_cell is not None
    memory = reference.Memory(model.bilm.initial_hidden.numpy(), model.bilm.initial_cell.numpy())
    stored = measure_likelihood(model, VOCABULARY, SENTENCES)
    assert_same(stored, spelled_out(model, SENTENCES, memory))
    assert abs(stored.forward - zero.forward) > 1e-3


def test_unknown_words_are_one_class(model: LanguageModel) -> None:
    likelihood = measure_likelihood(model, VOCABULARY, [["zebra", "duck", "<UNK>"]])
    assert (likelihood.n_predicted, likelihood.n_unknown) == (4, 2)
    # Unknown words never occurred in the text that was counted: 0 + 1 of 11 + 8.
    n_predicted, n_words = 8 + 3, 8
    assert (VOCABULARY.n_predicted, len(VOCABULARY)) == (n_predicted, n_words)
    probabilities = [1 / 19, (3 + 1) / 19, 1 / 19, (3 + 1) / 19]
    assert likelihood.unigram == pytest.approx(-sum(map(math.log, probabilities)))


# What must not matter


@pytest.mark.parametrize("items", [1, 12, 30, 10_000])
@pytest.mark.parametrize("at_once", [1, 2, 100])
def test_batches_do_not_matter(model: LanguageModel, items: int, at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = measure_likelihood(model, VOCABULARY, SENTENCES)
    monkeypatch.setattr(perplexity, "MAX_BATCH_ITEMS", items)
    monkeypatch.setattr(perplexity, "CHUNK_SENTENCES", at_once)
    assert_same(measure_likelihood(model, VOCABULARY, iter(SENTENCES)), expected)


@given(order=st.permutations(range(len(SENTENCES))), cut=st.integers(0, len(SENTENCES)))
def test_order_does_not_matter_and_parts_add_up(model: LanguageModel, order: list[int], cut: int) -> None:
    text = [SENTENCES[i] for i in order]
    one, other = (measure_likelihood(model, VOCABULARY, part) for part in (text[:cut], text[cut:]))
    expected = measure_likelihood(model, VOCABULARY, SENTENCES)
    assert_same(measure_likelihood(model, VOCABULARY, text), expected)
    assert_same(one + other, expected)


def test_model_is_left_as_it_was(model: LanguageModel) -> None:
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    measure_likelihood(model, VOCABULARY, SENTENCES)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())
    assert torch.is_grad_enabled()


# Sums and perplexities


def test_sums() -> None:
    one, other = Likelihood(1.5, 2.5, 3.5, 4, 1), Likelihood(0.5, 0.25, 1.0, 3, 2)
    assert one + other == Likelihood(2.0, 2.75, 4.5, 7, 3)
    assert one + Likelihood() == one
    likelihood = Likelihood.from_sums([1.0, 2.0, 3.0, 4.0, 5.0])
    assert likelihood == Likelihood(1.0, 2.0, 3.0, 4, 5)
    assert isinstance(likelihood.n_predicted, int)
    assert isinstance(likelihood.n_unknown, int)


def test_perplexities() -> None:
    likelihood = Likelihood(4 * math.log(2), 4 * math.log(6), 4 * math.log(5), n_predicted=4, n_unknown=1)
    assert likelihood.perplexities == pytest.approx({"forward": 2, "backward": 6, "mean": 4, "unigram": 5})
    assert likelihood.to_dict() == pytest.approx(
        {
            "perplexity_forward": 2,
            "perplexity_backward": 6,
            "perplexity_mean": 4,
            "perplexity_unigram": 5,
            "n_predicted": 4,
            "n_unknown": 1,
        }
    )


@pytest.mark.parametrize("loss", [701.0, 1e9, math.inf, math.nan])
def test_perplexity_of_a_model_that_has_diverged_is_refused(loss: float) -> None:
    perplexities = Likelihood(loss, 1.0, 1.0, n_predicted=1).perplexities
    assert perplexities["backward"] == pytest.approx(math.e)
    with pytest.raises(FloatingPointError, match="After step 7 the dev perplexity is (inf|nan)"):
        check_finite_perplexity(perplexities["mean"], 7)


def test_perplexity_of_an_even_model_is_the_number_of_words(model: LanguageModel) -> None:
    even = LanguageModel(model.bilm, Softmax(len(VOCABULARY), model.bilm.config.projection)).double()
    with torch.no_grad():
        for parameter in even.softmax.parameters():
            parameter.zero_()
    perplexities = measure_likelihood(even, VOCABULARY, SENTENCES).perplexities
    assert perplexities["forward"] == pytest.approx(len(VOCABULARY))
    assert perplexities["backward"] == pytest.approx(len(VOCABULARY))


def test_unigram_of_many_words_approaches_that_of_their_vocabulary(model: LanguageModel) -> None:
    text = [["the", "duck", "sat"]] * 500
    vocabulary: Vocabulary = count_words(text, max_size=100)
    bilm = model.bilm
    likelihood = measure_likelihood(
        LanguageModel(bilm, Softmax(len(vocabulary), bilm.config.projection).initialize(0, vocabulary.counts)).double(),
        vocabulary,
        text,
    )
    assert vocabulary.unigram_perplexity == pytest.approx(4)
    assert likelihood.perplexities["unigram"] == pytest.approx(4, rel=0.01)


def test_empty_text(model: LanguageModel) -> None:
    likelihood = measure_likelihood(model, VOCABULARY, [])
    assert likelihood == Likelihood()
    with pytest.raises(ValueError, match="There is no sentence to predict: the text is empty"):
        _ = likelihood.perplexities
    with pytest.raises(ValueError, match="the text is empty"):
        likelihood.to_dict()
    assert measure_likelihood(model, VOCABULARY, [[]]).n_predicted == 1
