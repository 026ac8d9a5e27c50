"""Read and write language models: weights directories that have the softmax and its words as well."""

from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from safetensors.torch import save as format_tensors

from ..bilm.weights import CONFIG, TENSORS, load_weights, write_weights
from ..files.atomic import write_directory
from ..files.tensors import check_finite, check_fit
from .language_model import LanguageModel
from .softmax import Softmax
from .vocabulary import Vocabulary

SOFTMAX, VOCABULARY = "softmax.safetensors", "vocab.txt"


def save_language_model(
    model: LanguageModel,
    vocabulary: Vocabulary,
    directory: Path,
    *,
    lang: str | None = None,
    dtype: torch.dtype = torch.float32,
    kept: frozenset[str] = frozenset(),
) -> None:
    """Write a language model, all of it or nothing. The directory is a weights directory, and can be used as one.

    model (LanguageModel): The model.
    vocabulary (Vocabulary): The words that it predicts.
    directory (Path): The directory.
    lang (str | None): The language of the tokenizer of its training text; None if that was tokenized.
    dtype (torch.dtype): The precision on disk. Reading converts it back to float32.
    kept (frozenset[str]): The names of other files that stay when an existing directory is replaced.
    """
    with write_directory(directory, files={CONFIG, TENSORS, SOFTMAX, VOCABULARY}, kept=kept) as draft:
        write_weights(model.bilm, draft, dtype=dtype)
        tensors = {
            name: tensor.detach().cpu().contiguous().to(dtype) for name, tensor in model.softmax.named_parameters()
        }
        metadata = None if lang is None else {"lang": lang}
        (draft / SOFTMAX).write_bytes(format_tensors(tensors, metadata=metadata))
        vocabulary.to_disk(draft / VOCABULARY)


def has_softmax(directory: Path) -> bool:
    """RETURNS (bool): Whether a weights directory has a softmax with its words."""
    return (directory / SOFTMAX).is_file() and (directory / VOCABULARY).is_file()


def tokenizer_lang_of(directory: Path) -> str | None:
    """RETURNS (str | None): The language of the tokenizer of a model's training text; None if that was tokenized."""
    try:
        with safe_open(directory / SOFTMAX, framework="pt") as file:
            metadata: dict[str, str] = file.metadata() or {}
            return metadata.get("lang")
    except (OSError, SafetensorError):
        return None  # loading the model reports the error


def vocabulary_of(directory: Path) -> Vocabulary:
    """RETURNS (Vocabulary): The words that the softmax in a weights directory predicts."""
    return Vocabulary.from_disk(directory / VOCABULARY)


def load_language_model(directory: Path) -> tuple[LanguageModel, Vocabulary]:
    """Read a language model.

    directory (Path): The directory.
    RETURNS (tuple): The model, and the words that it predicts.
    """
    bilm = load_weights(directory)
    if not has_softmax(directory):
        raise ValueError(
            f"The weights in {directory} have no softmax ({SOFTMAX} and {VOCABULARY}), so they cannot predict words. "
            f"Train one for them with: python -m spacy elmo pretrain configs/finetune.cfg OUT --paths.weights {directory}"
        )
    vocabulary = vocabulary_of(directory)
    softmax = Softmax(len(vocabulary), bilm.config.projection)
    path = directory / SOFTMAX
    try:
        tensors = load_file(path)
    except SafetensorError as error:
        raise ValueError(f"{path} is not a safetensors file, or an incomplete one: {error!s:.1000}") from None
    found = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    expected = {name: tuple(tensor.shape) for name, tensor in softmax.named_parameters()}
    check_fit(found, expected, path, f"the {len(vocabulary):,} words of {VOCABULARY}")
    softmax.load_state_dict({name: tensor.float() for name, tensor in tensors.items()})
    check_finite(softmax, path)
    return LanguageModel(bilm, softmax), vocabulary
