"""The models that come with the package."""

from pathlib import Path

DEFAULT = "en_elmo_sm"


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
            f"{weights!r} is a model in the package, and a directory here as well. Write {str(Path('.', weights).absolute())!r} "
            f"for the directory, or rename it."
        )
    return Path(__file__).parent / weights


def bundled_models() -> list[str]:
    """RETURNS (list[str]): The names of the models that come with the package."""
    return sorted(path.parent.name for path in Path(__file__).parent.glob("*/config.json"))
