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
        ({"always_project": None}, "always_project must be true or false, got None"),
        ({"characters": "abca"}, "characters must be a text that has each character once, got 'abca'"),
        ({"characters": ["a"]}, r"characters must be a text that has each character once, got \['a'\]"),
        ({"word_dim": 3}, "word_dim must be 0 without words, got 3"),
        ({"words": ["a"]}, r"word_dim must be a whole number from 1 to \d+, got 0"),
        ({"words": "ab", "word_dim": 3}, "words must be a list of texts, got 'ab'"),
        ({"words": ["a", 1], "word_dim": 3}, r"words must be a list of texts, got \['a', 1\]"),
        ({"words": ["a", "b", "a"], "word_dim": 3}, "words must have each word once, got 1 of them more than once"),
        ({"char_dim": 0}, r"char_dim must be a whole number from 1 to \d+, got 0"),
        (
            {"char_dim": 0, "words": ["a"], "word_dim": 3},
            r"reads no characters, so filters must be \[\] and highways 0",
        ),
        (
            {"char_dim": 0, "words": ["a"], "word_dim": 3, "filters": None, "highways": 0},
            r"reads no characters, so filters must be \[\] and highways 0",
        ),
        ({"lang": "to German"}, "lang must be the code of a language, such as 'de', got 'to German'"),
        ({"lang": 3}, "lang must be the code of a language, such as 'de', got 3"),
        ({"normalize": "nfkc"}, "normalize must be one of NFC, NFD, NFKC, NFKD, got 'nfkc'"),
        ({"normalize": ["NFC"]}, r"normalize must be one of NFC, NFD, NFKC, NFKD, got \['NFC'\]"),
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


def test_fields_with_defaults_are_stored_only_if_they_are_set() -> None:
    changes = {
        "characters": "日a",
        "words": ["the"],
        "word_dim": 2,
        "always_project": True,
        "lang": "ja",
        "normalize": "NFC",
    }
    config = small_config(**changes)
    assert config.to_dict() == {**SIZES, **changes}
    assert BiLMConfig.from_dict(config.to_dict()) == config
    assert len({config, small_config(**changes), small_config()}) == 2
    assert (config.n_characters, config.n_words, config.unprojected) == (2 + 6, 1 + 3, 18 + 2)
    assert (small_config().n_characters, small_config().n_words, small_config().unprojected) == (261, 0, 18)
