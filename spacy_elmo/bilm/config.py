"""The sizes of a biLM and what it reads, checked once."""

import dataclasses
import re
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from .characters import Alphabet
from .word_table import N_EXTRA_ROWS

NormalForm = Literal["NFC", "NFD", "NFKC", "NFKD"]

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

    char_dim (int): Width of a character's embedding; 0 for a model that reads no characters, but words of a table.
    filters (tuple): Pairs of (width in characters, number of filters).
    highways (int): Highway layers over the filters' output.
    activation (str): "relu" or "tanh", after max-pooling over a word.
    max_chars (int): The maximum number of bytes of a word that are read, or of characters if the model has a table of them,
        the marks of its start and end included.
    projection (int): Width of a token vector, and of each direction's output.
    cells (int): Memory cells of each LSTM layer and direction.
    depth (int): LSTM layers of each direction.
    cell_clip, projection_clip (float | None): Bounds of the memory cells and of the projected output.
    skip_connections (bool): Add a layer's input to its output, from the second layer on.
    characters (str | None): The characters that the model knows, in the order of their embeddings; None for UTF-8 bytes.
    words (tuple | None): The words of a table of embeddings, in its order; None without such a table.
    word_dim (int): Width of a word's embedding in that table.
    always_project (bool): Whether there are projections even where they do not change a width.
    lang (str | None): The language of the text that the model was trained on, as spaCy writes it, if it is known.
    normalize (str | None): The Unicode normal form that words are converted to before the model reads them.
    segmenter (str | None): How that text was cut into words, for a language that has a choice, as Chinese has.
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
    characters: str | None = field(default=None, repr=False)
    words: tuple[str, ...] | None = field(default=None, repr=False)
    word_dim: int = 0
    always_project: bool = False
    lang: str | None = None
    normalize: NormalForm | None = None
    segmenter: str | None = None

    def __post_init__(self) -> None:
        _check_words(self.words, self.word_dim)
        for name, least in (("char_dim", 1 if self.words is None else 0), ("projection", 1), ("cells", 1)):
            _check_integer(name, getattr(self, name), least, MOST_UNITS)
        _check_integer("depth", self.depth, 1, MOST_LAYERS)
        _check_integer("highways", self.highways, 0, MOST_LAYERS)
        _check_integer("max_chars", self.max_chars, 3, MOST_UNITS)
        if self.char_dim:
            _check_filters(self.filters, self.max_chars)
            _check_characters(self.characters)
        elif not isinstance(self.filters, list | tuple) or self.filters or self.highways or self.characters is not None:
            raise ValueError("A model with char_dim = 0 reads no characters, so filters must be [] and highways 0.")
        # JSON has lists; a frozen config needs tuples to be hashable.
        object.__setattr__(self, "filters", tuple((width, count) for width, count in self.filters))
        if self.words is not None:
            object.__setattr__(self, "words", tuple(self.words))
        if self.activation not in ACTIVATIONS:
            raise ValueError(f"activation must be one of {', '.join(ACTIVATIONS)}, got {self.activation!r:.80}.")
        for name in ("cell_clip", "projection_clip"):
            clip = getattr(self, name)
            is_number = isinstance(clip, int | float) and not isinstance(clip, bool)
            if clip is not None and not (is_number and 0 < clip <= LARGEST_CLIP):
                raise ValueError(f"{name} must be a number above 0, or null for no clipping, got {clip!r:.80}.")
        for name in ("skip_connections", "always_project"):
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"{name} must be true or false, got {getattr(self, name)!r:.80}.")
        check_lang(self.lang)
        check_normalize(self.normalize)
        _check_segmenter(self.segmenter)

    @property
    def n_characters(self) -> int:
        """RETURNS (int): Rows of the embedding of characters, marks included."""
        return len(Alphabet(self.characters))

    @property
    def n_words(self) -> int:
        """RETURNS (int): Rows of the table of words, marks included."""
        return 0 if self.words is None else len(self.words) + N_EXTRA_ROWS

    @property
    def n_filters(self) -> int:
        """RETURNS (int): Width of the pooled output of all filters."""
        return sum(count for _, count in self.filters)

    @property
    def widest_filter(self) -> int:
        """RETURNS (int): Characters that the widest filter sees at once."""
        return max(width for width, _ in self.filters)

    @property
    def unprojected(self) -> int:
        """RETURNS (int): Width of a token vector before the projection."""
        return self.word_dim + self.n_filters

    @property
    def projects_tokens(self) -> bool:
        """RETURNS (bool): Whether token vectors are projected."""
        return self.always_project or self.unprojected != self.projection

    @property
    def projects_cells(self) -> bool:
        """RETURNS (bool): Whether the output of the memory cells is projected."""
        return self.always_project or self.cells != self.projection

    @property
    def width(self) -> int:
        """RETURNS (int): Width of a layer: both directions concatenated."""
        return 2 * self.projection

    def to_dict(self) -> dict[str, Any]:
        """RETURNS (dict): The sizes as JSON has them, without those that have their default: earlier releases do not know
        them."""
        filters, words = [list(pair) for pair in self.filters], None if self.words is None else list(self.words)
        values = {**vars(self), "filters": filters, "words": words}
        fields = dataclasses.fields(self)
        return {field.name: values[field.name] for field in fields if values[field.name] != field.default}

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


def check_lang(lang: Any) -> None:
    """Check that a language looks like a code, such as "de". spaCy lets plugins add any."""
    if lang is not None and not (isinstance(lang, str) and re.fullmatch(r"[\w-]{2,32}", lang)):
        raise ValueError(f"lang must be the code of a language, such as 'de', got {lang!r:.80}.")


def check_normalize(form: Any) -> None:
    """Check the name of a Unicode normal form."""
    if form is not None and form not in get_args(NormalForm):
        raise ValueError(f"normalize must be one of {', '.join(get_args(NormalForm))}, got {form!r:.80}.")


def _check_segmenter(segmenter: Any) -> None:
    if segmenter is not None and not (isinstance(segmenter, str) and re.fullmatch(r"[\w-]{1,32}", segmenter)):
        raise ValueError(f"segmenter must be a name, such as 'jieba', got {segmenter!r:.80}.")


def _check_integer(name: str, value: Any, least: int, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ValueError(f"{name} must be a whole number from {least} to {most}, got {value!r:.80}.")


def _check_characters(characters: Any) -> None:
    if characters is not None and not (isinstance(characters, str) and len(set(characters)) == len(characters)):
        raise ValueError(f"characters must be a text that has each character once, got {characters!r:.80}.")


def _check_words(words: Any, word_dim: Any) -> None:
    if words is None:
        if word_dim != 0:
            raise ValueError(f"word_dim must be 0 without words, got {word_dim!r:.80}.")
        return
    _check_integer("word_dim", word_dim, 1, MOST_UNITS)
    if not isinstance(words, list | tuple) or not all(isinstance(word, str) for word in words):
        raise ValueError(f"words must be a list of texts, got {words!r:.80}.")
    if len(set(words)) < len(words):
        raise ValueError(f"words must have each word once, got {len(words) - len(set(words))} of them more than once.")


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
