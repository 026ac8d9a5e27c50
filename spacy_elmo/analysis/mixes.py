"""The learned mixes of a trained pipeline: which of ELMo's layers its components use."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..charts.heat_map import draw_heat_map
from .layer_name import layer_name

if TYPE_CHECKING:
    from spacy.language import Language
    from thinc.api import Model


@dataclass(frozen=True)
class LearnedMix:
    """A learned mix of layers: gamma * sum_k weights_k * layer_k (Peters et al. 2018, equation 1).

    component (str): The name of its component.
    part (str): The part of the component's model that has the mix, such as "tok2vec", or "elmo_in" and "elmo_out".
    weights (list[float]): The weight of each layer, the token layer first. The weights add up to 1.
    gamma (float): The factor of the sum.
    """

    component: str
    part: str
    weights: list[float]
    gamma: float

    @property
    def name(self) -> str:
        """RETURNS (str): The component and the part."""
        return f"{self.component}.{self.part}" if self.part else self.component


def learned_mixes(nlp: "Language") -> list[LearnedMix]:
    """List the learned mixes of a pipeline, in the pipeline's order.

    nlp (Language): The pipeline.
    RETURNS (list[LearnedMix]): One mix for each listener that learns its own. The mix of an `elmo` component is included
        if stock listeners share it, or if it has no listeners. Otherwise it is never trained.
    """
    from thinc.api import Model

    from ..layers.listener import ElmoListener
    from ..layers.scalar_mix import layer_weights

    found = []
    for component, pipe in nlp.pipeline:
        model = getattr(pipe, "model", None)
        listeners = getattr(pipe, "listeners", [])
        all_are_ours = bool(listeners) and all(isinstance(listener, ElmoListener) for listener in listeners)
        if not isinstance(model, Model) or all_are_ours:
            continue
        for mix, part in _find_mixes(model):
            found.append(LearnedMix(component, part, layer_weights(mix), float(mix.get_param("gamma")[0])))
    return found


def draw_mixes(mixes: Sequence[LearnedMix]) -> str:
    """Draw learned mixes as a heat map.

    mixes (Sequence[LearnedMix]): The mixes, at least one.
    RETURNS (str): An SVG document.
    """
    return draw_heat_map(
        "The weights of ELMo's layers",
        layer_names(mixes),
        [(mix.name, mix.weights) for mix in mixes],
        [f"gamma {mix.gamma:.2f}" for mix in mixes],
    )


def layer_names(mixes: Sequence[LearnedMix]) -> list[str]:
    """RETURNS (list[str]): The names of the layers, in charts and tables."""
    return [layer_name(i) for i in range(max(len(mix.weights) for mix in mixes))]


def _find_mixes(model: "Model[Any, Any]") -> "list[tuple[Model[Any, Any], str]]":
    """Find the learned mixes of a model, each with the name of the innermost part that contains it."""
    parts: dict[int, str] = {}
    for node in model.walk():
        for name in node.ref_names:
            part = node.maybe_get_ref(name)
            # Outer nodes come first, so that inner names replace theirs.
            for inner in part.walk() if part is not None else []:
                parts[inner.id] = name
    mixes = {node.id: node for node in model.walk(order="dfs_pre") if "nL" in node.dim_names and node.has_param("w")}
    return [(mix, parts.get(id, "")) for id, mix in mixes.items()]
