"""Fixtures of the tests of weight formats."""

from pathlib import Path

import pytest

from ..helpers import (
    published_arrays,
    published_options,
    write_published,
)


@pytest.fixture
def paths(tmp_path: Path) -> tuple[Path, Path]:
    """The options and the weights of a good model, for a test to break."""
    options = published_options()
    return write_published(tmp_path, options, published_arrays(options))
