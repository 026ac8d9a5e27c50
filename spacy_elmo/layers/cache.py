"""What a frozen biLM has computed: word types, the mark before a sentence, and in training the layers of sentences."""

import os
from collections.abc import Sequence
from functools import partial
from typing import Any

from torch import Tensor

from ..bilm.config import InitialState
from ..bilm.embed import embed_sentences, read_mark
from ..bilm.model import BiLM
from ..bilm.state import State
from ..bilm.threads import leave_threads_to_tasks
from ..bilm.word_cache import WordCache
from .sentence_cache import SentenceCache, Words

# 40 MB at the original model's width: most of the words of a text, since few words make up most of it.
CACHED_WORDS = 20_000


class EncoderCache:
    """The cache of an encoder, for one frozen biLM. Copies and pickles of it are empty.

    Word types and the mark before a sentence are always cached. Sentences are cached from the first step of training on: every epoch reads them again.

    max_bytes (int): The most bytes of sentences' layers to keep in memory; 0 for none.
    directory (str | None): Where to keep the sentences' layers that do not fit, or None.
    """

    def __init__(self, max_bytes: int, directory: str | None) -> None:
        self._limits = (max_bytes, directory)
        self.clear()

    def clear(self) -> None:
        """Empty the cache, as for another biLM."""
        self.words = WordCache(CACHED_WORDS)
        self.sentences: SentenceCache | None = None
        self._after_mark: State | None = None
        self._process = os.getpid()

    def begin_step(self) -> None:
        """Count a step of training, also if no layers are asked for in it."""
        self._clear_after_fork()
        if self.sentences is None and any(self._limits):
            self.sentences = SentenceCache(*self._limits)
        if self.sentences is not None:
            self.sentences.begin_step()

    @leave_threads_to_tasks()  # a biLM that is trained needs them itself
    def embed_sentences(
        self,
        bilm: BiLM,
        sentences: Sequence[Words],
        *,
        max_batch_items: int,
        initial_state: InitialState,
        is_train: bool,
    ) -> list[Tensor]:
        """Give the layers of sentences, computing only what is not cached.

        bilm (BiLM): The biLM, always the same one until the cache is cleared.
        sentences (Sequence[Words]): The sentences' words.
        max_batch_items, initial_state: As in `bilm.embed.embed_sentences`, and always the same state.
        is_train (bool): Whether this is a step of training.
        RETURNS (list[Tensor]): layers_LTW for each sentence. Not to be changed.
        """
        self._clear_after_fork()
        if is_train:
            self.begin_step()
        encode_words = partial(self.words.encode_words, bilm)
        after_mark = self._after_mark  # another thread may clear the cache
        if after_mark is None:
            after_mark = self._after_mark = read_mark(bilm, initial_state, encode_words)
        compute = partial(
            embed_sentences,
            bilm,
            max_batch_items=max_batch_items,
            encode_words=encode_words,
            after_mark=after_mark,
        )
        if self.sentences is None:
            return compute(sentences)
        return self.sentences.get_layers(sentences, compute, is_train=is_train)

    def _clear_after_fork(self) -> None:
        """Start empty in a forked process: it inherits locks that a thread of its parent may hold."""
        if self._process != os.getpid():
            self.clear()

    def __deepcopy__(self, memo: dict[int, Any]) -> "EncoderCache":
        return EncoderCache(*self._limits)

    def __reduce__(self) -> tuple[Any, ...]:
        return EncoderCache, self._limits
