"""Further fields as columns."""

from typing import Any

import pyarrow
import pytest

from spacy_elmo.embedding.fields import AS_JSON, FieldTypes, column_values


@pytest.mark.parametrize(
    ("values", "column_type", "expected"),
    [
        ([1, None, 3], "int64", [1, None, 3]),
        ([1, 2.5], "float64", [1, 2.5]),
        ([True, None], "bool", [True, None]),
        (["a", "b\ud800"], "string", ["a", "b"]),
        ([None], "string", [None]),
        ([1, "a"], "json", ["1", '"a"']),
        ([True, 1], "json", ["true", "1"]),
        ([2**63], "json", ["9223372036854775808"]),
        ([2**62, 1], "int64", [2**62, 1]),
        ([2**53, 0.5], "float64", [2**53, 0.5]),
        ([2**53 + 1, 0.5], "json", ["9007199254740993", "0.5"]),
        ([-(2**63), 0.5], "json", ["-9223372036854775808", "0.5"]),
        ([{"a": [1]}, None], "json", ['{"a": [1]}', None]),
    ],
    ids=str,
)
def test_column_holds_all_values(values: list[Any], column_type: str, expected: list[Any]) -> None:
    types = FieldTypes()
    for value in values:
        types.add({"field": value})
    assert types.column_types() == {"field": column_type}
    found = column_values(values, column_type)
    assert found == expected
    arrow_type = pyarrow.string() if column_type == AS_JSON else pyarrow.type_for_alias(column_type)
    assert pyarrow.array(found, arrow_type).to_pylist() == expected


def test_fields_are_in_the_order_of_their_first_appearance() -> None:
    types = FieldTypes()
    for row in ({"b": 1}, {"a": None, "b": 2}, {"c": "x"}):
        types.add(row)
    assert list(types.column_types()) == ["b", "a", "c"]
    assert types.names() == ["b", "c"]
