"""The labels of `crf_ner`, and its errors."""

from typing import Any, cast

import numpy
import pytest
import spacy
from spacy.language import Language
from spacy.training import Example

from spacy_elmo.tasks.crf_ner.component import CrfNer

from .pipelines import (
    LABELS,
    SMALL,
    make_examples,
    make_nlp,
)


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
        ValueError, match=r"labels \['PLACE'\], but it was initialized with \['PERSON'\]. Write a new labels file"
    ):
        initialize(make_nlp(), labels=["PERSON"])


def test_label_that_appears_in_training(trained: Language) -> None:
    example = Example.from_dict(trained.make_doc("It works"), {"entities": [(0, 2, "THING")]})
    with pytest.raises(ValueError, match=r"'crf_ner' has entities with the labels \['THING'\]"):
        trained.update([example], sgd=False)


def test_label_after_initialization(trained: Language) -> None:
    with pytest.raises(
        ValueError,
        match=r"'THING' to 'crf_ner': its model is initialized with 9 tags for the labels \['PERSON', 'PLACE'\]",
    ):
        trained.get_pipe("crf_ner").add_label("THING")


@pytest.mark.parametrize("label", ["", 3, None])
def test_label_must_be_a_non_empty_string(label: Any) -> None:
    with pytest.raises(ValueError, match=f"must be a non-empty string, got {label!r}"):
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


@pytest.mark.parametrize(("nO", "message"), [(13, "nO is 13, but .* need 9 tags"), (5, "nO is 5, but .* need 9 tags")])
def test_number_of_tags_that_does_not_fit(nO: int, message: str) -> None:
    nlp = make_nlp(SMALL.replace('CrfTagger.v1"', f'CrfTagger.v1"\nnO = {nO}'))
    with pytest.raises(ValueError, match=message):
        initialize(nlp)
    assert initialize(make_nlp(SMALL.replace('CrfTagger.v1"', 'CrfTagger.v1"\nnO = 9'))).labels == LABELS


@pytest.mark.parametrize("labels", ["PLACE", {"0": {"PLACE": 1}}])
def test_labels_must_be_a_list(labels: Any) -> None:
    with pytest.raises(ValueError, match="labels of 'crf_ner' must be a list, got"):
        initialize(make_nlp(), labels=labels)


def test_not_initialized() -> None:
    with pytest.raises(ValueError, match="'crf_ner' could not be run. Did you forget to call `initialize"):
        make_nlp()("Ada wrote it .")


def test_weights_that_are_not_numbers(trained: Language) -> None:
    nlp = spacy.blank("en").from_config(trained.config).from_bytes(trained.to_bytes())
    output = nlp.get_pipe("crf_ner").model.get_ref("output_layer")
    output.set_param("b", output.get_param("b") * numpy.float32("nan"))
    with pytest.raises(ValueError, match="are infinite, not a number, .* have diverged in training"):
        nlp("Ada wrote it .")
    with pytest.raises(ValueError, match="are infinite, not a number, .* have diverged in training"):
        nlp.update(make_examples(nlp), sgd=False)
