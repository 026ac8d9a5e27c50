"""Libraries that only bulk embedding needs: what to install if one is missing."""

from importlib import import_module
from typing import Any


def import_arrow() -> Any:
    """RETURNS (Any): The module pyarrow."""
    return _import("pyarrow", "embed")


def import_parquet() -> Any:
    """RETURNS (Any): The module pyarrow.parquet."""
    return _import("pyarrow.parquet", "embed")


def import_ray() -> Any:
    """RETURNS (Any): The module ray."""
    return _import("ray", "ray")


def _import(name: str, extra: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        library = name.split(".")[0]
        raise ImportError(
            f"`spacy elmo embed` needs {library} here, and importing it failed: {error}. Install it with "
            f"`pip install {library}`, or as an extra: `pip install 'spacy-elmo[{extra}]'`."
        ) from error
