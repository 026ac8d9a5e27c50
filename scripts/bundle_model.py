"""Write a language model in half precision, as a bundled model."""

from dataclasses import replace
from pathlib import Path

import torch
import typer
from wasabi import msg

from spacy_elmo.pretraining.model_files import load_language_model, save_language_model, tokenizer_lang_of

CARD = "README.md"


def bundle_model(source: Path, output: Path, lang: str | None = None) -> None:
    """Write a language model in half precision.

    source (Path): The language model, such as the model-best of pretraining.
    output (Path): The directory to write. An existing model is replaced, but its model card (README.md) is kept.
    lang (str | None): The language of the tokenizer. It is needed only if the model was pretrained on tokenized text.
    """
    try:
        model, vocabulary = load_language_model(source)
        lang = lang or tokenizer_lang_of(source)
        model.bilm.config = replace(model.bilm.config, lang=lang or model.bilm.config.lang)
        save_language_model(
            model,
            vocabulary,
            output,
            lang=lang,
            dtype=torch.float16,
            kept=frozenset({CARD}),
        )
    except (OSError, ValueError) as error:
        msg.fail(f"Could not bundle {source}", str(error), exits=1)
    size = sum(path.stat().st_size for path in output.iterdir())
    msg.good(f"{output}: {size / 1e6:.1f} MB")
    if (output / CARD).exists():
        msg.info(f"{output / CARD} was kept: check that it describes this model")


if __name__ == "__main__":
    typer.run(bundle_model)
