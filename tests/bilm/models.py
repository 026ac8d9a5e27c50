"""Sentences and models for the tests of the biLM."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from hypothesis import strategies as st
from torch import Tensor

from spacy_elmo.bilm.embed import embed_sentences
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.bilm.state import State
from spacy_elmo.formats import bilm_tf

from .. import reference
from ..helpers import Arrays, write_published

WORDS = ["", "a", " ", "naïve", "日本語", "🦆👩\u200d🚀", "\ud800", "<S>", "</S>", "x" * 60, "ab" * 5_000, "a"]

SENTENCES = [["The", "duck", "sat"], WORDS, [], ["a"], ["a", "duck", "a", "duck"], ["sat"]]

VARIANTS: dict[str, dict[str, Any]] = {
    "small": {},
    "depth 1": {"depth": 1},
    "depth 3": {"depth": 3},
    "tanh": {"activation": "tanh"},
    "no highway": {"highways": 0},
    "two highways": {"highways": 2},
    "no skip connections": {"skip_connections": False},
    "deep, no skip connections": {"skip_connections": False, "depth": 3},
    "no clipping": {"cell_clip": None, "projection_clip": None},
    "only the cells clipped": {"projection_clip": None},
    "only the projection clipped": {"cell_clip": None},
    "no LSTM projection": {"cells": 6},
    "no CNN projection": {"projection": 18},
    "neither projection": {"projection": 18, "cells": 18},
    "short words": {"max_chars": 10},
    "long words": {"max_chars": 50},
    "words as short as the widest filter": {"max_chars": 3},
    "one filter": {"filters": [[2, 5]]},
}

words = st.sampled_from(["a", "b", "the", "duck", "naïve", "日本語", "", " ", "<S>", "x" * 60]) | st.text(max_size=6)

sentences = st.lists(st.lists(words, max_size=6), min_size=1, max_size=6)


def read_arrays(directory: Path, options: dict[str, Any], arrays: Arrays) -> BiLM:
    return bilm_tf.read(write_published(directory, options, arrays))


def layers_of(bilm: BiLM, sentence: Sequence[str]) -> Tensor:
    """Run one sentence alone."""
    with torch.no_grad():
        return embed_sentences(bilm, [sentence], max_batch_items=1)[0]


def random_state(bilm: BiLM, n_sentences: int, seed: int = 0) -> State:
    generator = torch.Generator().manual_seed(seed)
    zero = bilm.start(n_sentences, "zero")
    return State(*(torch.rand(part.shape, generator=generator, dtype=part.dtype) - 0.5 for part in zero))


def memory_of(state: State, sentence: int) -> reference.Memory:
    return reference.Memory(state.hidden[:, :, sentence].numpy(), state.cell[:, :, sentence].numpy())
