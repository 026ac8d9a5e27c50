"""All layers of the biLM on a doc: `doc._.elmo_layers`. A pipeline may have two `elmo`, so each has its slot."""

from typing import Any, NamedTuple

import numpy
from numpy.typing import NDArray
from spacy.tokens import Doc

# Where spaCy itself would keep an extension without a getter; there they are serialized with the doc.
KEY: Any = ("._.", "elmo_layers", None, None)


class DocLayers(NamedTuple):
    """The layers of a doc, and the tokens that they belong to.

    layers_LTW (NDArray): The layers.
    starts_T (NDArray): The first character of each token.
    n_chars (int): The characters of the doc: docs that are made from a part of it have fewer.
    """

    layers_LTW: NDArray[Any]
    starts_T: NDArray[Any]
    n_chars: int


def add_extension() -> None:
    """Register `doc._.elmo_layers`, which is None for docs without layers."""
    Doc.set_extension("elmo_layers", getter=get_layers, setter=_set_value, force=True)


def set_layers(doc: Doc, layers_LTW: NDArray[Any] | None, name: str) -> None:
    """Put the layers of a component on a doc, for `doc._.elmo_layers` to show, or remove them.

    doc (Doc): The doc.
    layers_LTW (NDArray | None): The layers, or None.
    name (str): The name of the component that computed them.
    """
    others = {other: value for other, value in _slots(doc).items() if other != name}
    _set_value(doc, others if layers_LTW is None else {**others, name: _to_dict(doc, layers_LTW)})


def add_layers(doc: Doc, layers_LTW: NDArray[Any], name: str) -> None:
    """Put the layers of a component on a doc for its listeners. `doc._.elmo_layers` shows those of a component that has
    annotated the doc, if there are any.

    doc (Doc): The doc.
    layers_LTW (NDArray): The layers.
    name (str): The name of the component that computed them.
    """
    _set_value(doc, {name: _to_dict(doc, layers_LTW), **{k: v for k, v in _slots(doc).items() if k != name}})


def computed_layers(doc: Doc, name: str) -> NDArray[Any] | None:
    """RETURNS (NDArray | None): The layers that a component has computed for just the tokens of a doc."""
    found = _find(doc, _slots(doc).get(name))
    return found.layers_LTW if found is not None and _has_same_tokens(doc, found) else None


def get_layers(doc: Doc) -> NDArray[Any] | None:
    """Give the layers of a doc.

    doc (Doc): The doc. A token that was merged since the layers were computed gets the layers of its last part, as in Doc.tensor.
        The parts of a token that was split get its layers.
    RETURNS (NDArray | None): layers_LTW, or None if there are none of this text.
    """
    value = doc.user_data.get(KEY)
    if isinstance(value, numpy.ndarray):  # as 0.1.0 serialized it, or a user has set it
        return value
    found = _find(doc, next(reversed(_slots(doc).values()), None))
    if found is None or _has_same_tokens(doc, found):
        return None if found is None else found.layers_LTW
    ends_T = [token.idx + len(token) for token in doc]
    layers_LTW: NDArray[Any] = found.layers_LTW[:, numpy.searchsorted(found.starts_T, ends_T, side="left") - 1]
    return layers_LTW


def _slots(doc: Doc) -> dict[str, dict[str, Any]]:
    """The layers of each component, by its name. The last one is shown."""
    value = doc.user_data.get(KEY)
    return value if isinstance(value, dict) else {}


def _to_dict(doc: Doc, layers_LTW: NDArray[Any]) -> dict[str, Any]:
    return DocLayers(layers_LTW, doc.to_array("IDX"), count_characters(doc))._asdict()


def _find(doc: Doc, value: dict[str, Any] | None) -> DocLayers | None:
    found = None if value is None else DocLayers(**value)
    # A doc that was made from a part of another one has a copy of its data.
    return found if found is not None and found.n_chars == count_characters(doc) else None


def _has_same_tokens(doc: Doc, found: DocLayers) -> bool:
    return bool(numpy.array_equal(found.starts_T, doc.to_array("IDX")))


def count_characters(doc: Doc) -> int:
    """RETURNS (int): The characters of a doc, its last space left out. Merging and splitting tokens does not change them."""
    return doc[-1].idx + len(doc[-1]) if len(doc) else 0


def _set_value(doc: Doc, value: Any) -> None:
    if value is None or (isinstance(value, dict) and not value):
        doc.user_data.pop(KEY, None)
    else:
        doc.user_data[KEY] = value
