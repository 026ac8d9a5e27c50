"""The columns of a shard, and units as batches of them."""

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy

from ..corpora.surrogates import drop_surrogates
from .extras import import_arrow
from .fields import AS_JSON, FieldTypes, column_values
from .pooling import Units
from .settings import DEFAULT_ID, EmbeddingSettings

VECTOR = "vector"
LARGEST_COLUMN = 2_000_000_000  # bytes of a field in a row group; the texts of an array of Arrow's end at 2**31


def column_names(settings: EmbeddingSettings) -> list[str]:
    """RETURNS (list[str]): The columns beside further fields, the vector last."""
    indices = {"document": [], "sentence": ["sentence"], "token": ["sentence", "token"]}[settings.unit]
    return ["id", *indices, *(["text"] if settings.text else []), VECTOR]


def check_fields(fields: FieldTypes, settings: EmbeddingSettings, *, has_ids: bool) -> None:
    """Refuse fields whose name a column cannot have, and fields that were asked for and are in no row.

    fields (FieldTypes): The fields of the corpus.
    settings (EmbeddingSettings): The settings.
    has_ids (bool): Whether some row has an id of its own.
    """
    if settings.id_field != DEFAULT_ID and not has_ids:
        raise ValueError(
            f"No row has an id in a field {settings.id_field!r}, as --id-field asks for. Correct the name, or leave out --id-field: "
            f"a row without an id gets FILE:LINE."
        )
    for name in fields.column_types():
        if drop_surrogates(name) != name:
            raise ValueError(
                f"The corpus has a field {name!r:.80}, and a column cannot have that name: it has half of a character (a lone "
                f"surrogate). Rename the field, or list the fields to keep with --fields."
            )
        if name in column_names(settings):
            raise ValueError(
                f"The corpus has a field {name!r}, and `spacy elmo embed` writes a column of that name. Rename the field, "
                f"or list the fields to keep with --fields."
            )
    names = fields.names()
    for name in settings.fields or ():
        if name not in (*names, settings.id_field, settings.text_field):
            raise ValueError(
                f"No row has a field {name!r}, as --fields asks for. Fields: {', '.join(names) or 'none'}."
            )


def make_schema(settings: EmbeddingSettings, fields: dict[str, str], width: int, metadata: dict[str, str]) -> Any:
    """Describe the columns of a shard.

    settings (EmbeddingSettings): The settings.
    fields (dict[str, str]): The types of further fields.
    width (int): The length of a vector.
    metadata (dict[str, str]): To be stored with the columns.
    RETURNS (Schema): Arrow's schema.
    """
    arrow = import_arrow()
    values = arrow.float16() if settings.dtype == "float16" else arrow.float32()
    types = {"sentence": arrow.int32(), "token": arrow.int32(), VECTOR: arrow.list_(values, width)}
    own = [arrow.field(name, types.get(name, arrow.string()), nullable=False) for name in column_names(settings)]
    further = [
        arrow.field(name, arrow.string() if kind == AS_JSON else arrow.type_for_alias(kind))
        for name, kind in fields.items()
    ]
    return arrow.schema([*own[:-1], *further, own[-1]], metadata=metadata)


def count_repeated_bytes(units: Units, fields: dict[str, str]) -> int:
    """Count the bytes of the id and of further fields, and refuse what is too large to be repeated for each unit.

    units (Units): The units of a row.
    fields (dict[str, str]): The types of further fields.
    RETURNS (int): The bytes of their columns.
    """
    row, count, total = units.row, len(units.texts), 0
    values = [column_values([row.fields.get(name)], kind)[0] for name, kind in fields.items()]
    for name, value in ((None, row.id), *zip(fields, values, strict=True)):
        n_bytes = len(value.encode()) if isinstance(value, str) else 8
        if n_bytes * count > LARGEST_COLUMN:
            what = f"id {row.id!r:.80}" if name is None else f"field {name!r:.40} of {row.id!r:.80}"
            remedy = "Choose shorter ids" if name is None else "List the fields to keep with --fields, without this one"
            raise ValueError(
                f"The {what} has {n_bytes:,} bytes, and is repeated for each of {count:,} units: more than the "
                f"{LARGEST_COLUMN:,} bytes that a column can hold. {remedy}, and start again with --overwrite."
            )
        total += n_bytes * count
    return total


def make_batch(units: Sequence[Units], schema: Any, fields: dict[str, str]) -> Any:
    """Put units into columns.

    units (Sequence[Units]): The units, at least one.
    schema (Schema): What `make_schema` returned.
    fields (dict[str, str]): The types of further fields.
    RETURNS (RecordBatch): The columns.
    """
    arrow = import_arrow()
    counts = [len(each.texts) for each in units]
    columns: dict[str, Any] = {
        "id": [each.row.id for each, count in zip(units, counts, strict=True) for _ in range(count)],
        "sentence": list(chain.from_iterable(each.sentences for each in units)),
        "token": list(chain.from_iterable(each.tokens for each in units)),
        "text": list(chain.from_iterable(each.texts for each in units)),
    }
    for name, kind in fields.items():
        values = column_values((each.row.fields.get(name) for each in units), kind)
        columns[name] = [value for value, count in zip(values, counts, strict=True) for _ in range(count)]
    vector_type = schema.field(VECTOR).type
    dtype = vector_type.value_type.to_pandas_dtype()
    vectors_NW = numpy.concatenate([each.vectors_NW for each in units]).astype(dtype, copy=False)
    arrays = [
        arrow.FixedSizeListArray.from_arrays(arrow.array(vectors_NW.reshape(-1)), type=vector_type)
        if field.name == VECTOR
        else arrow.array(columns[field.name], field.type)
        for field in schema
    ]
    return arrow.record_batch(arrays, schema=schema)
