"""Listeners: how other components get at what `elmo` computed, and send their gradients back."""

from collections.abc import Callable
from typing import Any, Protocol

from spacy.pipeline.tok2vec import Tok2VecListener
from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d, Floats3d

InT = list[Doc]
OutT = list[Floats2d]  # for each doc: (nT, nO)


class Upstream(Protocol):
    """What a listener asks of the component that it listens to."""

    name: str

    def provide_layers(self, docs: list[Doc]) -> list[Floats3d]: ...

    def provide_vectors(self, docs: list[Doc]) -> list[Floats2d]: ...


class Link:
    """Holds a listener's upstream. spaCy copies models deeply; a copied listener still listens to the same component.

    upstream (Upstream): The component.
    """

    def __init__(self, upstream: Upstream) -> None:
        self.upstream = upstream

    def __deepcopy__(self, memo: dict[int, Any]) -> "Link":
        return self


class ElmoListener(Tok2VecListener):
    """Receives all layers of the biLM and mixes them in its own way (Peters et al. 2018, section 2.3).

    Its width, and the number of layers, are those of the biLM that it listens to.

    upstream_name (str): The name of the `elmo` component.
    mix (Model): Layers to vectors.
    """

    name = "elmo-listener"

    def __init__(self, upstream_name: str, mix: Model[list[Floats3d], OutT]) -> None:
        Model.__init__(self, name=self.name, forward=forward, init=init, layers=[mix], dims={"nO": None})
        self.upstream_name = upstream_name
        self.link: Link | None = None
        self._batch_id: int | None = None
        self._outputs: Any = None
        self._backprop: Any = None


def init(model: ElmoListener, X: InT | None = None, Y: OutT | None = None) -> None:
    _upstream(model)


def forward(model: ElmoListener, docs: InT, is_train: bool) -> tuple[OutT, Callable[[OutT], InT]]:
    received = is_train and has_received(model, docs)
    layers = model._outputs if received else _upstream(model).provide_layers(docs)
    vectors, backprop_mix = model.layers[0](layers, is_train)

    def backprop(d_vectors: OutT) -> InT:
        d_layers = backprop_mix(d_vectors)
        if received:
            model._backprop(d_layers)
        return []

    return vectors, backprop


def forward_tok2vec_listener(
    link: Link, model: Tok2VecListener, docs: InT, is_train: bool
) -> tuple[OutT, Callable[[OutT], Any]]:
    """What a stock `spacy.Tok2VecListener.v1` does when it listens to `elmo`.

    Its own forward function takes an empty doc for one that was never annotated, and gives up on a frozen upstream that
    does not annotate. Here it asks the upstream instead.

    link (Link): The upstream.
    """
    if is_train and has_received(model, docs):
        received: tuple[Any, Any] = (model._outputs, model._backprop)
        return received
    return link.upstream.provide_vectors(docs), lambda d_vectors: []


def has_received(listener: Tok2VecListener, docs: InT) -> bool:
    """Tell whether the upstream was updated with the same docs, or is frozen and was not."""
    return listener._batch_id is not None and listener._batch_id == listener.get_batch_id(docs)


def _upstream(model: ElmoListener) -> Upstream:
    if model.link is None:
        raise ValueError(
            f"A spacy_elmo.ElmoListener.v1 has upstream = {model.upstream_name!r}, but no 'elmo' component of that name "
            f"comes before it in the pipeline. Add one (it must come first), or correct the listener's upstream."
        )
    return model.link.upstream
