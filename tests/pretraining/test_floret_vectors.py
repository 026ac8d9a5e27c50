"""Static vectors of a corpus."""

import sys
from pathlib import Path
from typing import Any

import numpy
import pytest
import spacy

from spacy_elmo.pretraining import floret_vectors
from spacy_elmo.pretraining.floret_vectors import PIPELINE_FILES, train_floret_vectors
from spacy_elmo.pretraining.prepare import prepare_corpus

SAMPLE = Path(__file__).parents[2] / "assets" / "sample" / "train.txt"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("corpus") / "corpus.txt"
    lines = SAMPLE.read_text(encoding="utf8").splitlines()[:400]
    path.write_text("\n".join(lines) + "\n", encoding="utf8")
    return path


def train(corpus: Path, output: Path, **settings: object) -> int:
    return train_floret_vectors(corpus, output, lang="en", width=8, rows=500, min_count=2, **settings)


def test_every_word_has_a_vector_and_a_second_training_gives_the_same(corpus: Path, tmp_path: Path) -> None:
    n_words = train(corpus, tmp_path / "first")
    assert n_words > 1000
    nlp = spacy.load(tmp_path / "first")
    assert nlp.lang == "en"
    assert nlp.vocab.vectors.mode == "floret"
    assert nlp.vocab.vectors.shape == (500, 8)
    assert nlp.vocab["xyzzyness"].vector_norm > 0
    assert train(corpus, tmp_path / "second") == n_words
    assert numpy.array_equal(nlp.vocab.vectors.data, spacy.load(tmp_path / "second").vocab.vectors.data)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["first", "second"]  # no drafts


def test_the_text_matters_and_tokenized_text_is_not_tokenized_again(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("we don't know what they don't say\n" * 50, encoding="utf8")
    assert train(tmp_path / "a.txt", tmp_path / "raw") == 450
    assert train(tmp_path / "a.txt", tmp_path / "tokenized", is_tokenized=True) == 350
    raw, tokenized = (spacy.load(tmp_path / name).vocab.vectors.data for name in ("raw", "tokenized"))
    assert not numpy.allclose(raw, tokenized)


def test_vectors_are_replaced_but_nothing_else(corpus: Path, tmp_path: Path) -> None:
    train(corpus, tmp_path / "vectors")
    train(corpus, tmp_path / "vectors", epochs=1)
    (tmp_path / "vectors" / "thesis.txt").write_text("mine", encoding="utf8")
    with pytest.raises(ValueError, match=r"thesis\.txt"):
        train(corpus, tmp_path / "vectors")


def test_a_killed_training_leaves_nothing_but_a_draft(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside: list[str] = []

    def look(*arguments: Any, **settings: Any) -> Any:
        beside.extend(path.name for path in tmp_path.iterdir())
        return prepare_corpus(*arguments, **settings)

    monkeypatch.setattr(floret_vectors, "prepare_corpus", look)
    train(corpus, tmp_path / "vectors")
    assert len(beside) == 1
    assert beside[0].startswith(".vectors-")  # the next writer removes it
    assert {path.name for path in (tmp_path / "vectors").iterdir()} == PIPELINE_FILES


def test_too_little_text(tmp_path: Path) -> None:
    (tmp_path / "corpus.txt").write_text("Ada wrote it.\n", encoding="utf8")
    message = r"floret found too little text in .*corpus\.txt: .* It has 4 words, and each must occur at least 2 times"
    with pytest.raises(ValueError, match=message):
        train(tmp_path / "corpus.txt", tmp_path / "vectors")
    assert not (tmp_path / "vectors").exists()


def test_vectors_inside_of_their_corpus(tmp_path: Path) -> None:
    (tmp_path / "corpus.txt").write_text("Ada wrote it.\n" * 20, encoding="utf8")
    with pytest.raises(ValueError, match=r"/vectors is inside of the corpus .* Choose another directory\.$"):
        train(tmp_path, tmp_path / "vectors")
    assert [path.name for path in tmp_path.iterdir()] == ["corpus.txt"]


def test_floret_is_not_installed(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "floret", None)
    with pytest.raises(ImportError, match=r"need floret.*pip install 'spacy-elmo\[vectors\]'"):
        train(corpus, tmp_path / "vectors")
