"""The registered builders: the table of contents of the model."""

from typing import Literal

from spacy.tokens import Doc
from spacy.util import registry
from thinc.api import Model
from thinc.types import Floats2d

from .layers.elmo import elmo
from .layers.listener import ElmoListener
from .layers.mix import mix


@registry.architectures("spacy_elmo.Elmo.v1")
def build_elmo_v1(
    *,
    weights: str | None = None,
    layers: str | int | list[float] = "mix",
    gamma: float = 1.0,
    layer_norm: bool = False,
    dropout: float = 0.0,
    l2: float = 0.0,
    frozen: bool = True,
    initial_state: Literal["stored", "zero"] = "stored",
    max_batch_items: int = 8192,
    window: int = 320,
    overlap: int = 32,
) -> Model[list[Doc], list[Floats2d]]:
    """Build a biLM with a mix of its layers: what the `elmo` component runs, or a private one for a single component.

    weights (str | None): A weights directory, the name of a bundled model, or null for the default one.
    layers (str | int | list[float]): How the layers become one vector: "mix" (learned, starts as the mean), "mean",
        "top", the index of one layer (0 is the token layer), or a weight for each layer.
    gamma (float): A factor on the vectors; with "mix" the one to start from.
    layer_norm (bool): Whether each layer is normalized before mixing.
    dropout (float): The share of the vectors that is dropped while training.
    l2 (float): How strongly a learned mix is pulled to the mean (the paper's lambda).
    frozen (bool): Whether the biLM stays as it is in training. The mix learns all the same.
    initial_state (str): What the LSTMs start each sentence from: "stored" for the state that came with the weights,
        where there is one, or "zero".
    max_batch_items (int): The most tokens that go through the biLM at once: bounds the memory.
    window (int): The most tokens that are read in one go; longer sentences are cut into overlapping windows.
    overlap (int): Tokens of context that a window has on either side of a cut.
    RETURNS (Model): Docs to vectors.
    """
    settings = {"@architectures": "spacy_elmo.Elmo.v1", **locals()}
    # spaCy imports every plugin at every start; the biLM is imported by those who use it.
    from .layers.encoder import EncoderSettings, encoder

    return elmo(
        encoder(
            EncoderSettings(
                weights=weights,
                frozen=frozen,
                initial_state=initial_state,
                max_batch_items=max_batch_items,
                window=window,
                overlap=overlap,
            )
        ),
        mix(layers=layers, gamma=gamma, layer_norm=layer_norm, dropout=dropout, l2=l2),
        settings,
    )


@registry.architectures("spacy_elmo.ElmoListener.v1")
def build_elmo_listener_v1(
    *,
    upstream: str = "elmo",
    layers: str | int | list[float] = "mix",
    gamma: float = 1.0,
    layer_norm: bool = False,
    dropout: float = 0.5,
    l2: float = 0.001,
) -> Model[list[Doc], list[Floats2d]]:
    """Build a listener with a mix of its own: the paper's way, one mix for each task.

    upstream (str): The name of the `elmo` component to listen to.
    layers (str | int | list[float]): How the layers become one vector, as for `spacy_elmo.Elmo.v1`.
    gamma (float): A factor on the vectors; with "mix" the one to start from.
    layer_norm (bool): Whether each layer is normalized before mixing.
    dropout (float): The share of the vectors that is dropped while training, whatever [training.dropout] says.
    l2 (float): How strongly a learned mix is pulled to the mean (the paper's lambda).
    RETURNS (Model): Docs to vectors, as wide as the upstream's biLM.
    """
    return ElmoListener(upstream, mix(layers=layers, gamma=gamma, layer_norm=layer_norm, dropout=dropout, l2=l2))
