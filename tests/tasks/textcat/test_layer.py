"""The biattentive network as a Thinc layer."""

import subprocess
import sys
from typing import Any

import numpy
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from thinc.api import Model, set_dropout_rate

from spacy_elmo.tasks.textcat.layer import biattention
from spacy_elmo.tasks.textcat.network import BiattentiveNetwork, Sizes

from .networks import SIZES, freeze, random_network, random_vectors, reference


def make_layer(*widths: int, dropout: float | None = None) -> Model[Any, Any]:
    """Make the Thinc layer around a random network."""
    layer = biattention(Sizes(**SIZES), dropout=dropout)
    layer.initialize([random_vectors(1, width=width) for width in widths])
    layer.shims[0]._model = random_network(*widths)
    return layer


def network_in(layer: Model[Any, Any]) -> BiattentiveNetwork:
    network: BiattentiveNetwork = layer.shims[0]._model
    return network


@pytest.mark.parametrize("widths", [(4,), (4, 2)])
def test_layer_gradients(widths: tuple[int, ...]) -> None:
    layer = make_layer(*widths)
    sources = [random_vectors(2, 1, 4, 3, 2, width=width, seed=width) for width in widths]
    expected = [reference(network_in(layer), *docs) for docs in zip(*sources, strict=True)]
    assert_allclose(layer.predict(sources), expected, atol=1e-4, rtol=1e-4)
    freeze(network_in(layer))
    vectors, backprop = layer.begin_update(sources)
    assert_allclose(vectors, expected, atol=1e-4, rtol=1e-4)
    d_vectors = random_vectors(5, width=6, seed=5)[0]
    for docs, d_docs in zip(sources, backprop(d_vectors), strict=True):
        for x, d_x in zip(docs, d_docs, strict=True):
            assert d_x.shape == x.shape
            for index in numpy.ndindex(x.shape):
                old, values = x[index], []
                for x[index] in (old + 1e-3, old - 1e-3):
                    values.append(float((layer.predict(sources) * d_vectors).sum()))
                x[index] = old
                assert_allclose(d_x[index], (values[0] - values[1]) / 2e-3, atol=5e-2, rtol=5e-2)


def test_dropout_is_that_of_the_training() -> None:
    layer, sources = make_layer(4), [random_vectors(3)]
    freeze(network_in(layer))
    predicted = layer.predict(sources)
    assert_allclose(layer.begin_update(sources)[0], predicted, atol=1e-5)
    set_dropout_rate(layer, 0.5)
    dropped = layer.begin_update(sources)[0]
    assert not numpy.allclose(dropped, predicted)
    assert not numpy.allclose(dropped, layer.begin_update(sources)[0])
    assert_array_equal(layer.predict(sources), predicted)


def test_dropout_rate_of_the_network() -> None:
    layer, sources = make_layer(4, dropout=0.5), [random_vectors(3)]
    freeze(network_in(layer))
    set_dropout_rate(layer, 0.0)
    assert not numpy.allclose(layer.begin_update(sources)[0], layer.predict(sources))
    set_dropout_rate(layer := make_layer(4, dropout=0.0), 0.5)
    freeze(network_in(layer))
    assert_allclose(layer.begin_update(sources)[0], layer.predict(sources), atol=1e-5)


def test_layer_without_weights() -> None:
    with pytest.raises(ValueError, match=r"no weights yet. Call nlp.initialize\(\)"):
        biattention(Sizes(**SIZES), dropout=None).predict([random_vectors(1)])


def test_vectors_of_another_width() -> None:
    with pytest.raises(ValueError, match=r"trained on vectors of width \[4, 2\] .* got \[4, 3\]"):
        make_layer(4, 2).predict([random_vectors(1), random_vectors(1, width=3)])
    with pytest.raises(ValueError, match=r"trained on vectors of width \[4\] .* got \[4, 3\]"):
        make_layer(4).predict([random_vectors(1), random_vectors(1, width=3)])


def test_forked_processes_do_not_wait_for_threads() -> None:
    code = (
        "import os, sys, torch, spacy_elmo.tasks.textcat.layer\n"
        "assert 'spacy_elmo.layers.encoder' not in sys.modules\n"
        "torch.set_num_threads(2)\n"
        "child = os.fork()\n"
        "if child == 0: os._exit(40 + torch.get_num_threads())\n"
        "sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    assert subprocess.run([sys.executable, "-W", "ignore", "-c", code]).returncode == 41
