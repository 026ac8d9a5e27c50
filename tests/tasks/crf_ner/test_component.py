"""The component `crf_ner` learns, is saved and loaded, and keeps existing entities."""

import warnings
from pathlib import Path

import numpy
import pytest
import spacy
from spacy.cli.train import train
from spacy.language import Language
from spacy.tokens import DocBin, Span
from spacy.training import Example

from spacy_elmo.bilm.weights import save_weights
from spacy_elmo.tasks.crf_ner.component import CrfNer
from spacy_elmo.tasks.crf_ner.inference import DOCS_AT_ONCE
from spacy_elmo.tasks.crf_ner.tags import Tags

from ...helpers import random_bilm
from .pipelines import (
    BILSTM,
    ELMO_LISTENER,
    LABELS,
    LEARNED,
    LISTENER,
    SMALL,
    TEXTS,
    TRAINING,
    entities,
    learn,
    make_examples,
    make_nlp,
    other_nlp,
)


def test_learns(trained: Language) -> None:
    assert entities(trained) == LEARNED
    assert trained("Ada Byron")[0].ent_iob_ == "B"
    scores = trained.evaluate(make_examples(trained))
    assert scores["ents_f"] == 1.0
    assert scores["ents_per_type"].keys() == set(LABELS)


@pytest.mark.parametrize("config", [BILSTM, LISTENER], ids=["bilstm", "listener"])
def test_learns_with_any_tok2vec(config: str) -> None:
    nlp = make_nlp(config)
    if config == LISTENER:
        nlp.add_pipe("tok2vec", first=True)
    learn(nlp)
    assert entities(nlp) == LEARNED
    if config == LISTENER:
        nlp.replace_listeners("tok2vec", "crf_ner", ["model.tok2vec"])
        nlp.remove_pipe("tok2vec")
        assert entities(nlp) == LEARNED


def test_learns_from_elmo(tmp_path: Path) -> None:
    save_weights(random_bilm(), tmp_path)
    nlp = make_nlp(ELMO_LISTENER)
    nlp.add_pipe("elmo", first=True, config={"weights": str(tmp_path)})
    losses = learn(nlp, steps=15)
    assert losses[-1] < 0.8 * losses[0]
    mix = nlp.get_pipe("crf_ner").model.get_ref("tok2vec").layers[0]
    assert any(node.has_param("w") and node.get_param("w").any() for node in mix.walk()), "the mix starts as zero"


def test_to_disk_and_back(trained: Language, tmp_path: Path) -> None:
    trained.to_disk(tmp_path)
    loaded = spacy.load(tmp_path)
    assert entities(loaded) == LEARNED
    assert loaded.get_pipe("crf_ner").labels == LABELS
    assert entities(other_nlp().from_disk(tmp_path)) == LEARNED


def test_to_bytes_and_back(trained: Language) -> None:
    assert entities(other_nlp().from_bytes(trained.to_bytes())) == LEARNED
    component = trained.get_pipe("crf_ner")
    other = other_nlp()
    other.get_pipe("crf_ner").from_bytes(component.to_bytes())
    assert entities(other) == LEARNED


def test_transitions_are_learned_and_averaged() -> None:
    nlp = make_nlp()
    examples = make_examples(nlp)
    optimizer = nlp.initialize(lambda: examples)
    optimizer.averages = {}
    layer = nlp.get_pipe("crf_ner").model.layers[-1]
    for _ in range(5):
        nlp.update(examples, sgd=optimizer)
    tags = Tags(nlp.get_pipe("crf_ner").labels)
    for name, legal in (("transitions", tags.legal_KK), ("start", tags.start_K), ("end", tags.end_K)):
        values = layer.get_param(name).copy()
        assert values[legal].all()
        assert not values[~legal].any()
        with nlp.use_params(optimizer.averages):
            assert not numpy.allclose(layer.get_param(name), values)


def test_several_processes(trained: Language) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python warns of forks beside threads
        docs = list(trained.pipe(TEXTS, n_process=2, batch_size=1))
    assert [[(ent.text, ent.label_) for ent in doc.ents] for doc in docs] == LEARNED


def test_more_docs_than_are_decoded_at_once(trained: Language) -> None:
    n = DOCS_AT_ONCE + 1
    assert entities(trained, TEXTS * n) == LEARNED * n


@pytest.mark.parametrize("position", [0, 1, 3])
@pytest.mark.parametrize("config", [SMALL, BILSTM], ids=["cnn", "bilstm"])
def test_empty_docs_anywhere(config: str, position: int) -> None:
    nlp = make_nlp(config)
    examples = make_examples(nlp)
    examples.insert(position, Example(nlp.make_doc(""), nlp.make_doc("")))
    losses = learn(nlp, examples=examples)
    texts = [example.text for example in examples]
    assert losses[-1] < 0.1 * losses[0]
    assert entities(nlp, ["", ""]) == [[], []]
    assert entities(nlp, texts) == [*LEARNED[:position], [], *LEARNED[position:]]


def test_update_with_only_empty_docs_and_with_one_token(trained: Language) -> None:
    assert trained("Babbage")[0].ent_iob_ in ("B", "O")
    empty = Example(trained.make_doc(""), trained.make_doc(""))
    assert trained.get_pipe("crf_ner").update([empty, empty]) == {"crf_ner": 0.0}
    one = Example.from_dict(trained.make_doc("Babbage"), {"entities": [(0, 7, "PERSON")]})
    assert trained.get_pipe("crf_ner").update([one])["crf_ner"] > 0


def test_missing_annotation_teaches_nothing() -> None:
    """Docs of which only the entities of one label are annotated, and docs without annotation."""
    nlp = make_nlp()
    examples = []
    for text, annotated in TRAINING:
        reference = nlp.make_doc(text)
        spans = [reference.char_span(*entity) for entity in annotated if entity[2] == "PERSON"]
        reference.set_ents(spans, default="missing")
        examples.append(Example(nlp.make_doc(text), reference))
    learn(nlp, examples=examples)
    component = nlp.get_pipe("crf_ner")
    assert component.labels == ("PERSON",)
    found = entities(nlp)
    assert ("Ada Byron", "PERSON") in found[0]
    assert ("Babbage", "PERSON") in found[1]
    unannotated = [Example(nlp.make_doc(text), nlp.make_doc(text)) for text in TEXTS]
    assert component.update(unannotated) == {"crf_ner": 0.0}


def test_frozen_component_does_not_change(trained: Language) -> None:
    nlp = spacy.blank("en").from_config(trained.config).from_bytes(trained.to_bytes())
    before = nlp.get_pipe("crf_ner").model.to_bytes()
    optimizer = nlp.resume_training()
    nlp.update(make_examples(nlp), sgd=optimizer, exclude=["crf_ner"])
    assert nlp.get_pipe("crf_ner").model.to_bytes() == before
    with nlp.select_pipes(disable="crf_ner"):
        assert entities(nlp) == [[], [], []]
    assert entities(nlp) == LEARNED


def test_entities_of_earlier_components_are_kept(trained: Language) -> None:
    nlp = spacy.blank("en").from_config(trained.config).from_bytes(trained.to_bytes())
    ruler = nlp.add_pipe("entity_ruler", before="crf_ner")
    ruler.add_patterns(
        [{"label": "THING", "pattern": "Byron wrote", "id": "q1"}, {"label": "PERSON", "pattern": "New York"}]
    )
    (first, _, last) = nlp.pipe(TEXTS)
    assert [(ent.text, ent.label_, ent.id_) for ent in first.ents][-2:] == [
        ("Byron wrote", "THING", "q1"),
        ("London", "PLACE", ""),
    ]
    assert ("New York", "PERSON") in [(ent.text, ent.label_) for ent in last.ents]
    doc = trained.make_doc(TEXTS[1])
    doc.set_ents([], blocked=[doc[2:3]], default="outside")
    assert trained.get_pipe("crf_ner")(doc).ents == ()
    doc = trained.make_doc(TEXTS[1])
    doc.set_ents([Span(doc, 2, 3, label="PLACE", kb_id="Q46633")])
    assert [(ent.label_, ent.kb_id_) for ent in trained.get_pipe("crf_ner")(doc).ents] == [("PLACE", "Q46633")]


def test_factory_is_like_that_of_ner() -> None:
    nlp = spacy.blank("en")
    meta, of_ner = nlp.get_factory_meta("crf_ner"), nlp.get_factory_meta("ner")
    assert meta.assigns == of_ner.assigns
    assert meta.default_score_weights == of_ner.default_score_weights
    assert (meta.default_config or {})["scorer"] == (of_ner.default_config or {})["scorer"]
    component = nlp.add_pipe("crf_ner")
    assert isinstance(component, CrfNer)
    assert component.model.get_ref("tok2vec").get_dim("nO") == 96


def test_spacy_train(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nlp = make_nlp()
    DocBin(docs=[example.reference for example in make_examples(nlp)]).to_disk(tmp_path / "train.spacy")
    (tmp_path / "labels.json").write_text('["PLACE", "PERSON"]', encoding="utf8")
    config = nlp.config.copy()
    config["initialize"]["components"] = {
        "crf_ner": {"labels": {"@readers": "spacy.read_labels.v1", "path": str(tmp_path / "labels.json")}}
    }
    config.to_disk(tmp_path / "config.cfg")
    data = str(tmp_path / "train.spacy")
    overrides = {"paths.train": data, "paths.dev": data, "training.max_steps": 30, "training.eval_frequency": 15}
    train(tmp_path / "config.cfg", tmp_path / "out", overrides={**overrides, "training.optimizer.learn_rate": 0.01})
    assert "ENTS_F" in capsys.readouterr().out
    loaded = spacy.load(tmp_path / "out" / "model-best")
    assert entities(loaded) == LEARNED
    assert loaded.get_pipe("crf_ner").labels == ("PLACE", "PERSON")
