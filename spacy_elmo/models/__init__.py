"""The models that come with the package."""

from pathlib import Path

DEFAULT = "en_elmo_sm"


def find_weights(weights: str | None) -> Path:
    """Find a weights directory.

    weights (str | None): A directory, the name of a bundled model, or None for the default one.
    RETURNS (Path): The directory, which may not exist.
    """
    weights = DEFAULT if weights is None else weights
    return Path(__file__).parent / weights if weights in bundled_models() else Path(weights)


def bundled_models() -> list[str]:
    """RETURNS (list[str]): The names of the models that come with the package."""
    return sorted(path.parent.name for path in Path(__file__).parent.glob("*/config.json"))
