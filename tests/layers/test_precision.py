"""The setting `precision` of the component: vectors, files, fallbacks and refusals."""

from pathlib import Path

import numpy
import pytest
import spacy
from confection import ConfigValidationError
from numpy.testing import assert_allclose
from spacy.language import Language
from spacy.training import Example

from spacy_elmo.bilm.frozen import precision_of
from spacy_elmo.layers import encoder

from ..helpers import make_elmo_nlp

TEXTS = ["A duck sat in the naïve garden .", "b", "the the the duck", "Ducks sit ."]


def cosines(one: numpy.ndarray, other: numpy.ndarray) -> numpy.ndarray:
    norms = numpy.linalg.norm(one, axis=-1) * numpy.linalg.norm(other, axis=-1)
    cosine: numpy.ndarray = (one * other).sum(axis=-1) / norms
    return cosine


def stored_precision(nlp: Language) -> str:
    return precision_of(nlp.get_pipe("elmo").load())


def test_int8_vectors_are_close_to_float32(weights: str) -> None:
    nlp, exact = make_elmo_nlp(weights, precision="int8"), make_elmo_nlp(weights)
    for text in TEXTS:
        assert (cosines(nlp(text).tensor, exact(text).tensor) > 0.995).all()
        assert not numpy.array_equal(nlp(text).tensor, exact(text).tensor)


def test_int8_vectors_do_not_depend_on_their_batch(weights: str) -> None:
    nlp = make_elmo_nlp(weights, precision="int8")
    for doc, text in zip(nlp.pipe(TEXTS), TEXTS, strict=True):
        assert_allclose(doc.tensor, nlp(text).tensor, atol=1e-5)


@pytest.mark.slow
def test_int8_vectors_of_the_bundled_model() -> None:
    text = Path(__file__).parents[2].joinpath("assets/sample/train.txt").read_text(encoding="utf8")
    texts = [line for line in text.splitlines() if line.strip()][:150]
    nlp, exact = spacy.blank("en"), spacy.blank("en")
    for pipeline, precision in ((nlp, "int8"), (exact, "float32")):
        pipeline.add_pipe("sentencizer")
        pipeline.add_pipe("elmo", config={"precision": precision})
    found = []
    for doc, expected in zip(nlp.pipe(texts), exact.pipe(texts), strict=True):
        found.append(cosines(doc.tensor, expected.tensor))
        assert_allclose(doc.tensor, nlp(doc.text).tensor, atol=1e-4)
    cosines_N = numpy.concatenate(found)
    assert cosines_N.min() > 0.998
    assert cosines_N.mean() > 0.9997


def test_a_saved_pipeline_keeps_int8(weights: str, tmp_path: Path) -> None:
    nlp = make_elmo_nlp(weights, precision="int8")
    expected = nlp(TEXTS[0]).tensor
    nlp.to_disk(tmp_path / "int8")
    loaded = spacy.load(tmp_path / "int8")
    assert stored_precision(loaded) == "int8"
    assert (cosines(loaded(TEXTS[0]).tensor, expected) > 0.9999).all()
    copied = make_elmo_nlp(weights, precision="int8").from_bytes(nlp.to_bytes())
    assert stored_precision(copied) == "int8"
    assert (cosines(copied(TEXTS[0]).tensor, expected) > 0.9999).all()


def test_a_saved_pipeline_runs_in_another_precision(weights: str, tmp_path: Path) -> None:
    make_elmo_nlp(weights).to_disk(tmp_path / "unused")
    for first, second in (("float32", "int8"), ("int8", "float32")):
        nlp = make_elmo_nlp(weights, precision=first)
        expected = nlp(TEXTS[0]).tensor
        nlp.to_disk(tmp_path / first)
        loaded = spacy.load(tmp_path / first, config={"components.elmo.precision": second})
        assert stored_precision(loaded) == second
        assert (cosines(loaded(TEXTS[0]).tensor, expected) > 0.995).all()


def test_where_int8_is_not_possible_float32_is_used(weights: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        encoder, "find_problem", lambda bilm, precision: "the sky is grey" if precision == "int8" else None
    )
    nlp = make_elmo_nlp(weights, precision="int8")
    with pytest.warns(
        UserWarning, match=r"precision = 'int8' is not possible here, because the sky is grey\. The biLM runs"
    ):
        vectors = nlp(TEXTS[0]).tensor
    assert_allclose(vectors, make_elmo_nlp(weights)(TEXTS[0]).tensor, atol=1e-6)
    assert stored_precision(nlp) == "float32"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"precision": "int8", "frozen": False}, r"precision = 'int8' cannot be trained\. Set frozen = true"),
        ({"precision": "int4"}, r"int4"),
    ],
)
def test_settings_that_do_not_fit(weights: str, settings: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigValidationError, match=message):
        make_elmo_nlp(weights, **settings)


def test_a_tagger_learns_from_int8(weights: str) -> None:
    nlp = make_elmo_nlp(weights, precision="int8")
    listener = {"@architectures": "spacy_elmo.ElmoListener.v1"}
    nlp.add_pipe("tagger", config={"model": {"@architectures": "spacy.Tagger.v2", "tok2vec": listener}})
    examples = [
        Example.from_dict(nlp.make_doc("a duck sat"), {"tags": ["D", "N", "V"]}),
        Example.from_dict(nlp.make_doc("the garden is"), {"tags": ["D", "N", "V"]}),
    ]
    optimizer = nlp.initialize(lambda: examples)
    optimizer.learn_rate = 0.1
    first = nlp.update(examples, sgd=optimizer)["tagger"]
    for _ in range(30):
        last = nlp.update(examples, sgd=optimizer)["tagger"]
    assert last < 0.5 * first
    assert stored_precision(nlp) == "int8"
