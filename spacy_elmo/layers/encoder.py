"""Docs to the layers of the biLM."""

import os
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, cast
from weakref import WeakKeyDictionary

import torch
from spacy.tokens import Doc
from thinc.api import Model, PyTorchShim, get_torch_default_device, torch2xp, xp2torch
from thinc.types import Floats3d
from torch import Tensor

from ..bilm import weights as weights_io
from ..bilm.embed import WordCache, embed_sentences
from ..bilm.model import BiLM, InitialState
from ..models import UNTRAINED, UNTRAINED_WARNING, find_weights
from .windows import Window, check_window, doc_windows

InT = list[Doc]
OutT = list[Floats3d]  # for each doc: (nL, nT, nO)

# 40 MB at the original model's width: most of the words of a text, since few words make up most of it.
CACHED_WORDS = 20_000
_word_caches: WeakKeyDictionary[BiLM, WordCache] = WeakKeyDictionary()

# A forked process inherits torch's thread pool without its threads, and waits for them for ever. This is what
# nlp.pipe(n_process=2) does on Linux; with one thread there is no pool to wait for.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=partial(torch.set_num_threads, 1))


def encoder(
    *,
    weights: str | None,
    frozen: bool,
    initial_state: InitialState,
    max_batch_items: int,
    window: int,
    overlap: int,
) -> Model[InT, OutT]:
    """Run the biLM over docs.

    The weights are read when they are first needed, and never if others are deserialized before: a saved pipeline does
    not depend on the directory that its weights came from.

    weights (str | None): A weights directory, the name of a bundled model, or None for the default.
    frozen (bool): Whether the biLM stays as it is in training.
    initial_state (str): What each sentence starts from: "stored" or "zero".
    max_batch_items (int): The most tokens that go through the biLM at once.
    window, overlap (int): The most tokens that are read in one go, and the context on either side of a cut.
    RETURNS (Model): The layer; nL and nO are set when the weights are there.
    """
    if max_batch_items < 1:
        raise ValueError(f"max_batch_items must be 1 or more, got {max_batch_items}.")
    check_window(window, overlap)
    shim = PyTorchShim(
        None,
        serialize_model=weights_io.to_bytes,
        deserialize_model=partial(_deserialize, frozen=frozen),
    )
    return Model(
        "elmo_encoder",
        forward,
        init=init,
        dims={"nL": None, "nO": None},
        shims=[shim],
        attrs={
            "weights": weights,
            "frozen": frozen,
            "initial_state": initial_state,
            "max_batch_items": max_batch_items,
            "window": window,
            "overlap": overlap,
        },
    )


def init(model: Model[InT, OutT], X: InT | None = None, Y: OutT | None = None) -> None:
    get_bilm(model)


def get_bilm(model: Model[InT, OutT]) -> BiLM:
    """Give the biLM of an encoder, reading its weights if there is none yet.

    model (Model): The encoder.
    RETURNS (BiLM): The biLM.
    """
    shim = model.shims[0]
    if shim._model is None:
        weights = model.attrs["weights"]
        if weights in (None, UNTRAINED):
            warnings.warn(UNTRAINED_WARNING, stacklevel=2)
        bilm = weights_io.load_weights(find_weights(weights), get_torch_default_device())
        shim._model = bilm.requires_grad_(not model.attrs["frozen"])
    bilm = cast(BiLM, shim._model)
    model.set_dim("nL", bilm.config.depth + 1)
    model.set_dim("nO", bilm.config.width)
    return bilm


def forward(model: Model[InT, OutT], docs: InT, is_train: bool) -> tuple[OutT, Callable[[OutT], InT]]:
    bilm = get_bilm(model)
    with_gradient = is_train and not model.attrs["frozen"]
    with torch.set_grad_enabled(with_gradient):
        outputs = _encode(model, bilm, docs)

    def backprop(d_layers: OutT) -> InT:
        if with_gradient:
            gradients = [xp2torch(d_layers_LTO, device=bilm.device) for d_layers_LTO in d_layers]
            # The graph is kept: each listener sends its own gradient.
            torch.autograd.backward(outputs, gradients, retain_graph=True)
        return []

    return [cast(Floats3d, torch2xp(layers_LTO.detach(), ops=model.ops)) for layers_LTO in outputs], backprop


def _encode(model: Model[InT, OutT], bilm: BiLM, docs: InT) -> list[Tensor]:
    """Compute layers_LTO for each doc, zero for whitespace."""
    attrs = model.attrs
    windows: list[tuple[int, Window]] = []
    for i, doc in enumerate(docs):
        windows.extend((i, window) for window in doc_windows(doc, attrs["window"], attrs["overlap"]))
    results = embed_sentences(
        bilm,
        [[docs[i][position].orth_ for position in window.tokens] for i, window in windows],
        max_batch_items=attrs["max_batch_items"],
        initial_state=attrs["initial_state"],
        encode_words=partial(_word_cache(bilm).encode_words, bilm) if attrs["frozen"] else None,
    )
    pieces: list[list[Tensor]] = [[] for _ in docs]
    positions: list[list[int]] = [[] for _ in docs]
    for (i, window), layers_LTW in zip(windows, results, strict=True):
        pieces[i].append(layers_LTW[:, window.keep])
        positions[i].extend(window.tokens[window.keep])
    shape = (bilm.config.depth + 1, bilm.config.width)
    return [
        _place(doc_pieces, doc_positions, len(doc), bilm.device, shape)
        for doc, doc_pieces, doc_positions in zip(docs, pieces, positions, strict=True)
    ]


def _place(
    pieces: list[Tensor], positions: list[int], length: int, device: torch.device, shape: tuple[int, int]
) -> Tensor:
    """Put a doc's pieces together, each token's vectors at its position."""
    if len(positions) == length and pieces:
        return torch.cat(pieces, dim=1)
    n_layers, width = shape
    layers_LTW = torch.zeros(n_layers, length, width, device=device)
    if pieces:
        layers_LTW = layers_LTW.index_copy(1, torch.as_tensor(positions).to(device), torch.cat(pieces, dim=1))
    return layers_LTW


def _word_cache(bilm: BiLM) -> WordCache:
    # Kept beside the model, not in it: a copied or deserialized model starts without.
    if bilm not in _word_caches:
        _word_caches[bilm] = WordCache(CACHED_WORDS)
    return _word_caches[bilm]


def _deserialize(_: Any, data: bytes, device: torch.device, *, frozen: bool) -> BiLM:
    return weights_io.from_bytes(data, device).requires_grad_(not frozen)
