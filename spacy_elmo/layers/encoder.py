"""Docs to the layers of the biLM."""

import gc
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, cast
from weakref import WeakKeyDictionary

import torch
from spacy.tokens import Doc
from thinc.api import Model, Optimizer, get_torch_default_device, torch2xp, xp2torch
from thinc.types import Floats3d, FloatsXd
from torch import Tensor

from ..bilm import weights as weights_io
from ..bilm.embed import embed_sentences
from ..bilm.model import BiLM, InitialState
from ..bilm.word_cache import WordCache
from ..models import find_weights
from .elmo import ENCODER_NAME
from .forks import survive_forks
from .memory import SentenceMemory
from .torch_shim import TorchShim
from .windows import check_window, doc_windows

InT = list[Doc]
OutT = list[Floats3d]  # for each doc: (nL, nT, nO)

# 40 MB at the original model's width: most of the words of a text, since few words make up most of it.
CACHED_WORDS = 20_000
# Both are kept beside the model, not in it: a copied or deserialized model starts without.
_word_caches: WeakKeyDictionary[BiLM, WordCache] = WeakKeyDictionary()
_memories: WeakKeyDictionary[BiLM, SentenceMemory] = WeakKeyDictionary()
survive_forks(_word_caches.clear, _memories.clear)


@dataclass(frozen=True, kw_only=True)
class EncoderSettings:
    """How an encoder runs its biLM. Not stored with it: a loaded pipeline goes by its config.

    weights (str | None): A weights directory, the name of a bundled model, or None for the default.
    frozen (bool): Whether the biLM stays as it is in training.
    initial_state (str): What each sentence starts from: "stored" or "zero".
    max_batch_items (int): The most tokens that go through the biLM at once.
    window, overlap (int): The most tokens that are read in one go, and the context on either side of a cut.
    cache_mb (int): Megabytes of outputs that are remembered in training while the biLM is frozen.
    cache_dir (str | None): Where outputs are remembered that do not fit.
    learn_rate_share (float): The share of the optimizer's learning rate that the biLM is trained with if it is not frozen.
    """

    weights: str | None
    frozen: bool
    initial_state: InitialState
    max_batch_items: int
    window: int
    overlap: int
    cache_mb: int
    cache_dir: str | None
    learn_rate_share: float

    def __post_init__(self) -> None:
        if self.max_batch_items < 1:
            raise ValueError(f"max_batch_items must be 1 or more, got {self.max_batch_items}.")
        if self.cache_mb < 0:
            raise ValueError(f"cache_mb must be 0 or more, got {self.cache_mb}.")
        if not self.learn_rate_share > 0:
            raise ValueError(
                f"learn_rate_share must be above 0, got {self.learn_rate_share}. To keep the biLM as it is, set frozen = true."
            )
        check_window(self.window, self.overlap)


def encoder(settings: EncoderSettings) -> Model[InT, OutT]:
    """Run the biLM over docs.

    The weights are read when they are first needed, and never if others are deserialized before: a saved pipeline does
    not depend on the directory that its weights came from.

    settings (EncoderSettings): How to run it.
    RETURNS (Model): The layer.
    """
    shim = BiLMShim(
        settings.learn_rate_share,
        None,
        serialize_model=_serialize,
        deserialize_model=partial(_deserialize, frozen=settings.frozen),
    )
    return Model(ENCODER_NAME, forward, shims=[shim], attrs={"settings": settings})


class BiLMShim(TorchShim):
    """Lets Thinc train the biLM at a learning rate of its own.

    learn_rate_share (float): The share of the optimizer's rate. Its schedule, whatever that is, holds for both.
    """

    def __init__(self, learn_rate_share: float, model: BiLM | None, **kwargs: Any) -> None:
        super().__init__(model, **kwargs)
        self.learn_rate_share = learn_rate_share

    def finish_update(self, optimizer: Optimizer) -> None:
        if optimizer.averages is not None:
            # Thinc's averages start from zeros, which would shrink a pretrained model in its first steps.
            for name, parameter in self._model.named_parameters():
                if parameter.grad is not None and (self.id, name) not in optimizer.averages:
                    optimizer.averages[self.id, name] = cast(FloatsXd, torch2xp(parameter.detach().clone()))
        super().finish_update(cast(Optimizer, partial(optimizer, lr_scale=self.learn_rate_share)))


def get_bilm(model: Model[InT, OutT], *, reread: bool = False) -> BiLM:
    """Give the biLM of an encoder, reading its weights if there is none yet.

    model (Model): The encoder.
    reread (bool): Whether a biLM that may have been trained starts again from its weights, where they still are.
    RETURNS (BiLM): The biLM.
    """
    shim, settings = model.shims[0], model.attrs["settings"]
    if shim._model is None or (reread and not settings.frozen and find_weights(settings.weights).is_dir()):
        with torch.inference_mode(False):  # the weights outlive whatever mode this call was made in
            bilm = weights_io.load_weights(find_weights(settings.weights), get_torch_default_device())
        shim._model = bilm.requires_grad_(not settings.frozen)
    return cast(BiLM, shim._model)


def forward(model: Model[InT, OutT], docs: InT, is_train: bool) -> tuple[OutT, Callable[[OutT], InT]]:
    bilm, settings = get_bilm(model), model.attrs["settings"]
    if is_train:
        _start_memory(settings, bilm)
    with torch.inference_mode(False), torch.set_grad_enabled(is_train and not settings.frozen):
        outputs = _encode(settings, bilm, docs, is_train=is_train)

    def backprop(d_layers: OutT) -> InT:
        pairs = [(y, xp2torch(dy, device=y.device)) for y, dy in zip(outputs, d_layers, strict=True) if y.requires_grad]
        if pairs:
            # The graph is kept: each listener sends its own gradient.
            torch.autograd.backward([y for y, _ in pairs], [dy for _, dy in pairs], retain_graph=True)
        return []

    return [cast(Floats3d, torch2xp(layers_LTW.detach(), ops=model.ops)) for layers_LTW in outputs], backprop


def _start_memory(settings: EncoderSettings, bilm: BiLM) -> None:
    """Remember the outputs of a frozen biLM from now on: training reads the same sentences in every epoch."""
    if settings.frozen and (settings.cache_mb or settings.cache_dir) and bilm not in _memories:
        if _memories:
            # A pipeline and its listeners form a cycle of references: one that is no longer used, and its memory, stay until
            # the garbage collector runs, which may be far off.
            gc.collect()
        _memories[bilm] = SentenceMemory(settings.cache_mb * 1_000_000, settings.cache_dir)


def _encode(settings: EncoderSettings, bilm: BiLM, docs: InT, *, is_train: bool) -> list[Tensor]:
    """Compute layers_LTW for each doc, zero for whitespace."""
    windows = [
        (i, window) for i, doc in enumerate(docs) for window in doc_windows(doc, settings.window, settings.overlap)
    ]
    sentences = [tuple(docs[i][position].orth_ for position in window.tokens) for i, window in windows]
    compute = partial(
        embed_sentences,
        bilm,
        max_batch_items=settings.max_batch_items,
        initial_state=settings.initial_state,
        encode_words=partial(_word_cache(bilm).encode_words, bilm) if settings.frozen else None,
    )
    memory = _memories.get(bilm)
    results = compute(sentences) if memory is None else memory.recall(sentences, compute, is_train=is_train)
    pieces: list[list[Tensor]] = [[] for _ in docs]
    positions: list[list[int]] = [[] for _ in docs]
    for (i, window), layers_LTW in zip(windows, results, strict=True):
        pieces[i].append(layers_LTW[:, window.keep].to(bilm.device))
        positions[i].extend(window.tokens[window.keep])
    return [
        _place(bilm, doc_pieces, doc_positions, len(doc))
        for doc, doc_pieces, doc_positions in zip(docs, pieces, positions, strict=True)
    ]


def _place(bilm: BiLM, pieces: list[Tensor], positions: list[int], length: int) -> Tensor:
    """Put a doc's pieces together, each token's vectors at its position."""
    if pieces and len(positions) == length:
        return torch.cat(pieces, dim=1)
    weight = bilm.char_cnn.embedding.weight
    layers_LTW = torch.zeros(
        (bilm.config.depth + 1, length, bilm.config.width), dtype=weight.dtype, device=weight.device
    )
    if pieces:
        layers_LTW = layers_LTW.index_copy(1, torch.as_tensor(positions).to(weight.device), torch.cat(pieces, dim=1))
    return layers_LTW


def _word_cache(bilm: BiLM) -> WordCache:
    if bilm not in _word_caches:
        _word_caches[bilm] = WordCache(CACHED_WORDS)
    return _word_caches[bilm]


def _serialize(bilm: BiLM | None) -> bytes:
    return b"" if bilm is None else weights_io.to_bytes(bilm)


def _deserialize(_: Any, data: bytes, device: torch.device, *, frozen: bool) -> BiLM | None:
    return weights_io.from_bytes(data, device).requires_grad_(not frozen) if data else None
