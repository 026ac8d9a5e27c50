"""The sizes of a biLM."""

from typing import Any

import pytest

from spacy_elmo.bilm.config import BiLMConfig

from ..helpers import SIZES, small_config


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"depth": 0}, r"depth must be a whole number from 1 to \d+, got 0"),
        ({"cells": -1}, r"cells must be a whole number from 1 to \d+, got -1"),
        ({"projection": 6.0}, r"projection must be a whole number from 1 to \d+, got 6.0"),
        ({"char_dim": True}, r"char_dim must be a whole number from 1 to \d+, got True"),
        ({"highways": -1}, r"highways must be a whole number from 0 to \d+, got -1"),
        ({"max_chars": 2}, r"max_chars must be a whole number from 3 to \d+, got 2"),
        ({"max_chars": "50"}, r"max_chars must be a whole number from 3 to \d+, got '50'"),
        ({"filters": []}, r"filters must be a list of 1 to 64 \[width, count\] pairs, got \[\]"),
        ({"filters": {"1": 4}}, r"filters must be a list of 1 to 64 \[width, count\] pairs, got \{'1': 4\}"),
        ({"filters": [[1, 4, 2]]}, r"filters must be a list of \[width, count\] pairs, got \[1, 4, 2\] in it"),
        ({"filters": [3]}, r"filters must be a list of \[width, count\] pairs, got 3 in it"),
        ({"filters": [[0, 4]]}, r"the width of a filter must be a whole number from 1 to \d+, got 0"),
        ({"filters": [[1, 0]]}, r"the count of a filter must be a whole number from 1 to \d+, got 0"),
        ({"filters": [[21, 4]]}, "A filter 21 characters wide does not fit into words of max_chars = 20"),
        ({"activation": "gelu"}, "activation must be one of relu, tanh, got 'gelu'"),
        ({"cell_clip": 0}, "cell_clip must be a number above 0, or null for no clipping, got 0"),
        ({"cell_clip": float("nan")}, "cell_clip must be a number above 0, or null for no clipping, got nan"),
        ({"projection_clip": -3.0}, "projection_clip must be a number above 0, or null for no clipping, got -3.0"),
        ({"projection_clip": True}, "projection_clip must be a number above 0, or null for no clipping, got True"),
        ({"skip_connections": 1}, "skip_connections must be true or false, got 1"),
    ],
)
def test_config_refuses_sizes_that_make_no_sense(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        small_config(**changes)


def test_config_survives_json_shapes() -> None:
    config = small_config()
    assert config.to_dict() == SIZES
    assert BiLMConfig.from_dict(config.to_dict()) == config
    assert len({config, small_config(), small_config(depth=1)}) == 2
    assert (config.n_filters, config.widest_filter, config.width) == (18, 3, 12)
