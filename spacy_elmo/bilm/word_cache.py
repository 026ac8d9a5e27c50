"""A cache of the vectors of word types."""

import threading
from collections.abc import Sequence

import torch
from torch import Tensor

from .characters import Word
from .model import BiLM


class WordCache:
    """Caches the vectors of word types, which do not depend on context.

    A cache is valid for one model, as long as its weights do not change, and has no gradients. A full cache is emptied:
    the frequent words, which matter most, are back after a few sentences.

    capacity (int): The maximum number of word types.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._row_by_word: dict[Word, int] = {}
        self._vectors_UP = torch.empty(0)
        self._lock = threading.Lock()

    def encode_words(self, bilm: BiLM, words: Sequence[Word]) -> Tensor:
        """Encode words. Only those that are not in the cache go through the char CNN.

        bilm (BiLM): The model.
        words (Sequence[Word]): The words, without repetitions.
        RETURNS (Tensor): vectors_UP.
        """
        with self._lock:
            if not len(self._vectors_UP):
                self._vectors_UP = bilm.any_weight.new_empty(self._capacity, bilm.config.projection)
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
