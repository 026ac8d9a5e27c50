"""Listeners: how other components get what `elmo` computed, and send their gradients back."""

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol, cast
from weakref import ref

from spacy.pipeline.tok2vec import Tok2VecListener
from spacy.pipeline.tok2vec import forward as forward_stock
from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d, Floats3d

from .settings import config_error

InT = list[Doc]
OutT = list[Floats2d]  # for each doc: (nT, nO)


class Upstream(Protocol):
    """What a listener asks of the component that it listens to."""

    def initialize_listener(self, listener: "ElmoListener") -> None: ...

    def check_listener(self, listener: Tok2VecListener) -> None: ...

    def provide_layers(self, docs: list[Doc], *, is_train: bool) -> list[Floats3d]: ...

    def provide_vectors(self, docs: list[Doc], *, is_train: bool) -> list[Floats2d]: ...


class Link:
    """A weak reference from a listener to its upstream: a component that was sourced without its `elmo` must not keep using
    that of another pipeline, which would not be saved with it.

    upstream (Upstream): The component.
    """

    def __init__(self, upstream: Upstream) -> None:
        self._upstream: Callable[[], Upstream | None] = ref(upstream)
        self._held: Upstream | None = None

    @property
    def upstream(self) -> Upstream | None:
        """RETURNS (Upstream | None): The component, as long as it exists."""
        return self._upstream()

    def __deepcopy__(self, memo: dict[int, Any]) -> "Link":
        """Copy a link. A copied listener listens to the same component, or to its copy if that is copied along."""
        copied = memo.get(id(self.upstream))
        return self if copied is None else Link(copied)

    def __getstate__(self) -> tuple[Upstream | None]:
        return (self.upstream,)

    def __setstate__(self, state: tuple[Upstream | None]) -> None:
        # In a new process nothing else may hold it: nlp.pipe(n_process=2) sends only the components that are not disabled.
        (self._held,) = state
        self._upstream = (lambda: None) if self._held is None else ref(self._held)


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

    def _copy(self, seen: dict[int, Any] | None = None) -> "ElmoListener":
        """Copy a listener, as part of `Model.copy`, whose copies of all layers are plain models."""
        copied = ElmoListener(self.upstream_name, super()._copy(seen).layers[0])
        copied.link = self.link
        if self.has_dim("nO"):
            copied.set_dim("nO", self.get_dim("nO"))
        return copied


def init(model: ElmoListener, X: InT | None = None, Y: OutT | None = None) -> None:
    _get_upstream(model, model.link).initialize_listener(model)


def forward(model: ElmoListener, docs: InT, is_train: bool) -> tuple[OutT, Callable[[OutT], InT]]:
    upstream = _get_upstream(model, model.link)
    upstream.check_listener(model)
    received = take_batch(model, docs, is_train=is_train)
    if received is None:
        layers, send = upstream.provide_layers(docs, is_train=is_train), None
    else:
        layers, send = received
    vectors, backprop_mix = model.layers[0](layers, is_train)

    def backprop(d_vectors: OutT) -> InT:
        d_layers = backprop_mix(d_vectors)
        if send is not None:
            send(d_layers)
        return []

    return vectors, backprop


def link_stock_listener(listener: Tok2VecListener, upstream: Upstream) -> None:
    """Let a stock `spacy.Tok2VecListener.v1` listen to `elmo`, until `unlink`.

    Its own forward function takes an empty doc for one that was never annotated, and fails if its upstream is frozen and
    does not annotate. The one that it gets here asks the upstream instead.

    listener (Tok2VecListener): The listener.
    upstream (Upstream): The component.
    """
    link = Link(upstream)
    listener.replace_callbacks(
        partial(_forward_stock_listener, link=link), init=partial(_init_stock_listener, link=link)
    )


def unlink(listener: Tok2VecListener) -> None:
    """Disconnect a listener from its `elmo`. A stock one gets spaCy's callbacks back: it can listen to any other tok2vec.

    listener (Tok2VecListener): The listener.
    """
    if isinstance(listener, ElmoListener):
        listener.link = None
    else:
        listener.replace_callbacks(forward_stock)


def _init_stock_listener(model: Tok2VecListener, X: Any = None, Y: Any = None, *, link: Link) -> None:
    """Check before training that the listener fits. If its `elmo` was removed, it is initialized for another upstream."""
    if link.upstream is None:
        unlink(model)
    else:
        link.upstream.check_listener(model)


def _forward_stock_listener(
    model: Tok2VecListener, docs: InT, is_train: bool, *, link: Link
) -> tuple[OutT, Callable[[OutT], Any]]:
    if is_train and model._batch_id is not None and model._batch_id == Tok2VecListener.get_batch_id(docs):
        # The batch was sent by one of spaCy's components, which has taken the place of `elmo`.
        unlink(model)
        return cast(tuple[OutT, Callable[[OutT], Any]], forward_stock(model, docs, is_train))
    if not is_train and model.upstream_name == "*" and _have_other_vectors(model, docs):
        return cast(tuple[OutT, Callable[[OutT], Any]], forward_stock(model, docs, is_train))
    upstream = _get_upstream(model, link)
    upstream.check_listener(model)
    received = take_batch(model, docs, is_train=is_train)
    if received is None:
        return upstream.provide_vectors(docs, is_train=is_train), lambda d_vectors: []
    return received


def _have_other_vectors(model: Tok2VecListener, docs: InT) -> bool:
    """Say whether another tok2vec has annotated docs, and no `elmo`: then "*" means that one."""
    full = [doc for doc in docs if len(doc)]
    return bool(full) and all(
        doc._.elmo_layers is None and doc.tensor.shape[1:] == (model.get_dim("nO"),) for doc in full
    )


def take_batch(listener: Tok2VecListener, docs: InT, *, is_train: bool) -> tuple[Any, Callable[[Any], Any]] | None:
    """Take what the upstream has sent for just these docs; nothing if it is frozen and has sent none.

    A batch can be taken once. One that a component has not taken because it is not trained is dropped when it predicts:
    neither a batch nor its gradients outlive their step.

    listener (Tok2VecListener): The listener.
    docs (list[Doc]): The docs.
    is_train (bool): Whether this is a step of training.
    RETURNS (tuple | None): The outputs, and where to send their gradients.
    """
    if listener._batch_id is None or (is_train and listener._batch_id != batch_id(docs)):
        return None
    received: tuple[Any, Any] = (listener._outputs, listener._backprop)
    drop_batch(listener)
    return received if is_train else None


def drop_batch(listener: Tok2VecListener) -> None:
    """Drop what the upstream has sent, if anything.

    listener (Tok2VecListener): The listener.
    """
    listener.receive(None, None, None)  # type: ignore[arg-type]


def batch_id(docs: InT) -> int:
    """RETURNS (int): A number that tells batches apart by their words and their order. spaCy's ignores the order."""
    return hash(tuple(tuple(token.orth for token in doc) for doc in docs))


def _get_upstream(model: Tok2VecListener, link: Link | None) -> Upstream:
    upstream = link.upstream if link is not None else None
    if upstream is None:
        raise config_error(
            f"A listener has upstream = {model.upstream_name!r}, but no 'elmo' component of that name comes before it in the "
            f"pipeline. Add one (it must come first), or correct the listener's upstream. If the component was sourced, source "
            f"'elmo' with it, or replace its listener with its own biLM (nlp.replace_listeners) before you source it."
        )
    return upstream
