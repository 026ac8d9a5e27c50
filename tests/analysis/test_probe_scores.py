"""Linear probes, on tokens whose labels one layer knows and another does not."""

import numpy
import pytest

from spacy_elmo.analysis.labelled_tokens import LabelledTokens, VectorFile
from spacy_elmo.analysis.probe_scores import Accuracy, ProbeResults, predict_baselines, run_probes, summarize


def make_tokens(n: int, seed: int) -> LabelledTokens:
    """Make tokens with three labels. Layer 0 is noise; in layer 1 each label has a direction of its own."""
    random = numpy.random.default_rng(seed)
    labels_N = random.integers(3, size=n)
    layers_LNW = random.standard_normal((2, n, 4))
    layers_LNW[1] += 8 * numpy.eye(4)[labels_N]
    words = [f"word{i}" for i in random.integers(50, size=n)]
    return LabelledTokens(words, [f"label{i}" for i in labels_N], VectorFile([layers_LNW]))


def without_vectors(words: str, labels: str) -> LabelledTokens:
    return LabelledTokens(words.split(), labels.split(), VectorFile([numpy.ones((2, len(words.split()), 2))]))


def test_probes_find_the_layer_with_the_labels() -> None:
    train, dev, test = make_tokens(1500, 0), make_tokens(200, 1), make_tokens(500, 2)
    sizes: list[int] = []
    results = run_probes(train, dev, test, n_epochs=40, seeds=[0, 1], on_batch=sizes.append)
    assert sum(sizes) == 2 * 40 * 1500
    assert [(score.name, score.layers) for score in results.probes] == [
        ("token layer", [0]),
        ("LSTM layer 1", [1]),
        ("mean", [0, 1]),
        ("side by side", [0, 1]),
        ("learned mix", [0, 1]),
    ]
    noise, known, mean, side_by_side, mix = results.probes
    for seed in range(2):
        assert noise.accuracies[seed].overall < 45  # by chance, a third
        for score in (known, mean, side_by_side, mix):
            assert score.accuracies[seed].overall > 95
    assert known.weights is None
    assert mix.weights is not None
    assert sum(mix.weights) == pytest.approx(1)
    assert mix.weights[1] > 0.52
    assert results.n_tokens == {"train": 1500, "dev": 200, "test": 500}
    assert (results.n_labels, results.n_unseen, results.labels_only_in_test) == (3, 0, {})


def test_a_seed_gives_the_same_probe() -> None:
    train, dev, test = make_tokens(300, 0), make_tokens(50, 1), make_tokens(80, 2)

    def weights(seed: int) -> list[float] | None:
        return run_probes(train, dev, test, n_epochs=5, seeds=[seed]).probes[-1].weights

    assert weights(0) == weights(0)
    assert weights(0) != weights(1)


def test_baselines() -> None:
    train = without_vectors("a a a b b c", "X X Y Y Y Z")
    found = predict_baselines(train, without_vectors("a b c d", "X Y Z Z"))
    assert found == {"majority": ["Y"] * 4, "each word's most frequent label": ["X", "Y", "Z", "Y"]}


def test_unseen_words_and_labels_only_in_test() -> None:
    train, test = without_vectors("a a b", "X X Y"), without_vectors("a b c d", "X New New Y")
    results = run_probes(train, train, test, n_epochs=1, seeds=[0])
    assert results.n_unseen == 2
    assert results.n_labels == 2
    assert results.labels_only_in_test == {"New": 2}
    # Of a, b, c, d: the first is right. New can be predicted by nobody.
    assert results.baselines["majority"] == (25, 0)
    assert run_probes(train, train, train, n_epochs=1, seeds=[0]).baselines["majority"].unseen is None


def test_one_label_is_nothing_to_predict() -> None:
    tokens = without_vectors("a b", "X X")
    with pytest.raises(ValueError, match="All tokens to train on have the label 'X', so there is nothing to predict"):
        run_probes(tokens, tokens, tokens, n_epochs=1, seeds=[0])


def test_seeds_are_summarized() -> None:
    assert summarize([80.0, 90.0]) == {"mean": 85, "deviation": pytest.approx(50**0.5), "seeds": [80, 90]}
    assert summarize([80.0]) == {"mean": 80, "deviation": None, "seeds": [80]}
    assert summarize([None, None]) == {"mean": None, "deviation": None, "seeds": [None, None]}


def test_results_as_json() -> None:
    train, dev, test = make_tokens(100, 0), make_tokens(50, 1), make_tokens(80, 2)
    results: ProbeResults = run_probes(train, dev, test, n_epochs=1, seeds=[3])
    found = results.to_dict()
    assert found["tokens"] == {"train": 100, "dev": 50, "test": 80}
    assert (found["seeds"], found["epochs"], found["labels"]) == ([3], 1, 3)
    assert [each["name"] for each in found["baselines"]] == ["majority", "each word's most frequent label"]
    mix = found["probes"][-1]
    assert (mix["name"], mix["layers"]) == ("learned mix", [0, 1])
    assert mix["weights"] == results.probes[-1].weights
    accuracy: Accuracy = results.probes[-1].accuracies[0]
    assert mix["all"] == {"mean": accuracy.overall, "deviation": None, "seeds": [accuracy.overall]}
