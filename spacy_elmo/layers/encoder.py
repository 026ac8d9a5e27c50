"""Docs to the layers of the biLM."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, cast

import torch
from spacy.tokens import Doc
from thinc.api import Model, Optimizer, get_torch_default_device, torch2xp, xp2torch
from thinc.types import Floats3d, FloatsXd
from torch import Tensor

from ..bilm import weights as weights_io
from ..bilm.config import BiLMConfig
from ..bilm.embed import embed_sentences
from ..bilm.frozen import find_problem, freeze, thaw
from ..bilm.model import BiLM
from ..bilm.threads import make_lock
from ..models import find_existing_weights, find_weights
from .cache import EncoderCache
from .forks import use_one_thread_after_fork
from .settings import EncoderSettings, config_error
from .torch_shim import TorchShim
from .windows import READ_AHEAD, Window, doc_windows

InT = list[Doc]
OutT = list[Floats3d]  # for each doc: (nL, nT, nO)

use_one_thread_after_fork()
_reading = make_lock()  # threads that come at the same time read the weights once


def encoder(settings: EncoderSettings) -> Model[InT, OutT]:
    """Run the biLM over docs.

    The weights are read when they are first needed, and never if others are deserialized before: a saved pipeline does
    not depend on the directory that its weights came from.

    settings (EncoderSettings): How to run it.
    RETURNS (Model): The layer. Its shim has the biLM and the cache.
    """
    return Model("elmo_encoder", forward, shims=[BiLMShim(settings)], attrs={"settings": settings})


class BiLMShim(TorchShim):
    """Holds the biLM and the cache of its outputs, and lets Thinc save it and train it with its own learning rate.

    settings (EncoderSettings): How the biLM is run and trained.
    """

    def __init__(self, settings: EncoderSettings) -> None:
        super().__init__(None, serialize_model=_serialize, deserialize_model=partial(_deserialize, settings=settings))
        self.learn_rate_share = settings.learn_rate_share
        self.cache: EncoderCache | None = None  # a biLM that is trained gives other layers after every step
        if settings.frozen:
            self.cache = EncoderCache(settings.cache_mb * 1_000_000, settings.cache_dir)

    @property
    def bilm(self) -> BiLM | None:
        """RETURNS (BiLM | None): The biLM, if its weights were read."""
        return cast("BiLM | None", self._model)

    @bilm.setter
    def bilm(self, bilm: BiLM) -> None:
        if self.cache is not None:
            self.cache.clear()
        self._model = bilm

    def from_bytes(self, bytes_data: bytes) -> "BiLMShim":
        super().from_bytes(bytes_data)  # type: ignore[no-untyped-call]
        self.bilm = self._model
        return self

    def finish_update(self, optimizer: Optimizer) -> None:
        if self.bilm is None:
            return  # spaCy finishes the update of components that were not updated, too
        if optimizer.averages is not None:
            # Thinc's averages start from zeros, which would shrink a pretrained model in its first steps.
            for name, parameter in self.bilm.named_parameters():
                if parameter.grad is not None and (self.id, name) not in optimizer.averages:
                    optimizer.averages[self.id, name] = cast(FloatsXd, torch2xp(parameter.detach().clone()))
        super().finish_update(cast(Optimizer, partial(optimizer, lr_scale=self.learn_rate_share)))


def shim_of(model: Model[InT, OutT]) -> BiLMShim:
    """RETURNS (BiLMShim): The shim of an encoder."""
    return cast(BiLMShim, model.shims[0])


def get_bilm(model: Model[InT, OutT], *, reread: bool = False) -> BiLM:
    """Give the biLM of an encoder, reading its weights if there is none yet.

    model (Model): The encoder.
    reread (bool): Whether to read the weights again if the biLM may have been trained and they still exist.
    RETURNS (BiLM): The biLM.
    """
    shim, settings = shim_of(model), model.attrs["settings"]
    reread = reread and not settings.frozen and find_weights(settings.weights).is_dir()
    if shim.bilm is None or reread:
        with _reading:
            if shim.bilm is None or reread:  # no other thread has read them meanwhile
                shim.bilm = _read(settings)
    return cast(BiLM, shim.bilm)


def _read(settings: EncoderSettings) -> BiLM:
    # Weights that are loaded in inference mode could not be trained later.
    with torch.inference_mode(False), _shown_as_config_error():
        bilm = weights_io.load_stored(find_existing_weights(settings.weights), get_torch_default_device())
    return _prepare(bilm, settings)


def read_bilm_config(settings: EncoderSettings) -> BiLMConfig:
    """RETURNS (BiLMConfig): The sizes of the biLM that the settings name."""
    with _shown_as_config_error():
        return weights_io.load_config(find_existing_weights(settings.weights))


@contextmanager
def _shown_as_config_error() -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise config_error(str(error)) from None


def forward(model: Model[InT, OutT], docs: InT, is_train: bool) -> tuple[OutT, Callable[[OutT], InT]]:
    bilm, settings = get_bilm(model), model.attrs["settings"]
    trains = is_train and not settings.frozen
    # Inference mode saves a tenth of the time of a short sentence.
    with torch.inference_mode(not trains), torch.set_grad_enabled(trains):
        outputs = _encode(settings, bilm, shim_of(model).cache, docs, is_train=is_train)

    def backprop(d_layers: OutT) -> InT:
        pairs = [(y, xp2torch(dy, device=y.device)) for y, dy in zip(outputs, d_layers, strict=True) if y.requires_grad]
        if pairs:
            # The graph is kept: each listener sends its own gradient.
            torch.autograd.backward([y for y, _ in pairs], [dy for _, dy in pairs], retain_graph=True)
        return []

    return [cast(Floats3d, torch2xp(layers_LTW.detach(), ops=model.ops)) for layers_LTW in outputs], backprop


def _encode(
    settings: EncoderSettings, bilm: BiLM, cache: EncoderCache | None, docs: InT, *, is_train: bool
) -> list[Tensor]:
    """Compute layers_LTW for each doc, zero for whitespace."""
    embed = embed_sentences if cache is None else partial(cache.embed_sentences, is_train=is_train)
    layers: list[Tensor | None] = [None] * len(docs)
    # The windows of a long doc run in groups, so that its layers are not in memory twice.
    for group in _group_windows(docs, settings):
        sentences = [tuple(docs[i][position].orth_ for position in window.tokens) for i, window in group]
        results = embed(bilm, sentences, max_batch_items=settings.max_batch_items, initial_state=settings.initial_state)
        pieces: dict[int, list[Tensor]] = {i: [] for i, _ in group}
        positions: dict[int, list[int]] = {i: [] for i, _ in group}
        for (i, window), layers_LTW in zip(group, results, strict=True):
            pieces[i].append(layers_LTW[:, window.keep].to(bilm.device))
            positions[i].extend(window.tokens[window.keep])
        for i in pieces:
            layers[i] = _add_pieces(bilm, layers[i], torch.cat(pieces[i], dim=1), positions[i], len(docs[i]))
    return [_zeros(bilm, len(doc)) if y is None else y for doc, y in zip(docs, layers, strict=True)]


def _group_windows(docs: InT, settings: EncoderSettings) -> Iterator[list[tuple[int, Window]]]:
    """YIELDS (list[tuple]): The windows that run together, each with the index of its doc."""
    group: list[tuple[int, Window]] = []
    n_tokens = 0
    for i, doc in enumerate(docs):
        for window in doc_windows(doc, settings.window, settings.overlap):
            group.append((i, window))
            n_tokens += len(window.tokens)
            if n_tokens >= READ_AHEAD * settings.max_batch_items:
                yield group
                group, n_tokens = [], 0
    if group:
        yield group


def _add_pieces(bilm: BiLM, layers_LTW: Tensor | None, joined: Tensor, positions: list[int], length: int) -> Tensor:
    """Add the vectors of some tokens to the layers of a doc."""
    if layers_LTW is None and len(positions) == length:
        return joined
    layers_LTW = _zeros(bilm, length) if layers_LTW is None else layers_LTW
    return layers_LTW.index_copy_(1, torch.as_tensor(positions).to(joined.device), joined)


def _zeros(bilm: BiLM, length: int) -> Tensor:
    return bilm.any_weight.new_zeros(bilm.config.depth + 1, length, bilm.config.width)


def _serialize(bilm: BiLM | None) -> bytes:
    return b"" if bilm is None else weights_io.to_bytes(bilm)


def _deserialize(_: Any, data: bytes, device: torch.device, *, settings: EncoderSettings) -> BiLM | None:
    return _prepare(weights_io.from_bytes(data, device), settings) if data else None


def _prepare(bilm: BiLM, settings: EncoderSettings) -> BiLM:
    """Prepare a biLM for prediction, or for training."""
    if not settings.frozen:
        return thaw(bilm)
    problem = find_problem(bilm, settings.precision)
    if problem is not None:
        warnings.warn(
            f"precision = '{settings.precision}' is not possible here, because {problem}. The biLM runs in float32.",
            stacklevel=2,
        )
    return freeze(bilm, settings.precision if problem is None else "float32")
