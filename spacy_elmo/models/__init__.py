"""The models that come with the package."""

from pathlib import Path

UNTRAINED = "untrained"
UNTRAINED_WARNING = (
    "No weights were given, so elmo uses a tiny biLM with fixed random weights: fit for a first try and for tests, but "
    "its vectors mean nothing. Convert real weights with `python -m spacy elmo convert`, then name them: "
    'nlp.add_pipe("elmo", config={"weights": "path/to/weights"})'
)


def find_weights(weights: str | None) -> Path:
    """Find a weights directory.

    weights (str | None): A directory, the name of a bundled model, or None for the default one.
    RETURNS (Path): The directory, which may not exist.
    """
    weights = UNTRAINED if weights is None else weights
    return Path(__file__).parent / weights if weights in bundled_models() else Path(weights)


def bundled_models() -> list[str]:
    """RETURNS (list[str]): The names of the models that come with the package."""
    return sorted(path.parent.name for path in Path(__file__).parent.glob("*/config.json"))
