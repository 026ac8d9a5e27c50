"""The settings of `elmo` and of its listeners: the name, type, default, meaning and check of each stand here, once."""

import inspect
from collections.abc import Callable, Collection
from dataclasses import dataclass, fields
from typing import Any, TypeVar, get_args

from confection import ConfigValidationError

from ..bilm.config import InitialState, Precision
from .windows import check_window

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

LEARNED, CONCATENATED = "mix", "concat"
LAYER_CHOICES = (LEARNED, "mean", "top", CONCATENATED)


@dataclass(frozen=True, kw_only=True)
class MixSettings:
    """How the layers of the biLM become one vector per token.

    layers (str | int | list[float]): "mix" (learned, starts as the mean), "mean", "top", the index of one layer (0 is the
        token layer, negative ones count from the top), a weight for each layer, or "concat" for all layers concatenated.
    gamma (float): A factor on the vectors; with "mix" it is learned and this is its start.
    layer_norm (bool): Whether each layer is normalized before mixing.
    dropout (float): The fraction of the vectors' values that is dropped in training, whatever [training.dropout] says.
    l2 (float): How strongly a learned mix is pulled to the mean (the paper's lambda).
    """

    layers: str | int | list[float] = LEARNED
    gamma: float = 1.0
    layer_norm: bool = False
    dropout: float = 0.0
    l2: float = 0.0

    def __post_init__(self) -> None:
        _check_numbers(self)
        if isinstance(self.layers, str) and self.layers not in LAYER_CHOICES:
            choices = ", ".join(map(repr, LAYER_CHOICES))
            raise config_error(
                f"layers must be one of {choices}, the index of a layer or a list of weights, got {self.layers!r}."
            )
        if not 0 <= self.dropout < 1:
            raise config_error(f"dropout must be from 0 to below 1, got {self.dropout}.")
        if self.l2 < 0:
            raise config_error(f"l2 must be 0 or more, got {self.l2}.")


@dataclass(frozen=True, kw_only=True)
class ListenerSettings(MixSettings):
    """The settings of a listener: its mix, and its upstream component.

    upstream (str): The name of the `elmo` component to listen to, or "*" for any.
    """

    upstream: str = "elmo"
    dropout: float = 0.5
    l2: float = 0.001


@dataclass(frozen=True, kw_only=True)
class EncoderSettings:
    """How an encoder runs its biLM. They are not stored with the weights: a loaded pipeline takes them from its config.

    weights (str | None): A weights directory, the name of a bundled model, or null for that of the pipeline's language, if
        there is one, or else the default one.
    frozen (bool): Whether the biLM stays as it is in training. The mix is always trained.
    precision (str): "float32", or "int8" for a frozen biLM: up to twice as fast, in a quarter of the memory, with vectors
        that differ a little.
    initial_state (str): What the LSTMs start each sentence from: "stored" for the state that came with the weights, where
        there is one, or "zero".
    max_batch_items (int): The maximum number of tokens that go through the biLM at once. It bounds the memory.
    window (int): The maximum number of tokens of a window; longer sentences are cut into overlapping windows.
    overlap (int): Tokens of context that a window has on either side of a cut.
    cache_mb (int): Megabytes of the frozen biLM's outputs to cache in training, where each epoch needs them again.
    cache_dir (str | None): A directory for outputs that do not fit, or null to compute them again.
    learn_rate_share (float): The fraction of the optimizer's learning rate for the biLM, if it is not frozen.
    """

    weights: str | None = None
    frozen: bool = True
    precision: Precision = "float32"
    initial_state: InitialState = "stored"
    max_batch_items: int = 8192
    window: int = 320
    overlap: int = 32
    cache_mb: int = 1024
    cache_dir: str | None = None
    learn_rate_share: float = 0.1

    def __post_init__(self) -> None:
        _check_numbers(self)
        if self.weights == "":
            raise config_error("weights must be a directory, the name of a bundled model or null, got an empty text.")
        if self.precision not in get_args(Precision):
            raise config_error(f"precision must be one of {', '.join(get_args(Precision))}, got {self.precision!r}.")
        if self.precision == "int8" and not self.frozen:
            raise config_error("precision = 'int8' cannot be trained. Set frozen = true, or precision = 'float32'.")
        if self.max_batch_items < 1:
            raise config_error(f"max_batch_items must be 1 or more, got {self.max_batch_items}.")
        if self.cache_mb < 0:
            raise config_error(f"cache_mb must be 0 or more, got {self.cache_mb}.")
        if not self.learn_rate_share > 0:
            raise config_error(
                f"learn_rate_share must be above 0, got {self.learn_rate_share}. To keep the biLM as it is, set frozen = true."
            )
        try:
            check_window(self.window, self.overlap)
        except ValueError as error:
            raise config_error(str(error)) from None


@dataclass(frozen=True, kw_only=True)
class ElmoSettings(MixSettings, EncoderSettings):
    """The settings of `spacy_elmo.Elmo.v1`: an encoder with a mix of its layers."""

    def __post_init__(self) -> None:
        EncoderSettings.__post_init__(self)
        MixSettings.__post_init__(self)


@dataclass(frozen=True, kw_only=True)
class ComponentSettings:
    """What the component `elmo` writes to a doc.

    keep_layers (bool): Whether all layers are stored in `doc._.elmo_layers`. With false they are stored only if a component
        listens.
    vector_hooks (bool): Whether `doc.vector`, `span.vector` and `token.vector` are ELMo's, also where the vocab has static
        vectors or another component overwrites `Doc.tensor`.
    """

    keep_layers: bool = True
    vector_hooks: bool = False


def with_settings_of(*settings: type, without: Collection[str] = ()) -> Callable[[FunctionT], FunctionT]:
    """Give a function with **kwargs the parameters of settings classes. spaCy fills and checks configs by signatures.

    settings (type): Settings classes.
    without (Collection[str]): Settings to leave out.
    RETURNS (Callable): A decorator.
    """

    def decorate(function: FunctionT) -> FunctionT:
        own = inspect.signature(function)
        parameters = [parameter for parameter in own.parameters.values() if parameter.kind != parameter.VAR_KEYWORD]
        for cls in settings:
            parameters += [
                parameter for name, parameter in inspect.signature(cls).parameters.items() if name not in without
            ]
        function.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
        return function

    return decorate


def _check_numbers(settings: Any) -> None:
    """Refuse texts in place of numbers. confection reads `0.` as a text, because it is not JSON, accepts it because it looks
    like a number, and passes it on as a text."""
    for field in fields(settings):
        value = getattr(settings, field.name)
        if field.type in (int, float) and isinstance(value, str):
            raise config_error(f"{field.name} must be a number as JSON has it, such as 1 or 0.5, got {value!r:.80}.")


def config_error(message: str) -> ConfigValidationError:
    """RETURNS (ConfigValidationError): An error that `spacy train` shows as a message, without a traceback."""
    return ConfigValidationError(title="Config validation error", desc=message, show_config=False)
