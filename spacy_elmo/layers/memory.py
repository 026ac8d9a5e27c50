"""What a frozen biLM made of sentences, remembered from epoch to epoch."""

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

Sentence = tuple[str, ...]

# Sentences that are noted when they are predicted: 10 MB or so, and more than most dev data have.
MOST_PREDICTED = 100_000


class SentenceMemory:
    """Remembers the layers of sentences: in memory up to a bound, then in a file if there is a directory for it.

    Valid for one biLM, while its weights stay as they are. Nothing is ever dropped for something newer: epochs visit the
    sentences in a cycle, so the oldest one is the one that is needed next.

    Sentences that are read in training are remembered at once. A sentence that is only predicted is remembered the second
    time, if there was a training step in between: that is so for dev data, and not for what a pipeline reads after training.

    max_bytes (int): The most bytes of layers to keep in memory.
    directory (str | None): Where to keep what does not fit, in a file without a name that is gone when the process is.
    """

    def __init__(self, max_bytes: int, directory: str | None) -> None:
        self._free_bytes = max_bytes
        self._directory = directory
        self._in_memory: dict[Sentence, Tensor] = {}
        self._in_file: dict[Sentence, tuple[int, torch.Size]] = {}
        self._file: FileIO | None = None
        self._steps = 0  # of training
        self._predicted: dict[int, int] = {}  # by a sentence's hash: the step at which it was predicted first
        self._lock = threading.Lock()
        self._is_full = False

    def recall(
        self,
        sentences: Sequence[Sentence],
        compute: Callable[[Sequence[Sentence]], list[Tensor]],
        *,
        is_train: bool,
    ) -> list[Tensor]:
        """Give the layers of sentences, computing those that are not remembered.

        sentences (Sequence[Sentence]): The sentences' words.
        compute (Callable): Gives layers_LTW, in float32, for each of some sentences.
        is_train (bool): Whether they are read by a step of training.
        RETURNS (list[Tensor]): layers_LTW for each sentence, on the CPU or where `compute` put them. Not to be changed.
        """
        with self._lock:
            self._steps += is_train
            known = {sentence: self._get(sentence) for sentence in dict.fromkeys(sentences)}
            missing = [sentence for sentence, layers_LTW in known.items() if layers_LTW is None]
            for sentence, layers_LTW in zip(missing, compute(missing), strict=True):
                if is_train or self._comes_again(sentence):
                    self._put(sentence, layers_LTW)
                known[sentence] = layers_LTW
        return [cast(Tensor, known[sentence]) for sentence in sentences]

    def _comes_again(self, sentence: Sentence) -> bool:
        """Say whether training has gone on since a sentence was first predicted; if this is the first time, note it."""
        key = hash(sentence)
        if len(self._predicted) < MOST_PREDICTED:
            self._predicted.setdefault(key, self._steps)
        return self._predicted.get(key, self._steps) < self._steps

    def _get(self, sentence: Sentence) -> Tensor | None:
        if sentence not in self._in_file:
            return self._in_memory.get(sentence)
        try:
            return self._read(*self._in_file[sentence])
        except OSError as error:
            self._give_up_file(error)
            return None

    def _put(self, sentence: Sentence, layers_LTW: Tensor) -> None:
        if self._is_full:
            return
        if layers_LTW.nbytes <= self._free_bytes:
            # A copy: what comes is a view of a whole batch.
            self._in_memory[sentence] = layers_LTW.detach().clone(memory_format=torch.contiguous_format).cpu()
            self._free_bytes -= layers_LTW.nbytes
        elif self._directory is None:
            self._is_full = True
            warnings.warn(
                "The memory for the biLM's outputs is full: sentences that come now are computed in every epoch. Raise "
                "cache_mb of the elmo component, or set its cache_dir to keep the rest on disk.",
                stacklevel=3,
            )
        else:
            try:
                self._in_file[sentence] = (self._append(layers_LTW), layers_LTW.shape)
            except OSError as error:
                self._give_up_file(error)

    def _append(self, layers_LTW: Tensor) -> int:
        """Write layers to the end of the file, and give their place in it."""
        if self._file is None:
            self._file = tempfile.TemporaryFile(dir=self._directory, buffering=0)  # noqa: SIM115
            weakref.finalize(self, self._file.close)
        start = self._file.seek(0, os.SEEK_END)
        rest = layers_LTW.detach().cpu().contiguous().numpy().data.cast("B")
        while rest:
            rest = rest[self._file.write(rest) :]
        return start

    def _read(self, start: int, shape: torch.Size) -> Tensor:
        """Read the layers at a place of the file."""
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

    def _give_up_file(self, error: OSError) -> None:
        """Do without the file from now on. A disk that it has filled up is given back: the model needs to be saved."""
        if self._file is not None:
            self._file.close()
        self._file, self._in_file, self._is_full = None, {}, True
        warnings.warn(
            f"Cannot keep the biLM's outputs in cache_dir = {self._directory!r} ({error}). Training goes on without: what "
            f"does not fit into cache_mb is computed in every epoch.",
            stacklevel=3,
        )
