"""Fractions as they are typed."""

import pytest

from spacy_elmo.experiments.trial_id import parse_fractions


def test_fractions_as_typed() -> None:
    assert parse_fractions("100") == [100]
    assert parse_fractions("50, 1,2.5,50") == [1, 2.5, 50]
    # Fractions with the same directory are one.
    assert parse_fractions("33.3333333,33.3333334,99.9999999") == [33.3333, 100]
    for text in ("0", "101", "ten", "", "1,,2", "-5", "nan", "1,inf"):
        with pytest.raises(ValueError, match="above 0 and up to 100"):
            parse_fractions(text)
