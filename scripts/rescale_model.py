"""Scale the vectors of a language model without a change to what it predicts."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import torch
import typer
from wasabi import msg

from spacy_elmo.bilm.model import BiLM
from spacy_elmo.pretraining.language_model import LanguageModel
from spacy_elmo.pretraining.model_files import load_language_model, save_language_model, tokenizer_lang_of
from spacy_elmo.pretraining.softmax import Softmax


def rescale_model(source: Path, output: Path, factor: Annotated[float, typer.Option(min=2**-8, max=2**8)]) -> None:
    """Write a language model with vectors of another size, and the same predictions. Models for tasks learn faster from larger
    vectors, at the same learning rate.

    source (Path): The language model: a weights directory with a softmax.
    output (Path): The directory to write.
    factor (float): The factor of all vectors. With a power of two, nothing is rounded.
    """
    try:
        model, vocabulary = load_language_model(source)
        save_language_model(rescale(model, factor), vocabulary, output, lang=tokenizer_lang_of(source))
    except (OSError, ValueError) as error:
        msg.fail(f"Could not rescale {source}", str(error), exits=1)
    msg.good(f"{output}: vectors {factor:g} times as large")


@torch.no_grad()
def rescale(model: LanguageModel, factor: float) -> LanguageModel:
    """Multiply the weights that make a vector, divide those that read it, and move the bound of vectors with them.

    model (LanguageModel): The model.
    factor (float): The factor of all vectors.
    RETURNS (LanguageModel): Another model.
    """
    config = model.bilm.config
    if not (config.projects_tokens and config.projects_cells):
        raise ValueError(
            f"Only a model that projects its filters and cells can be rescaled. It has {config.unprojected} filters, "
            f"{config.cells} cells and a projection of {config.projection}."
        )
    clip = config.projection_clip
    bilm = BiLM(replace(config, projection_clip=None if clip is None else clip * factor))
    rescaled = LanguageModel(bilm, Softmax(len(model.softmax.bias), config.projection))
    tensors = dict(model.state_dict())
    makers = ["bilm.char_cnn.projection.weight", "bilm.char_cnn.projection.bias"]
    readers = ["softmax.weight"]
    for i in range(config.depth):
        makers.append(f"bilm.lstm.layers.{i}.projection")
        readers.append(f"bilm.lstm.layers.{i}.weight")
    if model.bilm.initial_hidden is not None:
        bilm.initial_hidden, bilm.initial_cell = model.bilm.initial_hidden.clone(), model.bilm.initial_cell
        makers.append("bilm.initial_hidden")
    tensors |= {name: tensors[name] * factor for name in makers}
    tensors |= {name: tensors[name] / factor for name in readers}
    rescaled.load_state_dict(tensors)
    return rescaled


if __name__ == "__main__":
    typer.run(rescale_model)
