"""The component `elmo`: one contextual vector per token, for users in `Doc.tensor` and for other components to listen to."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from numpy.typing import NDArray
from spacy.language import Language
from spacy.pipeline.tok2vec import Tok2Vec, Tok2VecListener
from spacy.tokens import Doc
from spacy.training import Example, validate_examples, validate_get_examples
from spacy.vocab import Vocab
from thinc.api import Model, Optimizer
from thinc.types import Floats2d, Floats3d, FloatsXd

from .architectures import build_elmo_v1
from .layers.elmo import ENCODER_NAME
from .layers.listener import (
    ElmoListener,
    Link,
    batch_id,
    drop_batch,
    forward_tok2vec_listener,
    init_tok2vec_listener,
)
from .layers.mix import initialize_mix, mix_width
from .layers.similarity import accept_unsaved_hooks, set_similarity_hooks

if TYPE_CHECKING:
    from .bilm.model import BiLM

Outputs = tuple[list[Floats3d], list[Floats2d]]  # for each doc: its layers, its vectors

# Batches of this many `max_batch_items` are read ahead: sentences of similar length find each other, and memory is bounded
# however long the docs are.
READ_AHEAD = 4

# Whose layers a doc has, among its user data: there may be two `elmo` in a pipeline.
WRITTEN_BY = "elmo_layers_written_by"

if not Doc.has_extension("elmo_layers"):
    Doc.set_extension("elmo_layers", default=None)


# Those of the architecture, but for what only listeners have.
SETTINGS = {name: value for name, value in build_elmo_v1.__kwdefaults__.items() if name not in ("dropout", "l2")}


@Language.factory(
    "elmo",
    assigns=["doc.tensor", "doc._.elmo_layers"],
    default_config={"model": None, "keep_layers": True, **SETTINGS},
)
def make_elmo(
    nlp: Language,
    name: str,
    model: Model[list[Doc], list[Floats2d]] | None,
    weights: str | None,
    layers: str | int | list[float],
    gamma: float,
    layer_norm: bool,
    frozen: bool,
    keep_layers: bool,
    initial_state: Literal["stored", "zero"],
    max_batch_items: int,
    window: int,
    overlap: int,
    cache_mb: int,
    cache_dir: str | None,
    learn_rate_share: float,
) -> "Elmo":
    """Make an `elmo` component. The settings but for `keep_layers` are those of `spacy_elmo.Elmo.v1`.

    model (Model | None): A model of that architecture instead of one made from the settings.
    keep_layers (bool): Whether all layers are kept in `doc._.elmo_layers`, and not only while a listener needs them.
    RETURNS (Elmo): The component.
    """
    if model is None:
        model = build_elmo_v1(
            weights=weights,
            layers=layers,
            gamma=gamma,
            layer_norm=layer_norm,
            frozen=frozen,
            initial_state=initial_state,
            max_batch_items=max_batch_items,
            window=window,
            overlap=overlap,
            cache_mb=cache_mb,
            cache_dir=cache_dir,
            learn_rate_share=learn_rate_share,
        )
    return Elmo(nlp.vocab, model, name, keep_layers=keep_layers)


class Elmo(Tok2Vec):
    """Runs a biLM once for each sentence, writes its mixed layers to `Doc.tensor`, and feeds all who listen.

    A tok2vec in what spaCy does with one: listeners, freezing, sourcing, `replace_listeners`, packaging.
    """

    def __init__(
        self, vocab: Vocab, model: Model[list[Doc], list[Floats2d]], name: str = "elmo", *, keep_layers: bool = True
    ) -> None:
        """Initialize the component. Weights are read when they are first needed.

        vocab (Vocab): The shared vocabulary.
        model (Model): Docs to vectors, as `spacy_elmo.Elmo.v1` builds it.
        name (str): The component's name.
        keep_layers (bool): Whether all layers are kept in `doc._.elmo_layers`.
        """
        if not model.layers or model.layers[0].name != ENCODER_NAME:
            raise ValueError(f"The model of '{name}' must be built by spacy_elmo.Elmo.v1, got {model.name!r}.")
        super().__init__(vocab, model, name)
        self.keep_layers = keep_layers
        self.encoder, self.mix = model.layers
        accept_unsaved_hooks()

    def load(self) -> "BiLM":
        """Read the weights now, if that has not happened. Everything that needs them calls this by itself.

        RETURNS (BiLM): The language model.
        """
        from .layers.encoder import get_bilm

        bilm = get_bilm(self.encoder)
        initialize_mix(self.mix, bilm.config.depth + 1, only_if_new=True)
        return bilm

    def predict(self, docs: Iterable[Doc]) -> Outputs:
        """Apply the biLM and the mix to docs, without modifying them.

        docs (Iterable[Doc]): The docs, of which any may be empty.
        RETURNS (tuple): For each doc its layers_LTW, and for each doc its vectors_TW.
        """
        self.load()
        layers = self.encoder.predict(list(docs))
        return layers, self.mix.predict(layers)

    def set_annotations(self, docs: Sequence[Doc], outputs: Outputs) -> None:
        """Put vectors on docs, as NumPy arrays whatever the device.

        docs (Sequence[Doc]): The docs.
        outputs (tuple): What `predict` returned for them.
        """
        keep_layers = self.keep_layers or self.listeners
        for doc, layers_LTW, vectors_TW in zip(docs, *outputs, strict=True):
            doc.tensor = self._to_numpy(vectors_TW)
            # spaCy remembers the mean of the vectors that were there.
            doc._vector = doc._vector_norm = None  # type: ignore[attr-defined]
            self._set_layers(doc, layers_LTW if keep_layers else None)
            set_similarity_hooks(doc)

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Apply the component to a stream of docs.

        stream (Iterable[Doc]): The docs.
        batch_size (int): The most docs to read ahead; fewer if they are long.
        YIELDS (Doc): The docs, in order.
        """
        error_handler = self.get_error_handler()
        for docs in _batch_docs(stream, batch_size, READ_AHEAD * self.encoder.attrs["settings"].max_batch_items):
            try:
                self.set_annotations(docs, self.predict(docs))
                yield from docs
            except Exception as error:
                error_handler(self.name, self, docs, error)

    def update(
        self,
        examples: Iterable[Example],
        *,
        drop: float = 0.0,
        sgd: Optimizer | None = None,
        losses: dict[str, float] | None = None,
    ) -> dict[str, float]:
        """Run the biLM once, and hand its output to all listeners, whose gradients train the mix.

        examples (Iterable[Example]): A batch of examples.
        drop (float): Not used: a pretrained biLM runs without dropout, and listeners have a rate of their own.
        sgd (Optimizer | None): Applied when all listeners have sent their gradients.
        losses (dict | None): Gets the squared size of the gradients under the component's name.
        RETURNS (dict): The losses.
        """
        losses = {} if losses is None else losses
        losses.setdefault(self.name, 0.0)
        examples = list(examples)
        validate_examples(examples, "Elmo.update")
        if not self.listeners:
            return losses
        for listener in self.listeners:
            drop_batch(listener)  # which it still has if its component is not trained
        self.load()
        docs = [example.predicted for example in examples]
        layers, backprop_layers = self.encoder.begin_update(docs)
        vectors, backprop_mix = self.mix.begin_update(layers)
        waiting = len(self.listeners)

        def receive_layers(d_layers: list[Floats3d]) -> None:
            nonlocal waiting
            backprop_layers(d_layers)
            losses[self.name] += sum(float(self.model.ops.xp.square(gradient).sum()) for gradient in d_layers)
            waiting -= 1
            if waiting == 0 and sgd is not None:
                self.finish_update(sgd)

        def receive_vectors(d_vectors: list[Floats2d]) -> list[Doc]:
            receive_layers(backprop_mix(d_vectors))
            return []

        this_batch = batch_id(docs)
        for listener in self.listeners:
            if isinstance(listener, ElmoListener):
                listener.receive(this_batch, layers, receive_layers)
            else:
                listener.receive(this_batch, vectors, receive_vectors)
        return losses

    def initialize(self, get_examples: Callable[[], Iterable[Example]], *, nlp: Language | None = None) -> None:
        """Get ready for training: read the weights, and start from the mean of the layers.

        get_examples (Callable): Returns examples; checked, but not used.
        nlp (Language | None): The pipeline.
        """
        validate_get_examples(get_examples, "Elmo.initialize")
        self.model.initialize()
        if nlp is None or self.name not in nlp.pipe_names:
            return
        later = [nlp.get_pipe(name) for name in nlp.pipe_names[nlp.pipe_names.index(self.name) + 1 :]]
        for component in later:
            self.find_listeners(component)  # those of "*", now that the width is known
        for name, other in nlp.pipeline:
            if isinstance(other, Tok2Vec) and other is not self:
                self._check_shared_listeners(name, other)
        heard = {listener for _, other in nlp.pipeline for listener in getattr(other, "listeners", [])}
        for component in later:
            model = getattr(component, "model", None)
            for node in model.walk() if isinstance(model, Model) else []:
                if isinstance(node, Tok2VecListener) and node.upstream_name == "*" and node not in heard:
                    self.check_listener(node)  # which nobody feeds: it has another width

    def add_listener(self, listener: Tok2VecListener, component_name: str) -> None:
        """Connect a listener.

        listener (Tok2VecListener): The listener. A stock one whose upstream is "*" is connected only if its width fits: "*"
            may mean another component, and is not worth reading weights for.
        component_name (str): The component that it belongs to.
        """
        if isinstance(listener, ElmoListener):
            listener.link = Link(self)
        elif listener.upstream_name == "*" and listener.maybe_get_dim("nO") != self._loaded_width():
            return
        else:
            listener.replace_callbacks(
                partial(forward_tok2vec_listener, link=Link(self)), init=partial(init_tok2vec_listener, link=Link(self))
            )
        super().add_listener(listener, component_name)

    def remove_listener(self, listener: Tok2VecListener, component_name: str) -> bool:
        """Disconnect a listener.

        listener (Tok2VecListener): The listener.
        component_name (str): The component that it belongs to.
        RETURNS (bool): Whether it was connected.
        """
        listeners = self.listener_map.pop(component_name, [])
        # A new list: `Language.replace_listeners` goes through the old one while it removes them, and would skip some.
        rest = [other for other in listeners if other is not listener]
        if rest:
            self.listener_map[component_name] = rest
        return len(rest) < len(listeners)

    def initialize_listener(self, listener: ElmoListener) -> None:
        """Give a listener the width of the biLM, and a mix of as many layers.

        listener (ElmoListener): The listener.
        """
        config = self.load().config
        initialize_mix(listener.layers[0], config.depth + 1)
        self.check_listener(listener)
        listener.set_dim("nO", mix_width(listener.layers[0], config.depth + 1, config.width))

    def check_listener(self, listener: Tok2VecListener) -> None:
        """Refuse a listener of another width, or one that mixes another number of layers.

        listener (Tok2VecListener): The listener.
        """
        config = self.load().config
        n_layers = config.depth + 1
        mix = listener.layers[0] if isinstance(listener, ElmoListener) else self.mix
        width = mix_width(mix, n_layers, config.width)
        expected = listener.maybe_get_dim("nO")
        n_mixed = next((len(node.get_param("w")) for node in listener.walk() if node.has_param("w")), n_layers)
        if expected not in (None, width) or n_mixed != n_layers:
            raise ValueError(
                f"A listener of '{self.name}' expects {n_mixed} layers and vectors of width {expected}, but the weights of "
                f"'{self.name}' have {n_layers} layers, for vectors of width {width}. If the listener is a "
                f"spacy.Tok2VecListener.v1, set its width to {width}; if it was trained before, use the weights "
                f"that it was trained with."
            )

    def provide_layers(self, docs: list[Doc], *, is_train: bool) -> list[Floats3d]:
        """Give a listener the layers of docs, computing those that are missing or another component's.

        They are left on the docs for the next listener, but Doc.tensor is not: it may be another tok2vec's.

        docs (list[Doc]): The docs.
        is_train (bool): Whether the listener is being trained, which is when outputs are worth remembering.
        RETURNS (list[Floats3d]): For each doc its layers_LTW.
        """
        missing = [
            doc
            for doc in docs
            if doc.user_data.get(WRITTEN_BY) != self.name
            or doc._.elmo_layers is None
            or doc._.elmo_layers.shape[1] != len(doc)
        ]
        # Even if there are none: what the encoder remembers depends on whether training goes on. A biLM that is not frozen
        # learns in `update`, and nowhere else.
        layers, _ = self.encoder(missing, is_train=is_train and self.encoder.attrs["settings"].frozen)
        for doc, layers_LTW in zip(missing, layers, strict=True):
            self._set_layers(doc, layers_LTW)
        return [self.model.ops.asarray3f(doc._.elmo_layers) for doc in docs]

    def provide_vectors(self, docs: list[Doc], *, is_train: bool) -> list[Floats2d]:
        """Give a listener the vectors of docs. They are mixed anew, since any tok2vec may have written to Doc.tensor.

        docs (list[Doc]): The docs.
        is_train (bool): Whether the listener is being trained.
        RETURNS (list[Floats2d]): For each doc its vectors_TW.
        """
        self.load()
        vectors: list[Floats2d] = self.mix.predict(self.provide_layers(docs, is_train=is_train))
        return vectors

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """Serialize the component, weights and all.

        exclude (Iterable[str]): Fields to leave out.
        RETURNS (bytes): The component.
        """
        self.load()
        data: bytes = super().to_bytes(exclude=exclude)
        return data

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Write the component, weights and all.

        path (str | Path): The directory.
        exclude (Iterable[str]): Fields to leave out.
        """
        self.load()
        super().to_disk(path, exclude=exclude)

    def _set_layers(self, doc: Doc, layers_LTW: Floats3d | None) -> None:
        doc._.elmo_layers = None if layers_LTW is None else self._to_numpy(layers_LTW)
        doc.user_data[WRITTEN_BY] = self.name

    def _to_numpy(self, array: FloatsXd) -> NDArray[Any]:
        to_numpy: Callable[[FloatsXd], NDArray[Any]] = self.model.ops.to_numpy
        return to_numpy(array)

    def _check_shared_listeners(self, name: str, other: Tok2Vec) -> None:
        """Refuse listeners that another component feeds as well: it would learn nothing from them."""
        shared = {
            component: both
            for component, listeners in self.listener_map.items()
            if (both := set(listeners) & set(other.listeners))
        }
        if shared:
            is_own = any(isinstance(listener, ElmoListener) for both in shared.values() for listener in both)
            raise ValueError(
                f"Listeners with upstream = '*' in {list(shared)} listen to both '{self.name}' and '{name}', and would hear "
                f'one alone. Name the one that each should listen to, such as upstream = "{self.name if is_own else name}".'
            )

    def _loaded_width(self) -> int | None:
        bilm = self.encoder.shims[0]._model
        return mix_width(self.mix, bilm.config.depth + 1, bilm.config.width) if bilm is not None else None


def _batch_docs(stream: Iterable[Doc], max_docs: int, max_tokens: int) -> Iterator[list[Doc]]:
    """Group docs, in order, into batches of at most `max_docs`, and of about `max_tokens` where docs are long."""
    batch: list[Doc] = []
    n_tokens = 0
    for doc in stream:
        batch.append(doc)
        n_tokens += len(doc)
        if len(batch) >= max_docs or n_tokens >= max_tokens:
            yield batch
            batch, n_tokens = [], 0
    if batch:
        yield batch
