"""All layers of the biLM on a doc: `doc._.elmo_layers`."""

from typing import Any, NamedTuple

import numpy
from numpy.typing import NDArray
from spacy.tokens import Doc

# Where spaCy itself would keep an extension without a getter; there they are serialized with the doc.
KEY: Any = ("._.", "elmo_layers", None, None)


class DocLayers(NamedTuple):
    """The layers of a doc, and the tokens that they belong to.

    layers_LTW (NDArray): The layers.
    written_by (str): The name of the component that computed them: a pipeline may have two `elmo`.
    starts_T (NDArray): The first character of each token.
    n_chars (int): The characters of the doc: docs that are made from a part of it have fewer.
    """

    layers_LTW: NDArray[Any]
    written_by: str
    starts_T: NDArray[Any]
    n_chars: int


def add_extension() -> None:
    """Register `doc._.elmo_layers`, which is None for docs without layers."""
    Doc.set_extension("elmo_layers", getter=get_layers, setter=_set_value, force=True)


def set_layers(doc: Doc, layers_LTW: NDArray[Any] | None, written_by: str) -> None:
    """Put layers on a doc, or remove them.

    doc (Doc): The doc.
    layers_LTW (NDArray | None): The layers, or None.
    written_by (str): The name of the component that computed them.
    """
    value = None
    if layers_LTW is not None:
        value = DocLayers(layers_LTW, written_by, doc.to_array("IDX"), count_characters(doc))._asdict()
    _set_value(doc, value)


def computed_layers(doc: Doc, written_by: str) -> NDArray[Any] | None:
    """RETURNS (NDArray | None): The layers that a component has computed for just the tokens of a doc."""
    found = _find(doc)
    if found is None or found.written_by != written_by or not _has_same_tokens(doc, found):
        return None
    return found.layers_LTW


def get_layers(doc: Doc) -> NDArray[Any] | None:
    """Give the layers of a doc.

    doc (Doc): The doc. Where its tokens were merged since the layers were computed, the last of them stands for all, as in
        Doc.tensor; where one was split, its parts have its layers.
    RETURNS (NDArray | None): layers_LTW, or None if there are none of this text.
    """
    value = doc.user_data.get(KEY)
    if isinstance(value, numpy.ndarray):  # as 0.1.0 serialized it, or a user has set it
        return value
    found = _find(doc)
    if found is None or _has_same_tokens(doc, found):
        return None if found is None else found.layers_LTW
    ends_T = [token.idx + len(token) for token in doc]
    layers_LTW: NDArray[Any] = found.layers_LTW[:, numpy.searchsorted(found.starts_T, ends_T, side="left") - 1]
    return layers_LTW


def _find(doc: Doc) -> DocLayers | None:
    value = doc.user_data.get(KEY)
    found = DocLayers(**value) if isinstance(value, dict) else None
    # A doc that was made from a part of another one has a copy of its data.
    return found if found is not None and found.n_chars == count_characters(doc) else None


def _has_same_tokens(doc: Doc, found: DocLayers) -> bool:
    return bool(numpy.array_equal(found.starts_T, doc.to_array("IDX")))


def count_characters(doc: Doc) -> int:
    """RETURNS (int): The characters of a doc, its last space left out. Merging and splitting tokens does not change them."""
    return doc[-1].idx + len(doc[-1]) if len(doc) else 0


def _set_value(doc: Doc, value: Any) -> None:
    if value is None:
        doc.user_data.pop(KEY, None)
    else:
        doc.user_data[KEY] = value
