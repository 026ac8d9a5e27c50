"""The sizes of a biLM, checked once."""

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal

ACTIVATIONS = ("relu", "tanh")

# The state at the start of a sentence: as stored with the weights, if any, or zeros.
InitialState = Literal["stored", "zero"]

# How a frozen biLM computes.
Precision = Literal["float32", "int8"]

# Far above any model, and low enough that a damaged or hostile file is refused before memory is allocated for it.
MOST_UNITS = 2**20
MOST_LAYERS = 64
LARGEST_CLIP = 1e30  # with room for the arithmetic of float32


@dataclass(frozen=True, kw_only=True)
class BiLMConfig:
    """The sizes and options of a biLM. A new field needs a default, so that existing files still load.

    char_dim (int): Width of a character's embedding.
    filters (tuple): Pairs of (width in characters, number of filters).
    highways (int): Highway layers over the filters' output.
    activation (str): "relu" or "tanh", after max-pooling over a word.
    max_chars (int): The maximum number of bytes of a word that are read, the marks of its start and end included.
    projection (int): Width of a token vector, and of each direction's output.
    cells (int): Memory cells of each LSTM layer and direction.
    depth (int): LSTM layers of each direction.
    cell_clip, projection_clip (float | None): Bounds of the memory cells and of the projected output.
    skip_connections (bool): Add a layer's input to its output, from the second layer on.
    """

    char_dim: int
    filters: tuple[tuple[int, int], ...]
    highways: int
    activation: str
    max_chars: int
    projection: int
    cells: int
    depth: int
    cell_clip: float | None
    projection_clip: float | None
    skip_connections: bool

    def __post_init__(self) -> None:
        for name in ("char_dim", "projection", "cells"):
            _check_integer(name, getattr(self, name), 1, MOST_UNITS)
        _check_integer("depth", self.depth, 1, MOST_LAYERS)
        _check_integer("highways", self.highways, 0, MOST_LAYERS)
        _check_integer("max_chars", self.max_chars, 3, MOST_UNITS)
        _check_filters(self.filters, self.max_chars)
        # JSON has lists; a frozen config needs tuples to be hashable.
        object.__setattr__(self, "filters", tuple((width, count) for width, count in self.filters))
        if self.activation not in ACTIVATIONS:
            raise ValueError(f"activation must be one of {', '.join(ACTIVATIONS)}, got {self.activation!r:.80}.")
        for name in ("cell_clip", "projection_clip"):
            clip = getattr(self, name)
            is_number = isinstance(clip, int | float) and not isinstance(clip, bool)
            if clip is not None and not (is_number and 0 < clip <= LARGEST_CLIP):
                raise ValueError(f"{name} must be a number above 0, or null for no clipping, got {clip!r:.80}.")
        if not isinstance(self.skip_connections, bool):
            raise ValueError(f"skip_connections must be true or false, got {self.skip_connections!r:.80}.")

    @property
    def n_filters(self) -> int:
        """RETURNS (int): Width of the pooled output of all filters."""
        return sum(count for _, count in self.filters)

    @property
    def widest_filter(self) -> int:
        """RETURNS (int): Characters that the widest filter sees at once."""
        return max(width for width, _ in self.filters)

    @property
    def width(self) -> int:
        """RETURNS (int): Width of a layer: both directions concatenated."""
        return 2 * self.projection

    def to_dict(self) -> dict[str, Any]:
        """RETURNS (dict): The sizes as JSON has them."""
        return {**dataclasses.asdict(self), "filters": [list(pair) for pair in self.filters]}

    @classmethod
    def required_fields(cls) -> dict[str, bool]:
        """RETURNS (dict): For each field, whether it must be given: whether it has no default."""
        return {field.name: field.default is dataclasses.MISSING for field in dataclasses.fields(cls)}

    @classmethod
    def from_dict(cls, data: Any) -> "BiLMConfig":
        """Read the sizes from JSON-shaped data. A field that has a default may be missing: earlier files do not have it.

        data (Any): What `to_dict` returned.
        RETURNS (BiLMConfig): The checked sizes.
        """
        if not isinstance(data, dict):
            raise ValueError(f"Expected an object with the sizes of a biLM, got {data!r:.80}.")
        fields = cls.required_fields()
        missing = {name for name, is_required in fields.items() if is_required} - data.keys()
        unexpected = data.keys() - fields.keys()
        if missing or unexpected:
            raise ValueError(
                f"The sizes of the biLM do not fit: missing {sorted(missing)}, unexpected {sorted(unexpected)!s:.200}."
            )
        return cls(**data)


def _check_integer(name: str, value: Any, least: int, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ValueError(f"{name} must be a whole number from {least} to {most}, got {value!r:.80}.")


def _check_filters(filters: Any, max_chars: int) -> None:
    if not isinstance(filters, list | tuple) or not 1 <= len(filters) <= MOST_LAYERS:
        raise ValueError(f"filters must be a list of 1 to {MOST_LAYERS} [width, count] pairs, got {filters!r:.80}.")
    for pair in filters:
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise ValueError(f"filters must be a list of [width, count] pairs, got {pair!r:.80} in it.")
        width, count = pair
        _check_integer("the width of a filter", width, 1, MOST_UNITS)
        _check_integer("the count of a filter", count, 1, MOST_UNITS)
        if width > max_chars:
            raise ValueError(
                f"A filter {width} characters wide does not fit into words of max_chars = {max_chars}. "
                f"Make the filter narrower or max_chars larger."
            )
