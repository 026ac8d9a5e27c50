"""The settings of `spacy elmo embed` that decide what is written. Each stands here, once."""

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

from ..bilm.config import Precision
from ..models import bundled_models

Unit = Literal["document", "sentence", "token"]
FloatType = Literal["float32", "float16"]
MIXED, ALL = "mix", "all"
DEFAULT_ID = "id"
LAYER_CHOICES = (MIXED, "mean", "top", ALL)


@dataclass(frozen=True, kw_only=True)
class EmbeddingSettings:
    """What to embed, and how. Equal settings, models and inputs give equal files.

    unit (str): What gets a vector: "document", "sentence" or "token".
    layers (str | int): "mix" (as the component mixes them; untrained, that is their mean), "mean", "top", the index of one
        layer (0 is the token layer, negative ones count from the top), or "all" for all layers, one after the other.
    dtype (str): The type of the values: "float32" or "float16".
    weights (str | None): A weights directory, the name of a bundled model, or None for that of the language, or else the default
        one.
    precision (str): How the language model computes: "float32", or "int8", which is faster and a little less exact.
    pipeline (str | None): A directory or a package to load instead of a blank pipeline. It gets an `elmo` if it has none.
    lang (str): The language of a blank pipeline.
    segmenter (str | None): How a blank pipeline cuts Chinese text into words: "char" or "jieba"; None for spaCy's default.
    tokenized (bool): Whether each text is one tokenized sentence, its tokens separated by spaces.
    text (bool): Whether the text of each unit is written beside its vector.
    text_field, id_field (str): The names of the text and of the id in JSON lines and Parquet. Some row must have the id if it has
        another name than the default one.
    fields (tuple[str, ...] | None): Further fields of JSON lines and Parquet to write beside each vector; None for all of them.
    shard_size (int): The characters of text in a shard. A single text may be longer.
    skip_bad_rows (bool): Whether rows without a text are left out, instead of being an error.
    """

    unit: Unit = "document"
    layers: str | int = MIXED
    dtype: FloatType = "float32"
    weights: str | None = None
    precision: Precision = "float32"
    pipeline: str | None = None
    lang: str = "en"
    segmenter: str | None = None
    tokenized: bool = False
    text: bool = True
    text_field: str = "text"
    id_field: str = DEFAULT_ID
    fields: tuple[str, ...] | None = None
    shard_size: int = 1_000_000
    skip_bad_rows: bool = False

    def __post_init__(self) -> None:
        for name, types in (("unit", Unit), ("dtype", FloatType), ("precision", Precision)):
            if getattr(self, name) not in get_args(types):
                choices = ", ".join(get_args(types))
                raise ValueError(f"{name} must be one of {choices}, got {getattr(self, name)!r}.")
        if isinstance(self.layers, str) and self.layers not in LAYER_CHOICES:
            raise ValueError(
                f"layers must be one of {', '.join(LAYER_CHOICES)} or the index of a layer, got {self.layers!r}."
            )
        if self.shard_size < 1:
            raise ValueError(f"shard_size must be 1 or more, got {self.shard_size}.")
        if self.tokenized and self.pipeline is not None:
            raise ValueError(
                "tokenized text needs no pipeline: its tokens and sentences are given. Leave out one of the two."
            )
        if self.segmenter is not None and (self.tokenized or self.pipeline is not None):
            cut = "tokenized text is cut already" if self.tokenized else "a pipeline has its own tokenizer"
            raise ValueError(f"segmenter is for raw text and a blank pipeline, but {cut}. Leave out one of the two.")

    def with_absolute_paths(self) -> "EmbeddingSettings":
        """RETURNS (EmbeddingSettings): The settings for a process with another current directory."""
        weights, pipeline = self.weights, self.pipeline
        if weights is not None and weights not in bundled_models():
            weights = str(Path(weights).resolve())
        if pipeline is not None and Path(pipeline).exists():
            pipeline = str(Path(pipeline).resolve())
        return replace(self, weights=weights, pipeline=pipeline)

    def comparable(self) -> dict[str, Any]:
        """RETURNS (dict): The settings, without paths of models: `Embedder.identity` has checksums of them."""
        values = asdict(self) | {"fields": None if self.fields is None else list(self.fields)}
        return {name: value for name, value in values.items() if name not in ("weights", "pipeline")}
