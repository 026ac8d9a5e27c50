"""Who listens to whom in a pipeline."""

from collections.abc import Mapping
from typing import Any

from spacy.language import Language
from spacy.pipeline.tok2vec import Tok2Vec, Tok2VecListener
from thinc.api import Model

from .listener import ElmoListener
from .settings import config_error


class ListenerMap(dict[str, list[Tok2VecListener]]):
    """The listeners of each component.

    `Language.replace_listeners` looks a component up with `get`, and nothing else in spaCy does. It then reads the config
    block model.tok2vec of that component, which a tok2vec does not have, and would fail with a KeyError.
    """

    def __init__(self, listeners: Mapping[str, list[Tok2VecListener]] | None = None) -> None:
        super().__init__(listeners or {})
        self.irreplaceable: set[str] = set()

    def get(self, name: str, default: Any = None) -> Any:
        """RETURNS (list): The listeners of a component, which are to be replaced."""
        if name in self.irreplaceable:
            raise ValueError(
                f"spaCy cannot replace the listeners of '{name}', which is itself a tok2vec: it looks for them in the block "
                f"model.tok2vec of a component's config. Replace the listeners of the components that listen to '{name}' "
                f"instead, or write a block spacy_elmo.Elmo.v1 into the config of '{name}' and train it again."
            )
        return super().get(name, default)


def check_wiring(elmo: Any, nlp: Language) -> None:
    """Check that each listener has exactly one upstream.

    elmo (Elmo): The component. It connects the listeners of "*" that fit, now that its width is known.
    nlp (Language): Its pipeline.
    """
    position = nlp.pipe_names.index(elmo.name)
    earlier, later = nlp.pipeline[:position], nlp.pipeline[position + 1 :]
    for name, component in earlier:
        if any(listener.upstream_name == elmo.name for listener in _find_listeners(component)):
            raise config_error(
                f"'{name}' listens to '{elmo.name}', which comes after it. Put '{elmo.name}' before '{name}'."
            )
    for _, component in later:
        elmo.find_listeners(component)
    for name, other in nlp.pipeline:
        if isinstance(other, Tok2Vec) and other is not elmo:
            _check_shared_listeners(elmo, name, other)
    fed = {listener for _, other in nlp.pipeline for listener in getattr(other, "listeners", [])}
    for _, component in later:
        for listener in _find_listeners(component):
            if listener.upstream_name == "*" and listener not in fed:
                elmo.check_listener(listener)  # it has another width


def _check_shared_listeners(elmo: Any, name: str, other: Tok2Vec) -> None:
    shared = {
        component: both
        for component, listeners in elmo.listener_map.items()
        if (both := set(listeners) & set(other.listeners))
    }
    if shared:
        is_own = any(isinstance(listener, ElmoListener) for both in shared.values() for listener in both)
        raise config_error(
            f"Listeners with upstream = '*' in {list(shared)} listen to both '{elmo.name}' and '{name}'. A listener can "
            f'have only one upstream. Set it by name, such as upstream = "{elmo.name if is_own else name}".'
        )


def _find_listeners(component: Any) -> list[Tok2VecListener]:
    model = getattr(component, "model", None)
    return [node for node in model.walk() if isinstance(node, Tok2VecListener)] if isinstance(model, Model) else []
