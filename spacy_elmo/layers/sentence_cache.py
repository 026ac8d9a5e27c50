"""The layers of sentences that a frozen biLM computed, kept from epoch to epoch."""

import os
import tempfile
import threading
import warnings
import weakref
from collections.abc import Callable, Sequence
from io import FileIO
from typing import cast

import torch
from torch import Tensor

Words = tuple[str, ...]

# How many predicted sentences are noted: about 10 MB, and more than most dev data have.
MAX_NOTED = 100_000


class SentenceCache:
    """Caches the layers of sentences: in memory up to a bound, then in a file if there is a directory for it.

    Valid for one biLM, while its weights stay as they are. Nothing is evicted: epochs visit the sentences in a cycle, so
    the oldest one is the one that is needed next.

    Sentences that are read in training are cached at once. A sentence that is only predicted is cached the second time, if
    there was a training step in between: that is so for dev data, and not for what a pipeline reads after training.

    max_bytes (int): The most bytes of layers to keep in memory.
    directory (str | None): Where to keep the rest, in an unnamed file that ends with the process.
    """

    def __init__(self, max_bytes: int, directory: str | None) -> None:
        self._free_bytes = max_bytes
        self._directory = directory
        self._in_memory: dict[Words, Tensor] = {}
        self._in_file: dict[Words, tuple[int, torch.Size]] = {}
        self._file: FileIO | None = None
        self._n_steps = 0
        self._predicted_at: dict[int, int] = {}  # by a sentence's hash: the step at which it was first predicted
        self._lock = threading.Lock()
        self._is_full = False

    def __len__(self) -> int:
        return len(self._in_memory) + len(self._in_file)

    def begin_step(self) -> None:
        """Count a step of training: sentences that were predicted before it and are predicted again are cached."""
        with self._lock:
            self._n_steps += 1

    def get_layers(
        self, sentences: Sequence[Words], compute: Callable[[Sequence[Words]], list[Tensor]], *, is_train: bool
    ) -> list[Tensor]:
        """Give the layers of sentences, computing those that are not cached.

        sentences (Sequence[Words]): The sentences' words.
        compute (Callable): Gives layers_LTW, in float32, for each of some sentences.
        is_train (bool): Whether they are read by a step of training.
        RETURNS (list[Tensor]): layers_LTW for each sentence, on the CPU or where `compute` put them. Not to be changed.
        """
        with self._lock:
            known = {words: self._get(words) for words in dict.fromkeys(sentences)}
            missing = [words for words, layers_LTW in known.items() if layers_LTW is None]
            for words, layers_LTW in zip(missing, compute(missing), strict=True):
                if is_train or self._is_evaluated_again(words):
                    self._put(words, layers_LTW)
                known[words] = layers_LTW
        return [cast(Tensor, known[words]) for words in sentences]

    def _is_evaluated_again(self, words: Words) -> bool:
        """Say whether there was a step of training since a sentence was first predicted; the first time, note it."""
        key = hash(words)
        if len(self._predicted_at) < MAX_NOTED:
            self._predicted_at.setdefault(key, self._n_steps)
        return self._predicted_at.get(key, self._n_steps) < self._n_steps

    def _get(self, words: Words) -> Tensor | None:
        if words not in self._in_file:
            return self._in_memory.get(words)
        try:
            return self._read(*self._in_file[words])
        except OSError as error:
            self._drop_file(error)
            return None

    def _put(self, words: Words, layers_LTW: Tensor) -> None:
        if self._is_full:
            return
        if layers_LTW.nbytes <= self._free_bytes:
            # A copy: the layers of a sentence are a view of a whole batch.
            self._in_memory[words] = layers_LTW.detach().clone(memory_format=torch.contiguous_format).cpu()
            self._free_bytes -= layers_LTW.nbytes
        elif self._directory is None:
            self._is_full = True
            warnings.warn(
                "The cache of the biLM's outputs is full: further sentences are computed in every epoch. Raise cache_mb of the "
                "elmo component, or set its cache_dir to keep the rest on disk.",
                stacklevel=3,
            )
        else:
            try:
                self._in_file[words] = (self._append(layers_LTW), layers_LTW.shape)
            except OSError as error:
                self._drop_file(error)

    def _append(self, layers_LTW: Tensor) -> int:
        """Write layers to the end of the file, and give their offset."""
        if self._file is None:
            self._file = tempfile.TemporaryFile(dir=self._directory, buffering=0)  # noqa: SIM115
            weakref.finalize(self, self._file.close)
        start = self._file.seek(0, os.SEEK_END)
        rest = layers_LTW.detach().cpu().contiguous().numpy().data.cast("B")
        while rest:
            rest = rest[self._file.write(rest) :]
        return start

    def _read(self, start: int, shape: torch.Size) -> Tensor:
        """Read the layers at an offset of the file."""
        assert self._file is not None
        data = bytearray(shape.numel() * torch.float32.itemsize)
        self._file.seek(start)
        rest = memoryview(data)
        while rest:
            n_read = self._file.readinto(rest)
            if not n_read:
                raise OSError("the file ends too early")
            rest = rest[n_read:]
        return torch.frombuffer(data, dtype=torch.float32).reshape(shape)

    def _drop_file(self, error: OSError) -> None:
        """Continue without the file. This frees a disk that it has filled up: the model needs the space to be saved."""
        if self._file is not None:
            self._file.close()
        self._file, self._in_file, self._is_full = None, {}, True
        warnings.warn(
            f"Cannot keep the biLM's outputs in cache_dir = {self._directory!r} ({error}). Training continues without it: what "
            f"does not fit into cache_mb is computed in every epoch.",
            stacklevel=3,
        )
