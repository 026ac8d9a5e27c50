"""The component `crf_ner`: it learns, keeps what it learned, and does not touch what others found."""

import warnings
from pathlib import Path
from typing import Any, cast

import numpy
import pytest
import spacy
from spacy.cli.train import train
from spacy.language import Language
from spacy.tokens import DocBin, Span
from spacy.training import Example
from thinc.api import Config, fix_random_seed

from spacy_elmo.bilm.weights import save_weights
from spacy_elmo.tasks.crf_ner.component import CrfNer
from spacy_elmo.tasks.crf_ner.inference import DOCS_AT_ONCE
from spacy_elmo.tasks.crf_ner.tags import Tags

from ..helpers import random_bilm

pytestmark = pytest.mark.usefixtures("one_thread")

Array = Any  # NumPy's arrays, which are not thinc's to a type checker
TagPath = tuple[int, ...]


# --- learning, and what was learned ---

TRAINING = [
    ("Ada Byron wrote it in London .", [(0, 9, "PERSON"), (22, 28, "PLACE")]),
    ("They met Babbage there .", [(9, 16, "PERSON")]),
    ("Nobody was in Paris or New York City .", [(14, 19, "PLACE"), (23, 36, "PLACE")]),
]
LEARNED = [
    [("Ada Byron", "PERSON"), ("London", "PLACE")],
    [("Babbage", "PERSON")],
    [("Paris", "PLACE"), ("New York City", "PLACE")],
]
TEXTS = [text for text, _ in TRAINING]
LABELS = ("PERSON", "PLACE")

SMALL = """
[model]
@architectures = "spacy_elmo.CrfTagger.v1"

[model.tok2vec]
@architectures = "spacy.HashEmbedCNN.v2"
pretrained_vectors = null
width = 16
depth = 1
embed_size = 200
window_size = 1
maxout_pieces = 2
subword_features = true
"""
BILSTM = """
[model]
@architectures = "spacy_elmo.CrfTagger.v1"

[model.tok2vec]
@architectures = "spacy.Tok2Vec.v2"

[model.tok2vec.embed]
@architectures = "spacy.MultiHashEmbed.v2"
width = 16
attrs = ["NORM", "SHAPE"]
rows = [200, 100]
include_static_vectors = false

[model.tok2vec.encode]
@architectures = "spacy.TorchBiLSTMEncoder.v1"
width = 16
depth = 1
dropout = 0.0
"""
LISTENER = """
[model]
@architectures = "spacy_elmo.CrfTagger.v1"

[model.tok2vec]
@architectures = "spacy.Tok2VecListener.v1"
width = 96
"""
ELMO_LISTENER = """
[model]
@architectures = "spacy_elmo.CrfTagger.v1"

[model.tok2vec]
@architectures = "spacy_elmo.ElmoListener.v1"
dropout = 0.0
"""


def model_config(text: str) -> Any:
    return Config().from_str(text)


def make_nlp(config: str = SMALL) -> Language:
    nlp = spacy.blank("en")
    nlp.add_pipe("crf_ner", config=model_config(config))
    return nlp


def make_examples(nlp: Language, training: Any = TRAINING) -> list[Example]:
    return [Example.from_dict(nlp.make_doc(text), {"entities": entities}) for text, entities in training]


def learn(nlp: Language, steps: int = 25, seed: int = 0, examples: list[Example] | None = None) -> list[float]:
    """Train a pipeline, and give the losses of all steps."""
    fix_random_seed(seed)
    examples = make_examples(nlp) if examples is None else examples
    optimizer = nlp.initialize(lambda: examples)
    optimizer.learn_rate = 0.01
    return [nlp.update(examples, sgd=optimizer)["crf_ner"] for _ in range(steps)]


def entities(nlp: Language, texts: list[str] = TEXTS) -> list[list[tuple[str, str]]]:
    return [[(ent.text, ent.label_) for ent in doc.ents] for doc in nlp.pipe(texts)]


@pytest.fixture(scope="module")
def trained() -> Language:
    nlp = make_nlp()
    losses = learn(nlp)
    assert losses[-1] < 0.01 * losses[0]
    return nlp


def other_nlp() -> Language:
    """Make a pipeline of the same sizes and other weights: one that loads nothing would be found out."""
    nlp = make_nlp()
    learn(nlp, steps=0, seed=1)
    assert entities(nlp) != LEARNED
    return nlp


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
        spans = [reference.char_span(*place) for place in annotated if place[2] == "PERSON"]
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


# --- labels ---


def initialize(nlp: Language, **settings: Any) -> CrfNer:
    examples = make_examples(nlp)
    component = cast(CrfNer, nlp.get_pipe("crf_ner"))
    component.initialize(lambda: examples, nlp=nlp, **settings)
    return component


def test_labels_of_data_and_of_a_file() -> None:
    component = initialize(make_nlp())
    assert component.labels == component.label_data == LABELS
    assert component.model.get_dim("nO") == 9
    assert component.add_label("PLACE") == 0
    labels = ["PLACE", "THING", "PERSON"]
    component = initialize(make_nlp(), labels=labels)
    assert component.labels == tuple(labels)
    assert component.model.get_dim("nO") == component.model.layers[-1].get_dim("nO") == 13
    nlp = make_nlp()
    assert nlp.get_pipe("crf_ner").add_label("THING") == 1
    assert initialize(nlp).labels == ("THING", *LABELS)
    assert initialize(nlp).labels == ("THING", *LABELS), "twice is once"


def test_label_that_is_not_in_the_file() -> None:
    with pytest.raises(
        ValueError, match=r"labels \['PLACE'\], but it was initialized with \['PERSON'\]. Write its file"
    ):
        initialize(make_nlp(), labels=["PERSON"])


def test_label_that_appears_in_training(trained: Language) -> None:
    example = Example.from_dict(trained.make_doc("It works"), {"entities": [(0, 2, "THING")]})
    with pytest.raises(ValueError, match=r"'crf_ner' has entities with the labels \['THING'\]"):
        trained.update([example], sgd=False)


def test_label_after_initialization(trained: Language) -> None:
    with pytest.raises(ValueError, match=r"'THING' to 'crf_ner': its model scores 9 tags, .*\['PERSON', 'PLACE'\]"):
        trained.get_pipe("crf_ner").add_label("THING")


@pytest.mark.parametrize("label", ["", 3, None])
def test_label_that_is_none(label: Any) -> None:
    with pytest.raises(ValueError, match=f"string that is not empty, got {label!r}"):
        make_nlp().get_pipe("crf_ner").add_label(label)


def test_no_labels() -> None:
    nlp = make_nlp()
    examples = make_examples(nlp, [("Nothing here .", [])])
    with pytest.raises(ValueError, match=r"'crf_ner' has no labels: no example .* has an entity"):
        nlp.initialize(lambda: examples)


def test_only_empty_docs_to_initialize_with() -> None:
    nlp = make_nlp()
    examples = make_examples(nlp, [("", [])])
    with pytest.raises(ValueError, match="'crf_ner' cannot be initialized: all docs in the training data are empty"):
        nlp.get_pipe("crf_ner").initialize(lambda: examples, labels=["PERSON"])


@pytest.mark.parametrize(("nO", "message"), [(13, "nO is 13, but .* are 9"), (5, "nO is 5, but .* are 9")])
def test_number_of_tags_that_does_not_fit(nO: int, message: str) -> None:
    nlp = make_nlp(SMALL.replace('CrfTagger.v1"', f'CrfTagger.v1"\nnO = {nO}'))
    with pytest.raises(ValueError, match=message):
        initialize(nlp)
    assert initialize(make_nlp(SMALL.replace('CrfTagger.v1"', 'CrfTagger.v1"\nnO = 9'))).labels == LABELS


@pytest.mark.parametrize("labels", ["PLACE", {"0": {"PLACE": 1}}])
def test_labels_of_another_form(labels: Any) -> None:
    with pytest.raises(ValueError, match="labels of 'crf_ner' must be a list, got"):
        initialize(make_nlp(), labels=labels)


def test_not_initialized() -> None:
    with pytest.raises(ValueError, match="'crf_ner' could not be run. Did you forget to call `initialize"):
        make_nlp()("Ada wrote it .")


def test_weights_that_are_not_numbers(trained: Language) -> None:
    nlp = spacy.blank("en").from_config(trained.config).from_bytes(trained.to_bytes())
    output = nlp.get_pipe("crf_ner").model.get_ref("output_layer")
    output.set_param("b", output.get_param("b") * numpy.float32("nan"))
    with pytest.raises(ValueError, match="not all numbers, .* have diverged in training"):
        nlp("Ada wrote it .")
    with pytest.raises(ValueError, match="not all numbers, .* have diverged in training"):
        nlp.update(make_examples(nlp), sgd=False)


# --- in spaCy ---


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
