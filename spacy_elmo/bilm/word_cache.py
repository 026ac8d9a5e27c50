"""The vectors of word types, remembered from batch to batch."""

import threading
from collections.abc import Sequence

import torch
from torch import Tensor

from .characters import Word
from .model import BiLM


class WordCache:
    """Remembers the vectors of word types, which do not depend on context.

    Valid for one model, while its weights stay as they are; no gradients flow through it. When it is full it starts anew: the
    frequent words, which are what it is for, are back after a few sentences.

    capacity (int): The most word types to remember.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._row_by_word: dict[Word, int] = {}
        self._vectors_UP = torch.empty(0)
        self._lock = threading.Lock()

    def encode_words(self, bilm: BiLM, words: Sequence[Word]) -> Tensor:
        """Encode words, reading only the spelling of those that are not remembered.

        bilm (BiLM): The model.
        words (Sequence[Word]): The words, each of them once.
        RETURNS (Tensor): vectors_UP.
        """
        with self._lock:
            if not len(self._vectors_UP):
                self._vectors_UP = bilm.char_cnn.embedding.weight.new_empty(self._capacity, bilm.config.projection)
            new = [word for word in words if word not in self._row_by_word]
            if len(self._row_by_word) + len(new) > self._capacity:
                self._row_by_word.clear()
                new = list(words)
            if len(new) > self._capacity:
                return bilm.encode_words(new)
            if new:
                start = len(self._row_by_word)
                self._vectors_UP[start : start + len(new)] = bilm.encode_words(new).detach()
                self._row_by_word.update(zip(new, range(start, start + len(new)), strict=True))
            rows = torch.as_tensor([self._row_by_word[word] for word in words]).to(bilm.device)
            return self._vectors_UP[rows]
