"""The tokens of annotated docs, with their vectors in a file."""

import gc
import io

import numpy
import pytest
import spacy
import torch
from numpy.testing import assert_allclose, assert_array_equal
from spacy.language import Language
from spacy.tokens import Doc, Token

from spacy_elmo.analysis.labelled_tokens import CHUNK, VectorFile, embed_tokens, label_ids, label_reader


@pytest.fixture
def nlp(weights: str) -> Language:
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"weights": weights})
    return nlp


@pytest.fixture
def doc(nlp: Language) -> Doc:
    return Doc(
        nlp.vocab,
        words=["Ada", "wrote", "\n", "it", "Cats", "sleep"],
        pos=["PROPN", "VERB", "SPACE", "", "NOUN", "VERB"],
        sent_starts=[True, False, False, False, True, False],
    )


def test_vectors_are_read_as_they_were_written() -> None:
    random = numpy.random.default_rng(0)
    sentences = [random.standard_normal((2, n, 3)).astype("float32") for n in (4, 1, CHUNK)]
    vectors = VectorFile(iter(sentences))
    expected_LNW = numpy.concatenate(sentences, axis=1)
    assert len(vectors) == CHUNK + 5
    assert_allclose(vectors.read(slice(2, 5)), expected_LNW[:, 2:5], rtol=1e-3)
    assert_allclose(vectors.read(torch.tensor([4, 0, 4])), expected_LNW[:, [4, 0, 4]], rtol=1e-3)
    chunks = list(vectors.read_all())
    assert [chunk.shape for chunk in chunks] == [(2, CHUNK, 3), (2, 5, 3)]
    assert_allclose(torch.cat(chunks, dim=1), expected_LNW, rtol=1e-3, atol=1e-6)
    assert chunks[0].dtype == torch.float32


def test_vectors_are_in_half_precision_and_not_in_memory() -> None:
    vectors = VectorFile(numpy.ones((2, 1000, 8), dtype="float32") for _ in range(3))
    gc.collect()
    assert vectors._rows_NLW.nbytes == 3000 * 2 * 8 * 2
    assert isinstance(vectors._rows_NLW, numpy.memmap)


def test_full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    class FullFile(io.BytesIO):
        def write(self, _: object) -> int:
            raise OSError("No space left on device")

    monkeypatch.setattr("tempfile.TemporaryFile", lambda **_: FullFile())
    with pytest.raises(
        OSError, match=r"could not be written to .*: No space left on device. If the disk is full, set TMPDIR"
    ):
        VectorFile([numpy.ones((2, 3, 4))])


def test_no_vectors() -> None:
    assert len(VectorFile(iter([]))) == 0
    assert list(VectorFile(iter([])).read_all()) == []


def test_tokens_are_embedded_sentence_by_sentence(nlp: Language, doc: Doc) -> None:
    tokens = embed_tokens(nlp, [doc], "pos", source="docs")
    # "it" has no part of speech. Whitespace is no word.
    assert tokens.words == ["Ada", "wrote", "Cats", "sleep"]
    assert tokens.labels == ["PROPN", "VERB", "NOUN", "VERB"]
    alone = nlp(Doc(nlp.vocab, words=["Cats", "sleep"]))
    assert_allclose(tokens.vectors.read(slice(2, 4)), alone._.elmo_layers, atol=1e-3)
    first = nlp(Doc(nlp.vocab, words=["Ada", "wrote", "it"]))
    assert_allclose(tokens.vectors.read(slice(2)), first._.elmo_layers[:, :2], atol=1e-3)


@pytest.mark.parametrize(
    ("attribute", "expected"),
    [
        ("tag", ["NNP", "VBD"]),
        ("tag_", ["NNP", "VBD"]),
        ("ent_type", ["PERSON", ""]),
        ("morph", ["Number=Sing", ""]),
        ("lemma", ["Ada", "write"]),
        ("pos", [None, None]),
        ("is_title", ["True", "False"]),
    ],
)
def test_any_attribute_can_be_the_label(nlp: Language, attribute: str, expected: list[str | None]) -> None:
    doc = Doc(
        nlp.vocab,
        words=["Ada", "wrote"],
        tags=["NNP", "VBD"],
        ents=["B-PERSON", "O"],
        morphs=["Number=Sing", ""],
        lemmas=["Ada", "write"],
    )
    assert [label_reader(attribute)(token) for token in doc] == expected


def test_extension_attributes_can_be_the_label(nlp: Language) -> None:
    Token.set_extension("rank", default=None)
    try:
        doc = Doc(nlp.vocab, words=["Ada", "wrote"])
        doc[1]._.rank = 3
        assert [label_reader("_.rank")(token) for token in doc] == [None, "3"]
    finally:
        Token.remove_extension("rank")
    with pytest.raises(ValueError, match=r"Tokens have no attribute '_.rank'"):
        label_reader("_.rank")


def test_unannotated_tokens_have_no_label(nlp: Language) -> None:
    doc = Doc(nlp.vocab, words=["Ada", "wrote"])
    for attribute in ("ent_type", "morph", "dep", "tag"):
        assert [label_reader(attribute)(token) for token in doc] == [None, None]


def test_unknown_attributes() -> None:
    with pytest.raises(ValueError, match="Tokens have no attribute 'no_such'. Probe for example tag, pos"):
        label_reader("no_such")


@pytest.mark.parametrize(
    ("attribute", "kind"), [("", "Underscore"), ("_", "Underscore"), ("nbor", "method"), ("vector", "ndarray")]
)
def test_attributes_that_are_no_labels(nlp: Language, attribute: str, kind: str) -> None:
    token = Doc(nlp.vocab, words=["Ada"])[0]
    with pytest.raises(
        ValueError, match=f"The attribute '{attribute}' of a token is no label but a .*{kind}. Probe for"
    ):
        label_reader(attribute)(token)


def test_docs_without_labels_or_tokens(nlp: Language, doc: Doc) -> None:
    with pytest.raises(
        ValueError, match="None of the 5 tokens of train.spacy has the attribute 'dep'. Was it annotated"
    ):
        embed_tokens(nlp, [doc], "dep", source="train.spacy")
    with pytest.raises(ValueError, match="train.spacy has no tokens"):
        embed_tokens(nlp, [Doc(nlp.vocab)], "dep", source="train.spacy")


def test_ids_of_labels() -> None:
    assert_array_equal(label_ids(["b", "x", "a"], {"a": 0, "b": 1}), [1, -1, 0])
