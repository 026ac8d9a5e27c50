"""One config in several variants: where ELMo goes in, and how its layers are mixed."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from confection import Config
from spacy.util import registry

LISTENER, TOK2VEC = "spacy_elmo.ElmoListener.v1", "spacy_elmo.Tok2Vec.v1"
CLASSIFIER = "spacy_elmo.BiattentiveClassifier.v1"
PLACES = {"none": (False, False), "input": (True, False), "output": (False, True), "both": (True, True)}

Section = dict[str, Any]


@dataclass(frozen=True)
class Variant:
    """A variant of a config.

    name (str): Its name, which is also that of its directory.
    title (str): Its name on pages.
    place (str): Where the task's model gets ELMo: a key of `PLACES`.
    settings (dict[str, Any]): Settings of its listeners that differ from the config's.
    """

    name: str
    title: str
    place: str
    settings: dict[str, Any]


@dataclass(frozen=True)
class Slot:
    """Where a config can have ELMo.

    tok2vec (dict): The block of a `spacy_elmo.Tok2Vec.v1`, which has the input.
    output (tuple | None): The block and the setting of the output, if the model has one.
    """

    tok2vec: Section
    output: tuple[Section, str] | None


def make_variant(config: Config, variant: Variant) -> Config:
    """Change a config to a variant of it. All listeners of the variant are copies of the one at the input of the config.

    config (Config): The config, not interpolated. It stays as it is.
    variant (Variant): The variant.
    RETURNS (Config): The changed config.
    """
    original, config = config, config.copy()
    at_input, at_output = PLACES[variant.place]
    slots = list(_find_slots(config.get("components", {})))
    if not slots:
        raise ValueError(
            f"No component of the config has a {TOK2VEC} with a {LISTENER} as elmo_in, so that there is no place where ELMo can be "
            f"changed or left out. configs/ner.cfg shows such a component."
        )
    for slot in slots:
        listener = {**slot.tok2vec["elmo_in"], **variant.settings}
        if slot.tok2vec.get("embed") is None and not at_input:
            raise ValueError(
                f"The variant {variant.name!r} has no ELMo at the input, and the {TOK2VEC} of the config has no embed either: nothing "
                f"would be left to encode. Add an embed to the config, such as spacy.MultiHashEmbed.v2."
            )
        slot.tok2vec["elmo_in"] = dict(listener) if at_input else None
        if slot.output is not None:
            block, setting = slot.output
            block[setting] = dict(listener) if at_output else None
        elif at_output:
            raise ValueError(
                f"The variant {variant.name!r} has ELMo at the output, but the {TOK2VEC} of the config has no encoder, and no "
                f"{CLASSIFIER} around it. Give it an encoder (encode)."
            )
        _check_listener(listener, original)
    if not at_input and not at_output:
        _remove_elmo(config)
    return config


def _find_slots(section: Section, classifier: Section | None = None) -> Iterator[Slot]:
    """Find the places for ELMo. A tok2vec without an encoder of its own leaves the output to the classifier around it."""
    if section.get("@architectures") == CLASSIFIER:
        classifier = section
    elmo_in = section.get("elmo_in")
    if section.get("@architectures") == TOK2VEC and isinstance(elmo_in, dict):
        if section.get("encode") is not None:
            yield Slot(section, (section, "elmo_out"))
        else:
            yield Slot(section, None if classifier is None else (classifier, "output"))
        return
    for value in section.values():
        if isinstance(value, dict):
            yield from _find_slots(value, classifier)


def _check_listener(listener: Section, config: Config) -> None:
    """Refuse settings that a listener does not have, before hours of training. Its values may be variables of the config."""
    config = config.copy()
    config["listener"] = listener
    registry.resolve({"listener": config.interpolate()["listener"]})


def _remove_elmo(config: Config) -> None:
    names = [name for name, component in config["components"].items() if component.get("factory") == "elmo"]
    for name in names:
        del config["components"][name]
    training = config.get("training", {})
    lists = [config["nlp"]["pipeline"], *(training.get(key) for key in ("frozen_components", "annotating_components"))]
    for found in lists:
        if isinstance(found, list):
            found[:] = [name for name in found if name not in names]
