"""Mixes of layers: values against the formula, gradients against finite differences."""

from collections.abc import Callable
from typing import Any

import numpy
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from thinc.api import Model, fix_random_seed

from spacy_elmo.layers.concat import concat_layers
from spacy_elmo.layers.dropout import dropout
from spacy_elmo.layers.fixed_mix import fixed_mix
from spacy_elmo.layers.layer_norm import layer_norm
from spacy_elmo.layers.mix import fit_mix, mix, mixer_of, reset_mix
from spacy_elmo.layers.scalar_mix import scalar_mix
from spacy_elmo.layers.settings import MixSettings

Array = Any  # NumPy's arrays, which are not thinc's to a type checker


def make_layers(*lengths: int, n_layers: int = 3, width: int = 4) -> list[Array]:
    random = numpy.random.RandomState(0)
    return [random.standard_normal((n_layers, length, width)).astype("float32") for length in lengths]


def fit(model: Model[Any, Any], n_layers: int = 3, width: int = 4) -> Model[Any, Any]:
    """Tell a mixer its sizes."""
    model.set_dim("nL", n_layers)
    model.set_dim("nI", width)
    return model.initialize()


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
    model = fit(scalar_mix(gamma=1.0, l2=0.0), 3)
    layers = make_layers(2, 0, 5)
    for layers_LTO, vectors_TO in zip(layers, model.predict(layers), strict=True):
        assert_allclose(vectors_TO, layers_LTO.mean(axis=0), atol=1e-6)
        assert vectors_TO.dtype == "float32"


def test_scalar_mix_is_equation_1() -> None:
    model = fit(scalar_mix(gamma=1.0, l2=0.0), 3)
    w = numpy.asarray([1.0, -2.0, 0.5], dtype="float32")
    model.set_param("w", w)
    model.set_param("gamma", numpy.asarray([0.7], dtype="float32"))
    (layers,) = make_layers(4)
    share = numpy.exp(w) / numpy.exp(w).sum()
    expected = 0.7 * sum(share[k] * layers[k] for k in range(3))
    assert_allclose(model.predict([layers])[0], expected, atol=1e-6)


def test_scalar_mix_gradients() -> None:
    model = fit(scalar_mix(gamma=1.5, l2=0.0), 3)
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


def test_scalar_mix_l2_pulls_to_mean() -> None:
    model = fit(scalar_mix(gamma=1.0, l2=0.5), 3)
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
    model = fit(fixed_mix(layers, gamma=2.0))
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
        fit(fixed_mix(layers, gamma=1.0))


def test_concat_puts_layers_side_by_side() -> None:
    model = fit(concat_layers(gamma=2.0))
    inputs = make_layers(2, 0, 1)
    for layers_LTO, vectors_TO in zip(inputs, model.predict(inputs), strict=True):
        assert_array_equal(vectors_TO, 2.0 * numpy.concatenate(list(layers_LTO), axis=1))
    check_gradient(model, inputs, lambda: model.predict(inputs))
    assert model.predict([]) == []


@pytest.mark.parametrize(("layers", "width"), [("mix", 4), ("top", 4), ([0.5, 0.2, 0.3], 4), ("concat", 12)])
def test_mix_has_the_dims_of_its_layers(layers: Any, width: int) -> None:
    model = mix(MixSettings(layers=layers, layer_norm=True))
    fit_mix(model, n_layers=3, width=4)
    assert {name: mixer_of(model).get_dim(name) for name in ("nL", "nI", "nO")} == {"nL": 3, "nI": 4, "nO": width}
    assert model.predict(make_layers(2))[0].shape == (2, width)
    reset_mix(model)
    assert all(mixer_of(model).has_dim(name) is None for name in ("nL", "nI", "nO"))


def test_fitting_a_mix_keeps_what_it_has_learned() -> None:
    model = mix(MixSettings())
    mixer = mixer_of(model)
    mixer.set_param("w", numpy.asarray([1.0, 2.0, 3.0], dtype="float32"))
    mixer.set_param("gamma", numpy.asarray([4.0], dtype="float32"))
    for _ in range(2):
        fit_mix(model, n_layers=3, width=4)
        assert_array_equal(mixer.get_param("w"), [1.0, 2.0, 3.0])
        assert_array_equal(mixer.get_param("gamma"), [4.0])
    reset_mix(model)
    fit_mix(model, n_layers=2, width=4)
    assert_array_equal(mixer.get_param("w"), [0.0, 0.0])
    assert_array_equal(mixer.get_param("gamma"), [1.0])


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
