"""The biLM against the reference, and what must not matter to it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from torch import Tensor

from spacy_elmo.bilm import embed, lstm, model
from spacy_elmo.bilm.characters import Mark, Word, encode_word, pad_spellings
from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.embed import embed_sentences, run_batch
from spacy_elmo.bilm.lstm import Packing, State
from spacy_elmo.bilm.model import BiLM, InitialState
from spacy_elmo.formats import bilm_tf

from .. import reference
from ..helpers import SIZES, Arrays, published_arrays, published_options, random_bilm, small_config, write_published

pytestmark = pytest.mark.usefixtures("one_thread")

WORDS = ["", "a", " ", "naïve", "日本語", "🦆👩\u200d🚀", "\ud800", "<S>", "</S>", "x" * 60, "ab" * 5_000, "a"]
SENTENCES = [["The", "duck", "sat"], WORDS, [], ["a"], ["a", "duck", "a", "duck"], ["sat"]]

VARIANTS: dict[str, dict[str, Any]] = {
    "small": {},
    "depth 1": {"depth": 1},
    "depth 3": {"depth": 3},
    "tanh": {"activation": "tanh"},
    "no highway": {"highways": 0},
    "two highways": {"highways": 2},
    "no skip connections": {"skip_connections": False},
    "deep, no skip connections": {"skip_connections": False, "depth": 3},
    "no clipping": {"cell_clip": None, "projection_clip": None},
    "only the cells clipped": {"projection_clip": None},
    "only the projection clipped": {"cell_clip": None},
    "no LSTM projection": {"cells": 6},
    "no CNN projection": {"projection": 18},
    "neither projection": {"projection": 18, "cells": 18},
    "short words": {"max_chars": 10},
    "long words": {"max_chars": 50},
    "words as short as the widest filter": {"max_chars": 3},
    "one filter": {"filters": [[2, 5]]},
}

words = st.sampled_from(["a", "b", "the", "duck", "naïve", "日本語", "", " ", "<S>", "x" * 60]) | st.text(max_size=6)
sentences = st.lists(st.lists(words, max_size=6), min_size=1, max_size=6)


@pytest.fixture(scope="module")
def bilm() -> BiLM:
    return random_bilm()


def read_arrays(directory: Path, options: dict[str, Any], arrays: Arrays) -> BiLM:
    return bilm_tf.read(write_published(directory, options, arrays))


def layers_of(bilm: BiLM, sentence: Sequence[str]) -> Tensor:
    """Run one sentence alone."""
    with torch.no_grad():
        return embed_sentences(bilm, [sentence], max_batch_items=1)[0]


def random_state(bilm: BiLM, n_sentences: int, seed: int = 0) -> State:
    generator = torch.Generator().manual_seed(seed)
    zero = bilm.start(n_sentences, "zero")
    return State(*(torch.rand(part.shape, generator=generator, dtype=part.dtype) - 0.5 for part in zero))


def memory_of(state: State, sentence: int) -> reference.Memory:
    return reference.Memory(state.hidden[:, :, sentence].numpy(), state.cell[:, :, sentence].numpy())


# Against the reference


@pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS.keys())
def test_run_batch_agrees_with_the_reference(changes: dict[str, Any], tmp_path: Path) -> None:
    options = published_options(**changes)
    arrays = published_arrays(options)
    bilm = read_arrays(tmp_path, options, arrays)
    start = random_state(bilm, len(SENTENCES))
    with torch.no_grad():
        layers, end = run_batch(bilm, SENTENCES, start)
    for i, sentence in enumerate(SENTENCES):
        expected, memory = reference.run_sentence(options, arrays, sentence, memory_of(start, i))
        assert layers[i].shape == expected.shape
        assert_allclose(layers[i].numpy(), expected, atol=1e-5)
        assert_allclose(end.hidden[:, :, i].numpy(), memory.hidden, atol=1e-5)
        assert_allclose(end.cell[:, :, i].numpy(), memory.cell, atol=1e-5)


@pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS.keys())
def test_embed_sentences_agrees_with_the_reference(changes: dict[str, Any], tmp_path: Path) -> None:
    options = published_options(**changes)
    arrays = published_arrays(options, seed=1)
    bilm = read_arrays(tmp_path, options, arrays)
    with torch.no_grad():
        results = embed_sentences(bilm, SENTENCES, max_batch_items=12)
    for layers, sentence in zip(results, SENTENCES, strict=True):
        expected, _ = reference.run_sentence(options, arrays, sentence)
        assert_allclose(layers.numpy(), expected, atol=1e-5)


@pytest.mark.parametrize(
    ("part", "name", "value"),
    [
        ("char_cnn", "activation", "tanh"),
        ("char_cnn", "max_characters_per_token", 10),
        ("char_cnn", "n_highway", 0),
        ("lstm", "cell_clip", None),
        ("lstm", "proj_clip", None),
        ("lstm", "use_skip_connections", False),
    ],
)
def test_options_make_a_difference_that_the_reference_would_notice(part: str, name: str, value: Any) -> None:
    options, changed = published_options(), published_options()
    arrays = published_arrays(options)
    changed[part][name] = value
    before, _ = reference.run_sentence(options, arrays, WORDS)
    after, _ = reference.run_sentence(changed, arrays, WORDS)
    assert numpy.abs(before - after).max() > 0.01


@pytest.mark.parametrize("block_rows", [1, 3, 7])
def test_blocks_do_not_matter(bilm: BiLM, block_rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    start = random_state(bilm, len(SENTENCES))
    with torch.no_grad():
        before, state_before = run_batch(bilm, SENTENCES, start)
        monkeypatch.setattr(lstm, "BLOCK_ROWS", block_rows)
        after, state_after = run_batch(bilm, SENTENCES, start)
    for one, other in zip([*before, *state_before], [*after, *state_after], strict=True):
        assert_allclose(one.numpy(), other.numpy(), atol=1e-6)


def test_a_batch_of_many_blocks_agrees_with_single_sentences(bilm: BiLM) -> None:
    random = numpy.random.RandomState(0)
    batch = [[str(random.randint(30)) for _ in range(length)] for length in (70, 3, 150, 0, 90, 130, 149, 20)]
    assert sum(map(len, batch)) > lstm.BLOCK_ROWS
    with torch.no_grad():
        results = embed_sentences(bilm, batch, max_batch_items=10_000)
    for layers, sentence in zip(results, batch, strict=True):
        assert_allclose(layers.numpy(), layers_of(bilm, sentence).numpy(), atol=1e-5)


# The character CNN


@pytest.mark.parametrize("max_chars", [3, 10, 50])
def test_encode_words_pads_as_if_to_max_chars(max_chars: int) -> None:
    bilm = random_bilm(max_chars=max_chars, activation="tanh")
    chars_UC = pad_spellings([encode_word(word, max_chars) for word in WORDS], max_chars)
    with torch.no_grad():
        expected = bilm.char_cnn(torch.as_tensor(chars_UC))
        assert_allclose(bilm.encode_words(WORDS).numpy(), expected.numpy(), atol=1e-6)
        for i, word in enumerate(WORDS):
            assert_allclose(bilm.encode_words([word])[0].numpy(), expected[i].numpy(), atol=1e-6)


def test_encode_words_keeps_the_order_over_many_batches(bilm: BiLM, monkeypatch: pytest.MonkeyPatch) -> None:
    with torch.no_grad():
        expected = torch.cat([bilm.encode_words([word]) for word in WORDS])
        monkeypatch.setattr(model, "WORDS_AT_ONCE", 2)
        assert_allclose(bilm.encode_words(WORDS).numpy(), expected.numpy(), atol=1e-6)


def test_words_differ_where_their_bytes_do(bilm: BiLM) -> None:
    marks = [Mark.BEGIN_SENTENCE, Mark.END_SENTENCE]
    different: list[Word] = [*marks, "", "a", "b", "ab", "ba", " ", "<S>", "</S>", "naive", "naïve"]
    with torch.no_grad():
        vectors = bilm.encode_words(different).numpy()
    for i, vector in enumerate(vectors):
        distances = numpy.abs(vectors - vector).max(axis=1)
        assert distances[i] == 0
        assert numpy.delete(distances, i).min() > 1e-3


def test_bytes_beyond_max_chars_are_not_read(bilm: BiLM) -> None:
    room = bilm.config.max_chars - 2
    with torch.no_grad():
        vectors = bilm.encode_words(["x" * room, "x" * room + "y", "x" * (room - 1) + "y"]).numpy()
    assert_allclose(vectors[0], vectors[1], atol=1e-6)
    assert numpy.abs(vectors[0] - vectors[2]).max() > 1e-3


# Packing


def test_packing_places_each_step_of_all_sentences_together() -> None:
    packing = Packing.from_lengths([4, 2, 1], torch.device("cpu"))
    assert packing.sizes == [3, 2, 1, 1]
    assert packing.rows_N.tolist() == [0, 3, 5, 6, 1, 4, 2]
    assert packing.mirror_N.tolist() == [6, 4, 2, 5, 1, 3, 0]


@given(st.lists(st.integers(1, 9), min_size=1, max_size=9))
def test_packing_mirrors_each_sentence_in_itself(lengths: list[int]) -> None:
    lengths = sorted(lengths, reverse=True)
    packing = Packing.from_lengths(lengths, torch.device("cpu"))
    assert sum(packing.sizes) == sum(lengths)
    assert sorted(packing.rows_N.tolist()) == list(range(sum(lengths)))
    for rows in torch.split(packing.rows_N, lengths):
        assert packing.mirror_N[rows].tolist() == rows.tolist()[::-1]


@pytest.mark.parametrize("lengths", [[1, 2], [3, 1, 2], [2, 0], [0]])
def test_packing_wants_the_longest_first(lengths: list[int]) -> None:
    with pytest.raises(ValueError, match=r"lengths of 1 or more, longest first, got \["):
        Packing.from_lengths(lengths, torch.device("cpu"))


# The model


def test_initialize_is_the_same_on_every_platform() -> None:
    bilm = random_bilm(0)
    assert_allclose(
        bilm.char_cnn.embedding.weight[0].tolist(),
        [0.882026173, 0.200078604, 0.489368992, 1.1204466],  # numpy's MT19937, divided by the root of four
        rtol=1e-6,
    )
    for one, same, other in zip(
        bilm.parameters(), random_bilm(0).parameters(), random_bilm(1).parameters(), strict=True
    ):
        assert torch.equal(one, same)
        assert not torch.isclose(one, other).any()


def test_layer_0_is_the_token_vector_twice(bilm: BiLM) -> None:
    with torch.no_grad():
        vectors = bilm.encode_words(["a", "duck"]).numpy()
    assert_allclose(layers_of(bilm, ["a", "duck"])[0].numpy(), numpy.concatenate([vectors, vectors], 1), atol=1e-6)


def test_start_refuses_unknown_states(bilm: BiLM) -> None:
    with pytest.raises(ValueError, match=r"initial_state must be one of \('stored', 'zero'\), got 'warm'"):
        bilm.start(1, cast(InitialState, "warm"))


def test_start_gives_each_sentence_the_stored_state() -> None:
    bilm = random_bilm()
    hidden, cell = torch.rand(2, 2, 6), torch.rand(2, 2, 10)
    assert all(not part.any() for part in bilm.start(3, "stored"))
    bilm.initial_hidden, bilm.initial_cell = hidden, cell
    stored, zero = bilm.start(3, "stored"), bilm.start(3, "zero")
    assert stored.hidden.shape == zero.hidden.shape == (2, 2, 3, 6)
    assert stored.cell.shape == zero.cell.shape == (2, 2, 3, 10)
    assert not zero.hidden.any()
    assert not zero.cell.any()
    for i in range(3):
        assert torch.equal(stored.hidden[:, :, i], hidden)
        assert torch.equal(stored.cell[:, :, i], cell)


def test_carried_state_changes_the_next_sentence_as_in_the_reference(tmp_path: Path) -> None:
    options = published_options()
    arrays = published_arrays(options)
    bilm = read_arrays(tmp_path, options, arrays)
    first, second = [["a", "duck"], ["sat"]], [["b"], ["c", "d", "e"]]
    with torch.no_grad():
        _, state = run_batch(bilm, first, bilm.start(2))
        layers, _ = run_batch(bilm, second, state)
    for i in range(2):
        _, memory = reference.run_sentence(options, arrays, first[i])
        expected, _ = reference.run_sentence(options, arrays, second[i], memory)
        assert_allclose(layers[i].numpy(), expected, atol=1e-5)
        assert numpy.abs(layers_of(bilm, second[i]).numpy() - expected).max() > 0.01


# Sizes


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"depth": 0}, r"depth must be a whole number from 1 to \d+, got 0"),
        ({"cells": -1}, r"cells must be a whole number from 1 to \d+, got -1"),
        ({"projection": 6.0}, r"projection must be a whole number from 1 to \d+, got 6.0"),
        ({"char_dim": True}, r"char_dim must be a whole number from 1 to \d+, got True"),
        ({"highways": -1}, r"highways must be a whole number from 0 to \d+, got -1"),
        ({"max_chars": 2}, r"max_chars must be a whole number from 3 to \d+, got 2"),
        ({"max_chars": "50"}, r"max_chars must be a whole number from 3 to \d+, got '50'"),
        ({"filters": []}, r"filters must be a list of 1 to 64 \[width, count\] pairs, got \[\]"),
        ({"filters": {"1": 4}}, r"filters must be a list of 1 to 64 \[width, count\] pairs, got \{'1': 4\}"),
        ({"filters": [[1, 4, 2]]}, r"filters must be a list of \[width, count\] pairs, got \[1, 4, 2\] in it"),
        ({"filters": [3]}, r"filters must be a list of \[width, count\] pairs, got 3 in it"),
        ({"filters": [[0, 4]]}, r"the width of a filter must be a whole number from 1 to \d+, got 0"),
        ({"filters": [[1, 0]]}, r"the count of a filter must be a whole number from 1 to \d+, got 0"),
        ({"filters": [[21, 4]]}, "A filter 21 characters wide does not fit into words of max_chars = 20"),
        ({"activation": "gelu"}, "activation must be one of relu, tanh, got 'gelu'"),
        ({"cell_clip": 0}, "cell_clip must be a number above 0, or null for no clipping, got 0"),
        ({"cell_clip": float("nan")}, "cell_clip must be a number above 0, or null for no clipping, got nan"),
        ({"projection_clip": -3.0}, "projection_clip must be a number above 0, or null for no clipping, got -3.0"),
        ({"projection_clip": True}, "projection_clip must be a number above 0, or null for no clipping, got True"),
        ({"skip_connections": 1}, "skip_connections must be true or false, got 1"),
    ],
)
def test_config_refuses_sizes_that_make_no_sense(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        small_config(**changes)


def test_config_survives_json_shapes() -> None:
    config = small_config()
    assert config.to_dict() == SIZES
    assert BiLMConfig.from_dict(config.to_dict()) == config
    assert len({config, small_config(), small_config(depth=1)}) == 2
    assert (config.n_filters, config.widest_filter, config.width) == (18, 3, 12)


# Batches


def test_embed_sentences_without_sentences(bilm: BiLM) -> None:
    assert embed_sentences(bilm, [], max_batch_items=10) == []


def test_embed_sentences_of_no_words(bilm: BiLM) -> None:
    for layers in embed_sentences(bilm, [[], []], max_batch_items=10):
        assert layers.shape == (3, 0, 12)


@pytest.mark.parametrize("max_batch_items", [1, 5, 9, 1_000])
def test_embed_sentences_bounds_its_batches(bilm: BiLM, max_batch_items: int, monkeypatch: pytest.MonkeyPatch) -> None:
    batches: list[list[list[str]]] = []

    def record(bilm: BiLM, batch: Any, state: State, **kwargs: Any) -> tuple[list[Tensor], State]:
        batches.append(list(batch))
        return run_batch(bilm, batch, state, **kwargs)

    monkeypatch.setattr(embed, "run_batch", record)
    embed_sentences(bilm, SENTENCES, max_batch_items=max_batch_items)
    for batch in batches:
        assert len(batch) == 1 or sum(len(sentence) + 2 for sentence in batch) <= max_batch_items
    assert sorted(sentence for batch in batches for sentence in batch) == sorted(SENTENCES)
    if max_batch_items == 1_000:
        assert len(batches) == 1


def test_run_batch_reads_each_spelling_once(bilm: BiLM) -> None:
    read: list[Word] = []

    def record(words: Sequence[Word]) -> Tensor:
        read.extend(words)
        return bilm.encode_words(words)

    run_batch(bilm, [["a", "b", "a"], ["b", "<S>"]], bilm.start(2), encode_words=record)
    assert len(read) == 5
    assert set(read) == {Mark.BEGIN_SENTENCE, Mark.END_SENTENCE, "a", "b", "<S>"}


@given(batch=sentences, max_batch_items=st.integers(1, 40), data=st.data())
def test_batches_do_not_matter(bilm: BiLM, batch: list[list[str]], max_batch_items: int, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(batch))))
    with torch.no_grad():
        results = embed_sentences(bilm, [batch[i] for i in order], max_batch_items=max_batch_items)
    for i, layers in zip(order, results, strict=True):
        assert_allclose(layers.numpy(), layers_of(bilm, batch[i]).numpy(), atol=1e-5)


@given(batch=sentences)
def test_calling_twice_is_calling_once(bilm: BiLM, batch: list[list[str]]) -> None:
    state = random_state(bilm, len(batch))
    kept = State(*(part.clone() for part in state))
    weights = {name: tensor.clone() for name, tensor in bilm.state_dict().items()}
    with torch.no_grad():
        first, first_end = run_batch(bilm, batch, state)
        copies = [tensor.clone() for tensor in [*first, *first_end]]
        second, second_end = run_batch(bilm, batch, state)
    for one, copy, other in zip([*first, *first_end], copies, [*second, *second_end], strict=True):
        assert torch.equal(one, copy)
        assert torch.equal(one, other)
    for before, after in zip([*kept, *weights.values()], [*state, *bilm.state_dict().values()], strict=True):
        assert torch.equal(before, after)


@given(sentence=st.lists(words, min_size=1, max_size=8), word=words, data=st.data())
def test_a_direction_does_not_see_what_it_has_not_read(
    bilm: BiLM, sentence: list[str], word: str, data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(sentence) - 1))
    before = layers_of(bilm, sentence).numpy()
    after = layers_of(bilm, [*sentence[:at], word, *sentence[at + 1 :]]).numpy()
    assert_allclose(before[:, :at, :6], after[:, :at, :6], atol=1e-6)
    assert_allclose(before[:, at + 1 :, 6:], after[:, at + 1 :, 6:], atol=1e-6)


def test_a_direction_sees_what_it_has_read(bilm: BiLM) -> None:
    before = layers_of(bilm, ["a", "b", "c", "d", "e"]).numpy()
    difference = numpy.abs(layers_of(bilm, ["a", "b", "duck", "d", "e"]).numpy() - before)
    assert difference[:, 2].max(axis=-1).min() > 1e-3
    assert difference[1:, 3:, :6].max(axis=-1).min() > 1e-3
    assert difference[1:, :2, 6:].max(axis=-1).min() > 1e-3
    assert difference[0, [0, 1, 3, 4]].max() < 1e-6


# Gradients


@given(batch=sentences)
def test_training_computes_the_same_values(bilm: BiLM, batch: list[list[str]]) -> None:
    state = random_state(bilm, len(batch))
    trained, trained_end = run_batch(bilm, batch, state)
    with torch.no_grad():
        run, run_end = run_batch(bilm, batch, state)
    for one, other in zip([*trained, *trained_end], [*run, *run_end], strict=True):
        assert one.requires_grad
        assert not other.requires_grad
        assert_allclose(one.detach().numpy(), other.numpy(), atol=1e-6)


@pytest.mark.parametrize("changes", [{}, {"skip_connections": False, "highways": 2, "depth": 3}, {"cells": 6}])
def test_gradients_agree_with_finite_differences(changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lstm, "BLOCK_ROWS", 4)
    bilm = random_bilm(activation="tanh", **changes).double()
    batch = [["a", "duck"], [], ["a", "naïve", "b"]]
    generator = torch.Generator().manual_seed(0)
    state = random_state(bilm, len(batch))
    inputs = {**dict(bilm.named_parameters()), "hidden": state.hidden, "cell": state.cell}
    weights: list[Tensor] = []

    def loss() -> Tensor:
        layers, end = run_batch(bilm, batch, state)
        outputs = [*layers, *end]
        if not weights:
            weights.extend(torch.randn(y.shape, generator=generator, dtype=torch.float64) for y in outputs)
        return torch.stack([(y * w).sum() for y, w in zip(outputs, weights, strict=True)]).sum()

    for tensor in inputs.values():
        tensor.requires_grad_()
    torch.autograd.backward(loss())
    with torch.no_grad():
        for name, tensor in inputs.items():
            assert tensor.grad is not None, name
            direction = torch.randn(tensor.shape, generator=generator, dtype=torch.float64)
            values = []
            for step in (1e-6, -2e-6):
                tensor += step * direction
                values.append(float(loss()))
            tensor += 1e-6 * direction
            slope = (values[0] - values[1]) / 2e-6
            assert slope != 0, name
            assert float((tensor.grad * direction).sum()) == pytest.approx(slope, rel=1e-5, abs=1e-7), name
