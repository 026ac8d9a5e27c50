"""The Thinc layers: values against the formula, gradients against finite differences."""

from collections.abc import Callable
from typing import Any

import numpy
import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from spacy.tokens import Doc
from thinc.api import Model, fix_random_seed

from spacy_elmo.layers.concat import concat_layers
from spacy_elmo.layers.dropout import dropout
from spacy_elmo.layers.fixed_mix import fixed_mix
from spacy_elmo.layers.layer_norm import layer_norm
from spacy_elmo.layers.mix import initialize_mix, mix, mix_width
from spacy_elmo.layers.scalar_mix import scalar_mix
from spacy_elmo.layers.windows import check_window, doc_windows

Array = Any  # NumPy's arrays, which are not thinc's to a type checker


def make_layers(*lengths: int, n_layers: int = 3, width: int = 4) -> list[Array]:
    random = numpy.random.RandomState(0)
    return [random.standard_normal((n_layers, length, width)).astype("float32") for length in lengths]


def check_gradient(model: Model[Any, Any], inputs: list[Array], get_values: Callable[[], list[Array]]) -> list[Array]:
    """Compare what a layer backpropagates to `inputs` with finite differences of a random projection of its output."""
    outputs, backprop = model.begin_update(inputs)
    random = numpy.random.RandomState(1)
    d_outputs = [random.standard_normal(output.shape).astype("float32") for output in outputs]
    d_inputs: list[Array] = backprop(d_outputs)

    def objective() -> float:
        return sum(float((y * d).sum()) for y, d in zip(get_values(), d_outputs, strict=True))

    for x, d_x in zip(inputs, d_inputs, strict=True):
        for index in numpy.ndindex(x.shape):
            assert_allclose(d_x[index], difference(x, index, objective), atol=5e-3, rtol=5e-3)
    return d_outputs


def difference(x: Array, index: tuple[int, ...], objective: Callable[[], float], step: float = 1e-2) -> float:
    old = x[index]
    x[index] = old + step
    above = objective()
    x[index] = old - step
    below = objective()
    x[index] = old
    return (above - below) / (2 * step)


def test_scalar_mix_starts_as_mean() -> None:
    model = scalar_mix(gamma=1.0, l2=0.0)
    initialize_mix(model, 3)
    layers = make_layers(2, 0, 5)
    for layers_LTO, vectors_TO in zip(layers, model.predict(layers), strict=True):
        assert_allclose(vectors_TO, layers_LTO.mean(axis=0), atol=1e-6)
        assert vectors_TO.dtype == "float32"


def test_scalar_mix_is_equation_1() -> None:
    model = scalar_mix(gamma=1.0, l2=0.0)
    initialize_mix(model, 3)
    w = numpy.asarray([1.0, -2.0, 0.5], dtype="float32")
    model.set_param("w", w)
    model.set_param("gamma", numpy.asarray([0.7], dtype="float32"))
    (layers,) = make_layers(4)
    share = numpy.exp(w) / numpy.exp(w).sum()
    expected = 0.7 * sum(share[k] * layers[k] for k in range(3))
    assert_allclose(model.predict([layers])[0], expected, atol=1e-6)


def test_scalar_mix_gradients() -> None:
    model = scalar_mix(gamma=1.5, l2=0.0)
    initialize_mix(model, 3)
    model.set_param("w", numpy.asarray([0.3, -0.4, 0.1], dtype="float32"))
    layers = make_layers(2, 0, 3)
    d_outputs = check_gradient(model, layers, lambda: model.predict(layers))
    for name in ("w", "gamma"):
        param = model.get_param(name)

        def objective(name: str = name, param: Any = param) -> float:
            model.set_param(name, param)
            return sum(float((y * d).sum()) for y, d in zip(model.predict(layers), d_outputs, strict=True))

        for i in range(len(param)):
            assert_allclose(model.get_grad(name)[i], difference(param, (i,), objective), atol=5e-3, rtol=5e-3)


def test_scalar_mix_is_not_pushed_from_the_mean() -> None:
    with pytest.raises(ValueError, match=r"l2 must be 0 or more, got -0\.1"):
        scalar_mix(gamma=1.0, l2=-0.1)


def test_scalar_mix_l2_pulls_to_mean() -> None:
    model = scalar_mix(gamma=1.0, l2=0.5)
    initialize_mix(model, 3)
    w = numpy.asarray([1.0, -2.0, 0.5], dtype="float32")
    model.set_param("w", w)
    layers = make_layers(2)
    _, backprop = model.begin_update(layers)
    no_gradient: Array = numpy.zeros((2, 4), dtype="float32")
    backprop([no_gradient])
    assert_allclose(model.get_grad("w"), 2 * 0.5 * w)


@pytest.mark.parametrize(
    ("layers", "weights"),
    [
        ("mean", [1 / 3, 1 / 3, 1 / 3]),
        ("top", [0, 0, 1]),
        (0, [1, 0, 0]),
        (1, [0, 1, 0]),
        (-1, [0, 0, 1]),
        ([0.5, -1.0, 2.0], [0.5, -1.0, 2.0]),
    ],
)
def test_fixed_mix(layers: Any, weights: list[float]) -> None:
    model = fixed_mix(layers, gamma=2.0)
    initialize_mix(model, 3)
    inputs = make_layers(2, 0)
    for layers_LTO, vectors_TO in zip(inputs, model.predict(inputs), strict=True):
        assert_allclose(vectors_TO, 2.0 * numpy.tensordot(weights, layers_LTO, axes=1), atol=1e-6)
        assert vectors_TO.dtype == "float32"
    check_gradient(model, inputs, lambda: model.predict(inputs))


@pytest.mark.parametrize(
    ("layers", "message"),
    [(3, "index from 0 .* to 2 .* got 3"), ("topp", "got 'topp'"), ([1.0, 2.0], "2 weights, but .* 3 layers")],
)
def test_fixed_mix_that_does_not_fit(layers: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fixed_mix(layers, gamma=1.0).predict(make_layers(1))


def test_concat_puts_layers_side_by_side() -> None:
    model = concat_layers(gamma=2.0)
    inputs = make_layers(2, 0, 1)
    for layers_LTO, vectors_TO in zip(inputs, model.predict(inputs), strict=True):
        assert_array_equal(vectors_TO, 2.0 * numpy.concatenate(list(layers_LTO), axis=1))
    check_gradient(model, inputs, lambda: model.predict(inputs))
    assert model.predict([]) == []
    chained = mix(layers="concat", gamma=1.0, layer_norm=True, dropout=0.0, l2=0.0)
    assert mix_width(chained, 3, 4) == chained.predict(make_layers(2))[0].shape[1] == 12
    assert mix_width(mix(layers="top", gamma=1.0, layer_norm=True, dropout=0.0, l2=0.0), 3, 4) == 4


def test_layer_norm_normalizes_each_vector_alone() -> None:
    model = layer_norm()
    inputs = make_layers(3, 0, 2)
    outputs = model.predict(inputs)
    assert_allclose(outputs[0].mean(axis=-1), 0, atol=1e-6)
    assert_allclose(outputs[0].std(axis=-1), 1, atol=1e-5)
    assert_array_equal(model.predict([inputs[2], inputs[0][:, 1:2]])[1], outputs[0][:, 1:2])
    check_gradient(model, inputs, lambda: model.predict(inputs))


def test_dropout_keeps_its_rate_and_its_mask() -> None:
    fix_random_seed(0)
    model = dropout(0.5)
    inputs = [numpy.ones((100, 4), dtype="float32"), numpy.ones((0, 4), dtype="float32")]
    outputs, backprop = model.begin_update(inputs)
    assert set(numpy.unique(outputs[0])) == {0.0, 2.0}
    assert 0.4 < (outputs[0] == 0).mean() < 0.6
    assert_array_equal(backprop(inputs)[0], outputs[0])
    assert_array_equal(model.predict(inputs)[0], inputs[0])
    assert "dropout_rate" not in model.attrs, "spaCy would overwrite it with [training.dropout]"


@pytest.mark.parametrize("rate", [-0.1, 1.0])
def test_dropout_rate_out_of_range(rate: float) -> None:
    with pytest.raises(ValueError, match=f"from 0 to below 1, got {rate}"):
        dropout(rate)


def make_doc(length: int, sent_starts: list[bool] | None = None) -> Doc:
    return Doc(spacy.blank("xx").vocab, words=[f"w{i}" for i in range(length)], sent_starts=sent_starts)


@given(length=st.integers(0, 200), size=st.integers(3, 40), data=st.data())
def test_windows_keep_each_token_once_and_in_context(length: int, size: int, data: st.DataObject) -> None:
    overlap = data.draw(st.integers(0, (size - 1) // 2))
    kept: list[int] = []
    for window in doc_windows(make_doc(length), size, overlap):
        assert len(window.tokens) <= size
        assert window.tokens == list(range(window.tokens[0], window.tokens[-1] + 1))
        kept.extend(window.tokens[window.keep])
        for position in window.tokens[window.keep]:
            assert window.tokens[0] <= max(0, position - overlap)
            assert window.tokens[-1] >= min(length - 1, position + overlap)
    assert kept == list(range(length))


def test_windows_are_sentences_where_set() -> None:
    doc = make_doc(5, [True, False, True, False, False])
    assert [window.tokens for window in doc_windows(doc, 320, 32)] == [[0, 1], [2, 3, 4]]


def test_windows_leave_out_whitespace() -> None:
    doc = Doc(spacy.blank("xx").vocab, words=["a", " ", "b", "\n\n"])
    assert [window.tokens for window in doc_windows(doc, 320, 32)] == [[0, 2]]


def test_window_without_tokens_of_its_own() -> None:
    with pytest.raises(ValueError, match="window = 64 and overlap = 32"):
        check_window(64, 32)
