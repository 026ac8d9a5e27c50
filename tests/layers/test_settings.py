"""Each setting in one place: signatures, defaults and documentation follow from it."""

import inspect
import json
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.language import Language

from spacy_elmo.architectures import build_elmo_listener_v1, build_elmo_v1
from spacy_elmo.layers.settings import ComponentSettings, ElmoSettings, EncoderSettings, ListenerSettings, MixSettings

DOCS = Path(__file__).parents[2] / "docs" / "usage.md"
FOR_LISTENERS = {"dropout", "l2"}


def defaults_of(*settings: type) -> dict[str, Any]:
    return {field.name: field.default for cls in settings for field in fields(cls)}


def documented_defaults(heading: str) -> dict[str, Any]:
    """Read the first table below a heading: a setting a row, its name and its default in backticks."""
    text = DOCS.read_text(encoding="utf8")
    (table,) = re.findall(
        rf"#+ {heading}\n(?:(?!\n#).)*?\n\| setting \|[^\n]*\n\|[-|]*\n(.*?)\n\n", text, flags=re.DOTALL
    )
    rows = [re.match(r"\| `(\w+)` \| `([^`]*)` \| \S", row) for row in table.splitlines()]
    assert all(rows), f"Each row of the table under {heading!r} needs one setting and its default, in backticks."
    return {row[1]: json.loads(row[2]) for row in rows if row}


def test_factory_has_the_settings_and_their_defaults() -> None:
    expected = {
        name: value for name, value in defaults_of(ComponentSettings, ElmoSettings).items() if name not in FOR_LISTENERS
    }
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo")
    assert Language.get_factory_meta("elmo").default_config == {"model": None, **expected}
    assert nlp.get_pipe_config("elmo") == {"factory": "elmo", "model": None, **expected}


@pytest.mark.parametrize(
    ("builder", "settings"), [(build_elmo_v1, ElmoSettings), (build_elmo_listener_v1, ListenerSettings)]
)
def test_architectures_have_the_settings_and_their_defaults(builder: Any, settings: type) -> None:
    parameters = inspect.signature(builder).parameters
    assert {name: parameter.default for name, parameter in parameters.items()} == defaults_of(settings)
    with pytest.raises(TypeError, match="wieghts"):
        builder(wieghts="x")


def test_settings_of_the_component_are_documented() -> None:
    expected = {
        name: value for name, value in defaults_of(ComponentSettings, ElmoSettings).items() if name not in FOR_LISTENERS
    }
    assert documented_defaults("Settings of the component") == {**expected, "model": None}


def test_settings_of_the_listener_are_documented() -> None:
    assert documented_defaults("Listeners") == defaults_of(ListenerSettings)


@pytest.mark.parametrize("settings", [MixSettings, ListenerSettings, EncoderSettings, ComponentSettings])
def test_every_setting_is_explained_where_it_stands(settings: type) -> None:
    own = settings.__annotations__.keys() - set().union(
        *(base.__annotations__.keys() for base in settings.__mro__[1:-1])
    )
    for name in own:
        assert re.search(rf"^    {name} \(", settings.__doc__ or "", flags=re.MULTILINE), name


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"dropout": -0.1}, "dropout must be from 0 to below 1, got -0.1"),
        ({"dropout": 1.0}, "dropout must be from 0 to below 1, got 1.0"),
        ({"l2": -0.1}, "l2 must be 0 or more, got -0.1"),
        ({"layers": "topp"}, "got 'topp'"),
        ({"cache_mb": -1}, "cache_mb must be 0 or more, got -1"),
        ({"learn_rate_share": 0.0}, "learn_rate_share must be above 0, got 0.0. .* frozen = true"),
        ({"window": 64}, "window = 64 and overlap = 32"),
        ({"dropout": "0."}, "dropout must be a number as JSON has it, such as 1 or 0.5, got '0.'"),
        ({"cache_mb": "1_000"}, "cache_mb must be a number as JSON has it, such as 1 or 0.5, got '1_000'"),
    ],
)
def test_settings_are_checked(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ElmoSettings(**settings)
