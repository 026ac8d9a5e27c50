"""The tokens of annotated docs: their words, their labels, and their vectors in all layers of a language model.

The vectors are in a temporary file, not in memory: in half precision, 200,000 tokens of the published model have 1.2 GB.

Shape suffixes: L layer, N token, T token of a sentence, W width of a layer.
"""

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import IO, NamedTuple

import numpy
import torch
from spacy.language import Language
from spacy.tokens import Doc, Token
from torch import Tensor

from ..corpora.sentences import doc_sentences
from .vectors import Floats, embed_sentences

CHUNK = 4096  # tokens that are read at once

ReadLabel = Callable[[Token], str | None]


class VectorFile:
    """The vectors of tokens in all layers, in half precision, in an unnamed temporary file that ends with this object.

    sentences (Iterable[NDArray]): layers_LTW for each sentence.
    """

    def __init__(self, sentences: Iterable[Floats]) -> None:
        shape = (0, 0)
        with tempfile.TemporaryFile(buffering=0) as file:
            for layers_LTW in sentences:
                rows_TLW = numpy.ascontiguousarray(layers_LTW.swapaxes(0, 1), dtype="float16")
                _write(file, rows_TLW)
                shape = rows_TLW.shape[1:]
            self._rows_NLW: Floats = numpy.empty((0, *shape), dtype="float16")
            if file.tell():  # an empty file cannot be mapped
                self._rows_NLW = numpy.memmap(file, dtype="float16", mode="r").reshape(-1, *shape)

    def __len__(self) -> int:
        return len(self._rows_NLW)

    def read(self, rows: slice | Tensor) -> Tensor:
        """Read the vectors of some tokens.

        rows (slice | Tensor): Which tokens.
        RETURNS (Tensor): layers_LNW, in float32.
        """
        chosen = rows if isinstance(rows, slice) else rows.numpy()
        return torch.from_numpy(numpy.ascontiguousarray(self._rows_NLW[chosen].swapaxes(0, 1), dtype="float32"))

    def read_all(self) -> Iterator[Tensor]:
        """YIELDS (Tensor): layers_LNW of the tokens, some thousands at a time."""
        for start in range(0, len(self), CHUNK):
            yield self.read(slice(start, start + CHUNK))


def _write(file: IO[bytes], rows_TLW: Floats) -> None:
    try:
        rest = rows_TLW.data.cast("B")
        while rest:
            rest = rest[file.write(rest) :]
    except OSError as error:
        raise OSError(
            f"The vectors could not be written to {tempfile.gettempdir()}: {error}. If the disk is full, set TMPDIR to a directory "
            "on another one."
        ) from error


class LabelledTokens(NamedTuple):
    """The labelled tokens of a corpus.

    words (list[str]): Their texts.
    labels (list[str]): The label of each.
    vectors (VectorFile): Their vectors.
    """

    words: list[str]
    labels: list[str]
    vectors: VectorFile


def label_reader(attribute: str) -> ReadLabel:
    """Make a function that reads the label of a token.

    attribute (str): An attribute of a token, such as "tag", "pos", "dep", "ent_type", "morph" or "_.name".
    RETURNS (ReadLabel): A function of a token. It gives None if the token is not annotated.
    """
    # No entity and no morphological features are annotations as well.
    if attribute.rstrip("_") == "ent_type":
        return lambda token: token.ent_type_ if token.ent_iob else None
    if attribute == "morph":
        return lambda token: str(token.morph) if token.has_morph() else None
    name = f"{attribute}_" if hasattr(Token, f"{attribute}_") else attribute
    is_custom = name.startswith("_.") and Token.has_extension(name.removeprefix("_."))
    if not is_custom and not hasattr(Token, name):
        raise ValueError(f"Tokens have no attribute {attribute!r}. Probe for example tag, pos, dep, ent_type or morph.")
    get = attrgetter(name)

    def read_label(token: Token) -> str | None:
        value = get(token)
        if not isinstance(value, str | int | None):  # a bool is an int
            raise ValueError(
                f"The attribute {attribute!r} of a token is no label but a {type(value).__name__}. Probe for example tag, pos, dep, "
                "ent_type or morph."
            )
        return None if value is None or value == "" else str(value)

    return read_label


def embed_tokens(nlp: Language, docs: Iterable[Doc], attribute: str, *, source: str) -> LabelledTokens:
    """Run a pipeline on the words of annotated docs, one sentence at a time.

    nlp (Language): The pipeline, with an `elmo` component that keeps its layers.
    docs (Iterable[Doc]): The annotated docs. Whitespace tokens, and tokens without a label, are left out.
    attribute (str): The attribute of a token that is its label.
    source (str): What the docs are called in messages.
    RETURNS (LabelledTokens): The tokens.
    """
    read_label = label_reader(attribute)
    words: list[str] = []
    labels: list[str] = []
    n_tokens = 0

    def read_sentences() -> Iterator[tuple[list[str], list[int]]]:
        """Collect words and labels on the way; what belongs to a sentence are the positions of its labelled tokens."""
        nonlocal n_tokens
        for doc in docs:
            for sentence in doc_sentences(doc):
                n_tokens += len(sentence)
                found = [(i, label) for i, token in enumerate(sentence) if (label := read_label(token)) is not None]
                words.extend(sentence[i].text for i, _ in found)
                labels.extend(label for _, label in found)
                if found:
                    yield [token.text for token in sentence], [i for i, _ in found]

    layers = embed_sentences(nlp, read_sentences())
    vectors = VectorFile(layers_LTW[:, positions] for layers_LTW, positions in layers)
    if not n_tokens:
        raise ValueError(f"{source} has no tokens.")
    if not words:
        raise ValueError(
            f"None of the {n_tokens:,} tokens of {source} has the attribute {attribute!r}. Was it annotated, and with this "
            "attribute?"
        )
    return LabelledTokens(words, labels, vectors)


def label_ids(labels: Sequence[str], known: dict[str, int]) -> Tensor:
    """RETURNS (Tensor): labels_N, the id of each label, and -1 for those that are not known."""
    return torch.tensor([known.get(label, -1) for label in labels])
