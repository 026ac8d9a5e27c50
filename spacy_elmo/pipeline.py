"""The component `elmo`: one contextual vector per token, for users in `Doc.tensor` and for other components to listen to."""

import gc
import inspect
import json
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from numpy.typing import NDArray
from spacy.language import Language
from spacy.pipeline.tok2vec import Tok2Vec, Tok2VecListener
from spacy.tokens import Doc
from spacy.training import Example, validate_examples, validate_get_examples
from spacy.vocab import Vocab
from thinc.api import Model, Optimizer
from thinc.types import Floats2d, Floats3d, FloatsXd

from .files.atomic import draft_file, write_file
from .files.damage import refuse_damaged
from .layers.compatibility import find_mismatch
from .layers.doc_layers import add_extension, add_layers, computed_layers, set_layers
from .layers.elmo import MODEL_NAME, begin_step, check_weights, elmo, load
from .layers.listener import ElmoListener, Link, batch_id, drop_batch, link_stock_listener, unlink
from .layers.mix import fit_mix, mix_sizes, mixer_of, reset_mix
from .layers.settings import ComponentSettings, ElmoSettings, config_error, with_settings_of
from .layers.similarity import add_extensions, ignore_unsaved_hooks_warning, set_similarity_hooks
from .layers.vector_hooks import set_vector_hooks
from .layers.windows import READ_AHEAD
from .layers.wiring import ListenerMap, check_wiring
from .models import choose_model

if TYPE_CHECKING:
    from .bilm.config import BiLMConfig
    from .bilm.model import BiLM

Outputs = tuple[list[Floats3d], list[Floats2d]]  # for each doc: its layers, its vectors

# Settings of the architecture that the factory leaves at their defaults.
FOR_LISTENERS = ("dropout", "l2")

add_extension()
add_extensions()


@Language.factory(
    "elmo",
    assigns=["doc.tensor", "doc._.elmo_layers"],
    default_config={
        "model": None,
        **asdict(ComponentSettings()),
        **{name: value for name, value in asdict(ElmoSettings()).items() if name not in FOR_LISTENERS},
    },
)
@with_settings_of(ComponentSettings, ElmoSettings, without=FOR_LISTENERS)
def make_elmo(nlp: Language, name: str, model: Model[list[Doc], list[Floats2d]] | None, **settings: Any) -> "Elmo":
    """Make an `elmo` component.

    nlp (Language): The pipeline.
    name (str): The component's name.
    model (Model | None): A model of `spacy_elmo.Elmo.v1` instead of one made from the settings.
    settings: Those of `ComponentSettings` and `ElmoSettings`.
    RETURNS (Elmo): The component.
    """
    component_settings = ComponentSettings(
        **{field.name: settings.pop(field.name) for field in fields(ComponentSettings)}
    )
    settings["weights"] = choose_model(settings["weights"], nlp.lang)
    component = Elmo(nlp.vocab, model or elmo(ElmoSettings(**settings)), name, component_settings)
    if not _is_built_from_config():
        config = check_weights(component.encoder.attrs["settings"])
        component.check_compatibility(config, nlp)
    return component


def _is_built_from_config() -> bool:
    """Say whether `Language.from_config` is building the pipeline: then its weights may be deserialized afterwards, and the
    directory that they came from need not exist. spaCy does not tell a factory who called it."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_code is not Language.from_config.__func__.__code__:  # type: ignore[attr-defined]
        frame = frame.f_back
    return frame is not None


class Elmo(Tok2Vec):
    """Runs a biLM once for each sentence, writes its mixed layers to `Doc.tensor`, and feeds all listeners.

    spaCy treats it as a tok2vec: listeners, freezing, sourcing, `replace_listeners`, packaging.
    """

    def __init__(
        self,
        vocab: Vocab,
        model: Model[list[Doc], list[Floats2d]],
        name: str = "elmo",
        settings: ComponentSettings = ComponentSettings(),  # noqa: B008 (it is frozen)
    ) -> None:
        """Initialize the component. Weights are read when they are first needed.

        vocab (Vocab): The shared vocabulary.
        model (Model): Docs to vectors, as `spacy_elmo.Elmo.v1` builds it.
        name (str): The component's name.
        settings (ComponentSettings): What to write to a doc.
        """
        if model.name != MODEL_NAME:
            raise ValueError(f"The model of '{name}' must be built by spacy_elmo.Elmo.v1, got {model.name!r}.")
        self._listener_map = ListenerMap()
        super().__init__(vocab, model, name)
        self.settings = settings
        self.encoder, self.mix = model.layers
        self._has_warned = False
        self._has_warned_of_mismatch = False
        ignore_unsaved_hooks_warning()

    @property
    def listener_map(self) -> dict[str, list[Tok2VecListener]]:
        """RETURNS (dict): The listeners of each component. spaCy sets it to {} and finds them again when it links a pipeline;
        those that are not found again may listen to another component."""
        return self._listener_map

    @listener_map.setter
    def listener_map(self, listeners: dict[str, list[Tok2VecListener]]) -> None:
        for listener in self.listeners:
            unlink(listener)
        self._listener_map = ListenerMap(listeners)

    def load(self) -> "BiLM":
        """Read the weights now, if that has not happened. Everything that needs them calls this.

        RETURNS (BiLM): The language model.
        """
        return load(self.model)

    def predict(self, docs: Iterable[Doc]) -> Outputs:
        """Apply the biLM and the mix to docs, without modifying them.

        docs (Iterable[Doc]): The docs. Any of them may be empty.
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
        keep_layers = self.settings.keep_layers or self.listeners
        for doc, layers_LTW, vectors_TW in zip(docs, *outputs, strict=True):
            doc.tensor = self._to_numpy(vectors_TW)
            # spaCy keeps the mean of the vectors that the doc had before.
            doc._vector = doc._vector_norm = None  # type: ignore[attr-defined]
            set_layers(doc, self._to_numpy(layers_LTW) if keep_layers else None, self.name)
            set_similarity_hooks(doc)
            if self.settings.vector_hooks:
                set_vector_hooks(doc, doc.tensor)

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
        """Run the biLM once, and send its output to all listeners, whose gradients train the mix.

        examples (Iterable[Example]): A batch of examples.
        drop (float): Not used: a pretrained biLM runs without dropout, and listeners have their own rate.
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
            drop_batch(listener)  # left over if its component is not trained
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
        """Prepare for training: read the weights, and start from the mean of the layers.

        get_examples (Callable): Returns examples; checked, but not used.
        nlp (Language | None): The pipeline.
        """
        validate_get_examples(get_examples, "Elmo.initialize")
        # A pipeline that is no longer used, and the gigabyte that its cache may have, can be part of a reference cycle, which
        # Python frees some time later.
        gc.collect()
        self.model.initialize()
        if nlp is not None and self.name in nlp.pipe_names:
            check_wiring(self, nlp)
            self.check_compatibility(self.load().config, nlp)

    def add_listener(self, listener: Tok2VecListener, component_name: str) -> None:
        """Connect a listener.

        listener (Tok2VecListener): The listener. A stock one whose upstream is "*" is connected only if its width fits: "*"
            may mean another component, so no weights are read to find out.
        component_name (str): The component that it belongs to.
        """
        if isinstance(listener, ElmoListener):
            listener.link = Link(self)
        elif listener.upstream_name == "*" and listener.maybe_get_dim("nO") != mixer_of(self.mix).maybe_get_dim("nO"):
            return
        else:
            link_stock_listener(listener, self)
        super().add_listener(listener, component_name)

    def find_listeners(self, component: Any) -> None:
        """Connect the listeners of a component that listen to this one, by its name or by "*".

        component (Any): A component that comes later in the pipeline.
        """
        super().find_listeners(component)
        if isinstance(component, Tok2Vec) and component.name in self.listener_map:
            self._listener_map.irreplaceable.add(component.name)

    def remove_listener(self, listener: Tok2VecListener, component_name: str) -> bool:
        """Disconnect a listener.

        listener (Tok2VecListener): The listener.
        component_name (str): The component that it belongs to.
        RETURNS (bool): Whether it was connected.
        """
        listeners = self._listener_map.pop(component_name, [])
        # A new list: `Language.replace_listeners` iterates over the old one while it removes them, and would skip some.
        rest = [other for other in listeners if other is not listener]
        if rest:
            self._listener_map[component_name] = rest
        if len(rest) < len(listeners):
            unlink(listener)
        return len(rest) < len(listeners)

    def check_compatibility(self, config: "BiLMConfig", nlp: Language) -> None:
        """Warn once if the weights were trained on other text than the pipeline reads.

        config (BiLMConfig): What is stored with the weights.
        nlp (Language): The pipeline.
        """
        mismatch = None if self._has_warned_of_mismatch else find_mismatch(config, nlp, self.name)
        if mismatch is not None:
            self._has_warned_of_mismatch = True
            warnings.warn(mismatch, stacklevel=2)

    def initialize_listener(self, listener: ElmoListener) -> None:
        """Give a listener the width of the biLM, and a mix of as many layers.

        listener (ElmoListener): The listener.
        """
        config = self.load().config
        mix = listener.layers[0]
        reset_mix(mix)
        fit_mix(mix, config.depth + 1, config.width)
        self.check_listener(listener)
        listener.set_dim("nO", mixer_of(mix).get_dim("nO"))

    def check_listener(self, listener: Tok2VecListener) -> None:
        """Refuse a listener of another width, or one that mixes another number of layers.

        listener (Tok2VecListener): The listener. Its mix, if it has one, gets the sizes of the biLM.
        """
        config = self.load().config
        sizes = (config.depth + 1, config.width)
        mix = listener.layers[0] if isinstance(listener, ElmoListener) else self.mix
        mixed = mix_sizes(mix)
        if any(size not in (None, expected) for size, expected in zip(mixed, sizes, strict=True)):
            raise config_error(
                f"A listener of '{self.name}' was trained with {mixed[0]} layers of width {mixed[1]}, but the weights of "
                f"'{self.name}' have {sizes[0]} layers of width {sizes[1]}. Use the weights that it was trained with."
            )
        fit_mix(mix, *sizes)
        width, expected = mixer_of(mix).get_dim("nO"), listener.maybe_get_dim("nO")
        if expected not in (None, width):
            raise config_error(
                f"A listener of '{self.name}' expects vectors of width {expected}, but those of '{self.name}' have a width of "
                f"{width}. If the listener is a spacy.Tok2VecListener.v1, set its width to {width}; if it was trained before, use "
                f"the weights that it was trained with."
            )

    def provide_layers(self, docs: list[Doc], *, is_train: bool) -> list[Floats3d]:
        """Give a listener the layers of docs, computing those that are missing.

        They are left on the docs for the next listener. Doc.tensor is not touched: it may be another tok2vec's.

        Existing layers are used if they have the name of this component, the tokens of the doc and the shape of this biLM. Their
        weights are not compared: a doc of a pipeline with other weights must pass this component before its listeners.

        docs (list[Doc]): The docs.
        is_train (bool): Whether the listener is being trained: then outputs are worth caching.
        RETURNS (list[Floats3d]): For each doc its layers_LTW.
        """
        config = self.load().config
        shape = (config.depth + 1, config.width)
        missing = [
            doc
            for doc in docs
            if (layers_LTW := computed_layers(doc, self.name)) is None or layers_LTW.shape[::2] != shape
        ]
        if not missing and is_train:
            begin_step(self.encoder)
        if missing:
            if not is_train:
                self._warn_of_other_pipeline(missing)
            # A biLM that is not frozen is trained by `update`, and by nothing else.
            layers, _ = self.encoder(missing, is_train=is_train and self.encoder.attrs["settings"].frozen)
            for doc, layers_LTW in zip(missing, layers, strict=True):
                add_layers(doc, self._to_numpy(layers_LTW), self.name)
        return [self.model.ops.asarray3f(cast(Floats3d, computed_layers(doc, self.name))) for doc in docs]

    def provide_vectors(self, docs: list[Doc], *, is_train: bool) -> list[Floats2d]:
        """Give a listener the vectors of docs. They are mixed again, since any tok2vec may have written to Doc.tensor.

        docs (list[Doc]): The docs.
        is_train (bool): Whether the listener is being trained.
        RETURNS (list[Floats2d]): For each doc its vectors_TW.
        """
        vectors: list[Floats2d] = self.mix.predict(self.provide_layers(docs, is_train=is_train))
        return vectors

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """Serialize the component with its weights.

        exclude (Iterable[str]): Fields to leave out.
        RETURNS (bytes): The component.
        """
        self.load()
        data: bytes = super().to_bytes(exclude=exclude)
        return data

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Write the component with its weights. A crash leaves the old weights or the new ones.

        path (str | Path): The directory.
        exclude (Iterable[str]): Fields to leave out.
        """
        self.load()
        super().to_disk(path, exclude=[*exclude, "cfg", "model"])
        if "cfg" not in exclude:
            write_file(Path(path) / "cfg", json.dumps(self.cfg))
        if "model" not in exclude:
            with draft_file(Path(path) / "model") as draft:
                self.model.to_disk(draft)

    def from_bytes(self, bytes_data: bytes, *, exclude: Iterable[str] = ()) -> "Elmo":
        """Read a component, whatever the sizes of its biLM.

        bytes_data (bytes): What `to_bytes` returned.
        exclude (Iterable[str]): Fields to leave out.
        RETURNS (Elmo): The component itself.
        """
        self._reset_sizes(exclude)
        with refuse_damaged("The data", f"a serialized component `{self.name}`"):
            super().from_bytes(bytes_data, exclude=exclude)
        return self

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> "Elmo":
        """Read a component, whatever the sizes of its biLM.

        path (str | Path): The directory.
        exclude (Iterable[str]): Fields to leave out.
        RETURNS (Elmo): The component itself.
        """
        self._reset_sizes(exclude)
        with refuse_damaged(path, f"a saved component `{self.name}`"):
            super().from_disk(path, exclude=exclude)
        return self

    def _reset_sizes(self, exclude: Iterable[str]) -> None:
        if "model" not in exclude:
            reset_mix(self.mix)
            self.model.set_dim("nO", None, force=True)  # type: ignore[arg-type]

    def _warn_of_other_pipeline(self, docs: list[Doc]) -> None:
        """Warn once if docs come from a pipeline that this component is not in."""
        if not self._has_warned and any(doc.vocab is not self.vocab for doc in docs):
            self._has_warned = True
            warnings.warn(
                f"A component listens to the '{self.name}' of another pipeline, as if it was sourced without it. It works "
                f"while that pipeline is in memory, and will fail after it is saved and loaded. Source '{self.name}' with it.",
                stacklevel=2,
            )

    def _to_numpy(self, array: FloatsXd) -> NDArray[Any]:
        to_numpy: Callable[[FloatsXd], NDArray[Any]] = self.model.ops.to_numpy
        return to_numpy(array)


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
