"""Widen the projection of a language model without a change to what it predicts, to train it further at a larger size."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import torch
import typer
from torch import Tensor, nn
from wasabi import msg

from spacy_elmo.bilm.model import BiLM
from spacy_elmo.pretraining.language_model import LanguageModel
from spacy_elmo.pretraining.model_files import load_language_model, save_language_model, tokenizer_lang_of
from spacy_elmo.pretraining.softmax import Softmax


def widen_model(
    source: Path,
    output: Path,
    projection: Annotated[int, typer.Option(min=1)],
    seed: Annotated[int, typer.Option()] = 0,
) -> None:
    """Write a language model with a wider projection, and the same predictions.

    source (Path): The language model: a weights directory with a softmax.
    output (Path): The directory to write.
    projection (int): The new width of a token vector and of each direction's output.
    seed (int): The seed of the new weights.
    """
    try:
        model, vocabulary = load_language_model(source)
        wide = widen(model, projection, torch.Generator().manual_seed(seed))
        save_language_model(wide, vocabulary, output, lang=tokenizer_lang_of(source))
    except (OSError, ValueError) as error:
        msg.fail(f"Could not widen {source}", str(error), exits=1)
    msg.good(f"{output}: a projection of {projection}, was {model.bilm.config.projection}")


@torch.no_grad()
def widen(model: LanguageModel, projection: int, random: torch.Generator) -> LanguageModel:
    """Copy a language model into a wider one. New dimensions are random functions of what the model computes, and nothing
    depends on them yet: the weights that read them are zero (as in Net2Net, Chen et al. 2016).

    model (LanguageModel): The model.
    projection (int): The new width.
    random (Generator): The random number generator.
    RETURNS (LanguageModel): The wider model.
    """
    config = model.bilm.config
    n_new = projection - config.projection
    if n_new <= 0:
        raise ValueError(f"The projection must become wider than {config.projection}, got {projection}.")
    wide_config = replace(config, projection=projection)
    if not all(each.projects_tokens and each.projects_cells for each in (config, wide_config)):
        raise ValueError(
            f"Only a model that projects its filters and cells can be widened, and not to their number. It has "
            f"{config.unprojected} filters, {config.cells} cells and a projection of {config.projection}, got {projection}."
        )
    wide = LanguageModel(BiLM(wide_config), Softmax(len(model.softmax.bias), projection))
    tensors = dict(model.state_dict())

    def grow(name: str, dim: int) -> None:
        """Add random weights, of the scale of the others, that compute the new dimensions."""
        tensor = tensors[name]
        shape = list(tensor.shape)
        shape[dim] = n_new
        tensors[name] = torch.cat([tensor, torch.randn(shape, generator=random) * tensor.std()], dim)

    def pad(name: str, dim: int) -> None:
        """Add zeros, for weights that read the new dimensions."""
        tensors[name] = _pad(tensors[name], dim, n_new)

    grow("bilm.char_cnn.projection.weight", 0)
    pad("bilm.char_cnn.projection.bias", 0)
    for i in range(config.depth):
        name = f"bilm.lstm.layers.{i}.weight"
        # The rows of the input, then those of the hidden state.
        tensors[name] = torch.cat([_pad(part, 1, n_new) for part in tensors[name].chunk(2, dim=1)], dim=1)
        grow(f"bilm.lstm.layers.{i}.projection", 2)
    pad("softmax.weight", 1)
    if model.bilm.initial_hidden is not None:
        wide.bilm.initial_hidden = _pad(model.bilm.initial_hidden, 2, n_new)
        wide.bilm.initial_cell = model.bilm.initial_cell
        tensors["bilm.initial_hidden"] = wide.bilm.initial_hidden
    wide.load_state_dict(tensors)
    return wide


def _pad(tensor: Tensor, dim: int, n_zeros: int) -> Tensor:
    """RETURNS (Tensor): A tensor with zeros at the end of a dimension."""
    padding = [0, 0] * (tensor.dim() - dim - 1) + [0, n_zeros]
    return nn.functional.pad(tensor, padding)


if __name__ == "__main__":
    typer.run(widen_model)
