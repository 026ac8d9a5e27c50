"""The models that come with the package."""

import difflib
from pathlib import Path

DEFAULT = "en_elmo_sm"


def choose_model(weights: str | None, lang: str | None) -> str | None:
    """Choose the bundled model of a language, where no weights are given. The name of a model starts with its language.

    weights (str | None): A directory, the name of a bundled model, or None.
    lang (str | None): The language, if it is known.
    RETURNS (str | None): The weights, or the name of the model. None, the default model, if there is no other one.
    """
    if weights is not None or DEFAULT.startswith(f"{lang}_"):
        return weights
    return next((name for name in bundled_models() if name.startswith(f"{lang}_")), None)


def find_weights(weights: str | None) -> Path:
    """Find a weights directory.

    weights (str | None): A directory, the name of a bundled model, or None for the default one.
    RETURNS (Path): The directory, which may not exist.
    """
    if weights is None:
        return Path(__file__).parent / DEFAULT
    if weights not in bundled_models():
        return Path(weights)
    if Path(weights).exists():
        raise ValueError(
            f"{weights!r} is a bundled model, and a directory here as well. Write {str(Path('.', weights).absolute())!r} "
            f"for the directory, or rename it."
        )
    return Path(__file__).parent / weights


def find_existing_weights(weights: str | None) -> Path:
    """Find a weights directory that exists.

    weights (str | None): A directory, the name of a bundled model, or None for the default one.
    RETURNS (Path): The directory.
    """
    path = find_weights(weights)
    if path.exists():
        return path
    models = bundled_models()
    similar = difflib.get_close_matches(path.name, models, n=1)
    hint = f"Did you mean {similar[0]!r}, a bundled model?" if similar else f"Bundled models: {', '.join(models)}."
    raise ValueError(
        f"There is no weights directory at {path} (seen from {Path.cwd()}). {hint} Weights directories are written by "
        f"`python -m spacy elmo pretrain`, from your own text, and by `python -m spacy elmo convert`, from published weights."
    )


def bundled_models() -> list[str]:
    """RETURNS (list[str]): The names of the models that come with the package."""
    return sorted(path.parent.name for path in Path(__file__).parent.glob("*/config.json"))
