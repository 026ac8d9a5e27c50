"""Further fields of rows as columns: the type that fits all values of a field, and the values in it."""

import json
from collections.abc import Iterable
from typing import Any

from ..corpora.surrogates import drop_surrogates


class LargeInt:
    """The kind of whole numbers that fit into 64 bits, but that not every float can hold."""


# The kinds of values that a column can hold as they are: by the Python types of the values, or `LargeInt`.
COLUMN_TYPES = {
    frozenset[type]([bool]): "bool",
    frozenset[type]([int]): "int64",
    frozenset[type]([LargeInt]): "int64",
    frozenset[type]([int, LargeInt]): "int64",
    frozenset[type]([float]): "float64",
    frozenset[type]([int, float]): "float64",
    frozenset[type]([str]): "string",
    frozenset[type](): "string",  # nothing but nulls
}
AS_JSON = "json"  # everything else
LARGEST = 2**63
LARGEST_IN_FLOAT = 2**53  # up to here, a float can hold every whole number


class FieldTypes:
    """Collects the types of fields, row by row."""

    def __init__(self) -> None:
        self._types: dict[str, set[type]] = {}

    def add(self, fields: dict[str, Any]) -> None:
        """Add the fields of a row."""
        for name, value in fields.items():
            types = self._types.setdefault(name, set())
            if value is not None:
                types.add(_kind(value))

    def names(self) -> list[str]:
        """RETURNS (list[str]): The fields that have a value in some row."""
        return [name for name, types in self._types.items() if types]

    def column_types(self) -> dict[str, str]:
        """RETURNS (dict[str, str]): For each field, in the order of their first appearance, a value of `COLUMN_TYPES`, or
        `AS_JSON`."""
        return {name: COLUMN_TYPES.get(frozenset(types), AS_JSON) for name, types in self._types.items()}


def _kind(value: Any) -> type:
    if not isinstance(value, int) or abs(value) <= LARGEST_IN_FLOAT:
        return type(value)
    return LargeInt if -LARGEST <= value < LARGEST else object


def column_values(values: Iterable[Any], column_type: str) -> list[Any]:
    """Convert the values of a field to those of its column.

    values (Iterable[Any]): The values. None stays None.
    column_type (str): As `FieldTypes.column_types` found it.
    RETURNS (list[Any]): Values that all have that type, JSON texts for `AS_JSON`.
    """
    if column_type == AS_JSON:
        return [None if value is None else json.dumps(value, default=str) for value in values]
    if column_type == "string":
        return [None if value is None else drop_surrogates(value) for value in values]
    return list(values)
