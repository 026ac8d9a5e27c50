"""What a trained pipeline made of ELMo's layers, read, printed and drawn."""

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy
import pytest
import spacy
from spacy.language import Language

from spacy_elmo.analysis.mixes import LearnedMix, draw_mixes, learned_mixes
from spacy_elmo.bilm.weights import save_weights

from ..command_line import run
from ..helpers import random_bilm
from ..layers.test_tok2vec import CNN, ELMO, EMBED, make_examples

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def nlp(tmp_path: Path) -> Language:
    """A pipeline with two listeners in one component and one in another, each with a mix of its own."""
    save_weights(random_bilm(1), tmp_path / "weights")
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"weights": str(tmp_path / "weights"), "layers": "top"})
    tok2vec: dict[str, Any] = {"@architectures": "spacy_elmo.Tok2Vec.v1", "embed": EMBED, "encode": CNN}
    for name, part in (
        ("both", {**tok2vec, "elmo_in": ELMO, "elmo_out": ELMO}),
        ("alone", ELMO),
        ("fixed", {**ELMO, "layers": "top"}),
    ):
        nlp.add_pipe("tagger", name=name, config={"model": {"@architectures": "spacy.Tagger.v2", "tok2vec": part}})
    nlp.initialize(lambda: make_examples(nlp))
    for i, (component, ref) in enumerate([("both", "elmo_in"), ("both", "elmo_out"), ("alone", "tok2vec")], start=1):
        model = nlp.get_pipe(component).model.get_ref("tok2vec")
        listener = model if ref == "tok2vec" else model.get_ref(ref)
        mix = next(node for node in listener.walk() if node.has_param("w"))
        mix.set_param("w", numpy.log(numpy.asarray([1.0, i, 2.0 * i], dtype="f")))
        mix.set_param("gamma", numpy.asarray([i / 2], dtype="f"))
    return nlp


EXPECTED = [
    ("both.elmo_in", [1 / 4, 1 / 4, 2 / 4], 0.5),
    ("both.elmo_out", [1 / 7, 2 / 7, 4 / 7], 1.0),
    ("alone.tok2vec", [1 / 10, 3 / 10, 6 / 10], 1.5),
]


def test_mixes_are_read_from_the_pipeline(nlp: Language) -> None:
    mixes = learned_mixes(nlp)
    assert [mix.name for mix in mixes] == [name for name, _, _ in EXPECTED]
    for mix, (_, weights, gamma) in zip(mixes, EXPECTED, strict=True):
        assert mix.weights == pytest.approx(weights, abs=1e-6)
        assert mix.gamma == gamma


def test_mix_of_the_component_itself(tmp_path: Path) -> None:
    save_weights(random_bilm(1), tmp_path / "weights")
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"weights": str(tmp_path / "weights")})
    assert learned_mixes(nlp) == []
    nlp("Now the weights are there")
    (mix,) = learned_mixes(nlp)
    assert (mix.name, mix.gamma) == ("elmo", 1.0)
    assert mix.weights == pytest.approx([1 / 3] * 3)


def test_command_prints_and_draws(nlp: Language, tmp_path: Path) -> None:
    nlp.to_disk(tmp_path / "pipeline")
    output = tmp_path / "new" / "mixes.svg"
    printed = run("mixes", tmp_path / "pipeline", "--output", output)
    assert "both.elmo_out 0.143 0.286 0.571 1.000" in printed
    texts = [text.text for text in ElementTree.parse(output).getroot().iter(f"{SVG}text")]
    assert texts[1:4] == ["token layer", "LSTM layer 1", "LSTM layer 2"]
    assert texts[4:9] == ["both.elmo_in", "0.25", "0.25", "0.50", "gamma 0.50"]


@pytest.mark.parametrize(
    ("model", "message"), [("nowhere", "Can't find model 'nowhere'"), ("blank", "has learned a mix of ELMo's layers")]
)
def test_command_on_a_pipeline_without_mixes(model: str, message: str, tmp_path: Path) -> None:
    spacy.blank("en").to_disk(tmp_path / "blank")
    path = str(tmp_path / "blank") if model == "blank" else model
    assert message in run("mixes", path, code=1)


def test_pipeline_that_needs_another_package(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(model: str) -> Language:
        raise ImportError("Japanese support requires SudachiPy")

    monkeypatch.setattr(spacy, "load", fail)
    assert "Japanese support requires SudachiPy" in run("mixes", "pipeline", code=1)


def test_command_draws_svg_alone(nlp: Language, tmp_path: Path) -> None:
    nlp.to_disk(tmp_path / "pipeline")
    printed = run("mixes", tmp_path / "pipeline", "--output", tmp_path / "mixes.png", code=1)
    assert "The chart is an SVG file: its name must end in .svg, got 'mixes.png'." in printed
    assert not (tmp_path / "mixes.png").exists()


DEPTHS = [LearnedMix("a", "", [0.5, 0.5], 1.0), LearnedMix("b", "in", [0.2, 0.3, 0.5], 2.0)]


def test_mixes_of_different_depth_are_printed_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spacy.blank("en").to_disk(tmp_path / "pipeline")
    monkeypatch.setattr("spacy_elmo.analysis.mixes.learned_mixes", lambda nlp: DEPTHS)
    printed = run("mixes", tmp_path / "pipeline")
    assert "a 0.500 0.500 1.000 b.in 0.200 0.300 0.500 2.000" in printed


def test_mixes_of_different_depth_are_drawn_together() -> None:
    svg = draw_mixes(DEPTHS)
    texts = [text.text for text in ElementTree.fromstring(svg).iter(f"{SVG}text")]
    assert texts[1:] == [
        "token layer",
        "LSTM layer 1",
        "LSTM layer 2",
        "a",
        "0.50",
        "0.50",
        "gamma 1.00",
        "b.in",
        "0.20",
        "0.30",
        "0.50",
        "gamma 2.00",
    ]
