"""The pipeline that embeds: blank, or one that is given, with or without its own `elmo`."""

import shutil
from pathlib import Path
from unittest import mock

import numpy
import pytest
import spacy

from spacy_elmo.bilm.weights import save_weights
from spacy_elmo.embedding.model import load_embedder
from spacy_elmo.embedding.settings import EmbeddingSettings

from ..helpers import make_elmo_nlp, random_bilm
from .corpora import TEXTS, assert_same_vectors, embed, read_vectors, write_lines


@pytest.fixture(scope="module")
def other_weights(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("weights") / "b"
    save_weights(random_bilm(2), path)
    return str(path)


def test_pipeline_without_elmo_gets_one(weights: str, tmp_path: Path) -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer", config={"punct_chars": ["of"]})
    nlp.to_disk(tmp_path / "pipeline")
    corpus = write_lines(tmp_path / "a.txt", TEXTS[0])
    embed(corpus, tmp_path / "out", pipeline=str(tmp_path / "pipeline"), weights=weights, unit="sentence")
    assert len(read_vectors(tmp_path / "out")) == 3


def test_pipeline_with_elmo_uses_its_own(weights: str, other_weights: str, tmp_path: Path) -> None:
    nlp = make_elmo_nlp(other_weights)
    nlp.rename_pipe("elmo", "vectors")
    nlp.to_disk(tmp_path / "pipeline")
    corpus = write_lines(tmp_path / "a.txt", *TEXTS)
    embed(corpus, tmp_path / "out", pipeline=str(tmp_path / "pipeline"), unit="token", layers="top")
    docs = list(nlp.pipe(TEXTS))
    words = [doc._.elmo_layers[2, token.i] for doc in docs for token in doc if not token.is_space]
    assert_same_vectors(read_vectors(tmp_path / "out"), numpy.stack(words))
    for settings in ({"weights": weights}, {"precision": "int8"}):
        with pytest.raises(ValueError, match="has its own component 'vectors'. Leave out --weights and --precision"):
            load_embedder(EmbeddingSettings(pipeline=str(tmp_path / "pipeline"), **settings))
    with pytest.raises(ValueError, match="sets no sentence boundaries. Add a component that does"):
        load_embedder(EmbeddingSettings(pipeline=str(tmp_path / "pipeline"), unit="sentence"))


def test_vectors_in_int8(weights: str, tmp_path: Path) -> None:
    corpus = write_lines(tmp_path / "a.txt", *TEXTS)
    embed(corpus, tmp_path / "out", weights=weights, precision="int8")
    nlp = make_elmo_nlp(weights, precision="int8")
    nlp.add_pipe("sentencizer", first=True)
    expected = [doc.tensor[[not token.is_space for token in doc]].mean(axis=0) for doc in nlp.pipe(TEXTS)]
    assert_same_vectors(read_vectors(tmp_path / "out"), numpy.stack(expected))
    load_embedder.cache_clear()
    with (
        mock.patch("spacy_elmo.layers.encoder.find_problem", return_value="the sky is grey"),
        pytest.warns(UserWarning, match="the sky is grey"),
        pytest.raises(ValueError, match="This machine cannot embed in int8. Embed in float32"),
    ):
        load_embedder(EmbeddingSettings(weights=weights, precision="int8"))


def test_chinese_sentences_and_words(weights: str, tmp_path: Path) -> None:
    corpus = write_lines(tmp_path / "a.txt", "数学很难。《九章算术》很老！")
    for segmenter, n_tokens in ((None, 14), ("jieba", 9)):
        for unit, n_rows in (("sentence", 2), ("token", n_tokens)):
            output = tmp_path / f"{segmenter}-{unit}"
            embed(corpus, output, weights=weights, lang="zh", segmenter=segmenter, unit=unit)
            assert len(read_vectors(output)) == n_rows
    identity = load_embedder(EmbeddingSettings(weights=weights, lang="zh", segmenter="jieba")).identity
    assert identity["jieba"] == "0.42.1"
    assert "jieba" not in load_embedder(EmbeddingSettings(weights=weights, lang="zh")).identity


def test_given_words_fit_weights_of_any_segmenter(tmp_path: Path) -> None:
    """Warnings are errors in tests: none is expected."""
    save_weights(random_bilm(0, lang="zh", segmenter="jieba"), tmp_path / "weights")
    corpus = write_lines(tmp_path / "a.txt", "数学 很 难 。")
    weights = str(tmp_path / "weights")
    embed(corpus, tmp_path / "out", weights=weights, lang="zh", tokenized=True, unit="token")
    assert len(read_vectors(tmp_path / "out")) == 4


def test_overwritten_tensors_do_not_matter(weights: str, tmp_path: Path) -> None:
    nlp = make_elmo_nlp(weights)
    nlp.add_pipe("sentencizer", first=True)
    nlp.add_pipe("tok2vec")
    nlp.initialize()
    nlp.to_disk(tmp_path / "pipeline")
    corpus = write_lines(tmp_path / "a.txt", *TEXTS)
    embed(corpus, tmp_path / "overwritten", pipeline=str(tmp_path / "pipeline"))
    embed(corpus, tmp_path / "blank", weights=weights)
    assert_same_vectors(read_vectors(tmp_path / "overwritten"), read_vectors(tmp_path / "blank"))


def test_identity_is_that_of_the_content(weights: str, other_weights: str, tmp_path: Path) -> None:
    shutil.copytree(weights, tmp_path / "copy")
    first = load_embedder(EmbeddingSettings(weights=weights)).identity
    assert load_embedder(EmbeddingSettings(weights=str(tmp_path / "copy"))).identity == first
    assert load_embedder(EmbeddingSettings(weights=other_weights)).identity != first


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"layers": 3}, "layers must be mix, mean, top, all or an index from 0 .* to 2 .*, got 3"),
        ({"layers": "best"}, "layers must be one of mix, mean, top, all or the index of a layer, got 'best'"),
        ({"unit": "word"}, "unit must be one of document, sentence, token, got 'word'"),
        ({"dtype": "int8"}, "dtype must be one of float32, float16, got 'int8'"),
        ({"shard_size": 0}, "shard_size must be 1 or more, got 0"),
        ({"segmenter": "jieba"}, r"for raw Chinese text \(lang = 'zh'\), not for the language 'en'"),
        ({"lang": "zh", "segmenter": "jieba", "tokenized": True}, "but tokenized text is cut already"),
        ({"pipeline": "x", "segmenter": "char"}, "but a pipeline has its own tokenizer"),
        ({"lang": "qq"}, "spaCy cannot tokenize the language 'qq'"),
        ({"pipeline": "no_such_pipeline", "weights": None}, "There is no pipeline 'no_such_pipeline'"),
        ({"pipeline": "x", "tokenized": True}, "tokenized text needs no pipeline"),
        ({"weights": "nowhere"}, "There is no weights directory at nowhere"),
    ],
)
def test_settings_that_are_refused(weights: str, settings: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_embedder(EmbeddingSettings(**{"weights": weights, **settings}))


def test_several_elmos_are_refused(weights: str, tmp_path: Path) -> None:
    nlp = make_elmo_nlp(weights)
    nlp.add_pipe("elmo", name="second", config={"weights": weights})
    nlp.to_disk(tmp_path)
    with pytest.raises(ValueError, match="has several `elmo`: elmo, second"):
        load_embedder(EmbeddingSettings(pipeline=str(tmp_path)))
