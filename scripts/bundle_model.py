"""Make of a language model a directory that the package can carry: half the size."""

from pathlib import Path

import torch
import typer
from wasabi import msg

from spacy_elmo.pretraining.model_files import language_of, load_language_model, save_language_model

CARD = "README.md"


def bundle_model(source: Path, output: Path, lang: str | None = None) -> None:
    """Write a language model in half precision.

    source (Path): The language model, such as model-best of a run.
    output (Path): The directory to write. One that has a model is replaced, but not its card: that is written by hand.
    lang (str | None): The language whose tokenizer made the text that it learned from. Only a model of text that was tokenized
        beforehand does not know it.
    """
    try:
        model, vocabulary = load_language_model(source)
        lang = lang or language_of(source)
        save_language_model(model, vocabulary, output, lang=lang, dtype=torch.float16, kept=frozenset({CARD}))
    except (OSError, ValueError) as error:
        msg.fail(f"Could not bundle {source}", str(error), exits=1)
    size = sum(path.stat().st_size for path in output.iterdir())
    msg.good(f"{output}: {size / 1e6:.1f} MB")
    if (output / CARD).exists():
        msg.info(f"{output / CARD} is as it was: does it describe this model?")


if __name__ == "__main__":
    typer.run(bundle_model)
