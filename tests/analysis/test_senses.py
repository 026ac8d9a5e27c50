"""Word sense disambiguation, with a pipeline whose vectors are known."""

from pathlib import Path

import numpy
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc

import spacy_elmo.pipeline  # noqa: F401  registers doc._.elmo_layers
from spacy_elmo.analysis.sense_data import Instance, SenseSentence, read_senses
from spacy_elmo.analysis.sense_inventory import SenseInventory, read_inventory
from spacy_elmo.analysis.senses import SenseResults, disambiguate

from ..skips import NEEDS_WORDNET

SAMPLE = Path(__file__).parents[2] / "assets" / "senses_sample"
# Where Debian's package wordnet-sense-index puts it.
WORDNET_INDEX = Path("/usr/share/wordnet/index.sense")
BANK = ("bank", "NOUN")


@Language.component("angles")
def angles(doc: Doc) -> Doc:
    """Words are angles in degrees. Layer 0 does not see them: all its vectors are the same."""
    radians_T = numpy.radians([float(token.text) for token in doc])
    layer_TW = numpy.stack([numpy.cos(radians_T), numpy.sin(radians_T)], axis=1)
    doc._.elmo_layers = numpy.stack([numpy.ones_like(layer_TW), 5 * layer_TW])
    return doc


@pytest.fixture
def nlp() -> Language:
    nlp = spacy.blank("xx")
    nlp.add_pipe("angles")
    return nlp


def use(angle: float, *keys: str, entry: tuple[str, str] = BANK) -> SenseSentence:
    return SenseSentence([str(angle)], [Instance(0, 1, entry, list(keys))])


def inventory(*, keys: set[str] | None = None, **first: str) -> SenseInventory:
    return SenseInventory("first.tsv", {(lemma, "NOUN"): key for lemma, key in first.items()}, keys)


def f1(results: SenseResults, name: str, test: str = "test") -> float:
    return next(scores.f1(name) for scores in results.tests if scores.name == test)


TRAIN = [use(0, "river"), use(20, "river"), use(80, "money"), use(100, "money"), use(90, "money")]


def test_the_nearest_average_is_the_sense(nlp: Language) -> None:
    test = [use(30, "river"), use(70, "money"), use(60, "river"), use(10, "river", "money")]
    results = disambiguate(nlp, TRAIN, {"test": test}, inventory(bank="river"))
    # The averages are at 10 and at 90 degrees, so that 60 is nearer to the wrong one.
    assert f1(results, "LSTM layer 1") == 75
    # All vectors are equal there, so that the sense that came first is given.
    assert f1(results, "token layer") == 75
    assert f1(results, "first sense") == 75
    assert f1(results, "most frequent sense") == 50
    assert (results.n_instances, results.n_senses, results.n_entries) == (5, 2, 1)
    assert results.layers == {"token layer": [0], "LSTM layer 1": [1], "mean": [0, 1], "side by side": [0, 1]}
    assert results.baselines == ["first sense", "most frequent sense"]


def test_name_of_all_test_sets_together(nlp: Language) -> None:
    test = [use(30, "river")]
    with pytest.raises(ValueError, match="A test set has the name 'all', .* Rename its file"):
        disambiguate(nlp, TRAIN, {"all": test, "other": test}, None)
    assert f1(disambiguate(nlp, TRAIN, {"all": test}, None), "LSTM layer 1", "all") == 100


def test_words_of_an_instance_are_averaged(nlp: Language) -> None:
    both = SenseSentence(["0", "160"], [Instance(0, 2, BANK, ["money"])])  # together, 80 degrees
    assert f1(disambiguate(nlp, TRAIN, {"test": [both]}, None), "LSTM layer 1") == 100


def test_unseen_lemmas_get_the_first_sense(nlp: Language) -> None:
    test = [use(0, "river"), use(0, "metal", entry=("nail", "NOUN")), use(0, "x", entry=("palm", "NOUN"))]
    results = disambiguate(nlp, TRAIN, {"test": test}, inventory(nail="metal"))
    (scores,) = results.tests
    assert (scores.n_instances, scores.n_unseen) == (3, 2)
    # "palm" has no answer: two of two answers are right, and two of three instances.
    assert f1(results, "LSTM layer 1") == pytest.approx(100 * 2 * 1 * (2 / 3) / (1 + 2 / 3))
    # "bank" has no first sense here.
    assert f1(results, "first sense") == pytest.approx(100 * 2 * 1 * (1 / 3) / (1 + 1 / 3))
    without = disambiguate(nlp, TRAIN, {"test": test}, None)
    assert without.baselines == ["most frequent sense"]
    assert f1(without, "LSTM layer 1") == 50
    assert without.to_dict()["first_senses"] is None


def test_senses_of_another_part_of_speech_are_not_given(nlp: Language) -> None:
    train = [*TRAIN, use(45, "rely", entry=("bank", "VERB"))]
    results = disambiguate(nlp, train, {"test": [use(45, "rely", entry=("bank", "VERB"))]}, None)
    assert f1(results, "LSTM layer 1") == 100
    assert results.n_entries == 2


def test_unknown_keys_are_left_out_and_counted(nlp: Language) -> None:
    keys = inventory(bank="river", keys={"river", "money"})
    train = [*TRAIN, use(50, "no_such"), use(0, "river", "no_such")]
    results = disambiguate(nlp, train, {"test": [use(50, "no_such"), use(0, "river")]}, keys)
    assert results.n_unknown_keys == 2
    assert results.n_instances == 6
    assert results.tests[0].n_unknown_keys == 1
    assert f1(results, "LSTM layer 1") == 50
    assert results.to_dict()["train"] == {"instances": 6, "senses": 2, "lemmas": 1, "unknown_keys": 2}


def test_all_test_sets_together(nlp: Language) -> None:
    tests = {"one": [use(0, "river")], "two": [use(0, "money"), use(0, "river"), use(90, "river")]}
    results = disambiguate(nlp, TRAIN, tests, inventory(bank="river"))
    assert [scores.name for scores in results.tests] == ["one", "two", "all"]
    assert [f1(results, "LSTM layer 1", name) for name in ("one", "two", "all")] == pytest.approx([100, 100 / 3, 50])
    found = results.to_dict()
    assert found["tests"][2] == {"name": "all", "instances": 4, "unseen_lemmas": 0, "unknown_keys": 0}
    assert found["layers"][1]["f1"] == pytest.approx({"one": 100, "two": 100 / 3, "all": 50})
    assert found["baselines"][0] == {
        "name": "first sense",
        "f1": pytest.approx({"one": 100, "two": 200 / 3, "all": 75}),
    }


def test_sample_is_balanced() -> None:
    train, test = ([*read_senses(SAMPLE / f"{name}.jsonl")] for name in ("train", "test"))
    assert len({tuple(sentence.tokens) for sentence in train + test}) == 528
    counts: dict[tuple[str, str], dict[str, list[int]]] = {}
    for part, sentences in enumerate((train, test)):
        for sentence in sentences:
            (instance,) = sentence.instances
            (key,) = instance.keys
            assert key.startswith(f"{instance.entry[0]}%")
            counts.setdefault(instance.entry, {}).setdefault(key, [0, 0])[part] += 1
    assert len(counts) == 40
    assert {len(senses) for senses in counts.values()} == {2, 3}
    assert all(parts == [4, 2] for senses in counts.values() for parts in senses.values())
    assert read_inventory(SAMPLE / "first_senses.tsv").first.keys() == counts.keys()


@pytest.mark.skipif(not WORDNET_INDEX.exists(), reason=f"{NEEDS_WORDNET}: Debian's package wordnet-sense-index")
def test_sample_has_keys_of_wordnet() -> None:
    wordnet = read_inventory(WORDNET_INDEX)
    assert wordnet.keys is not None
    for name in ("train", "test"):
        keys = {key for sentence in read_senses(SAMPLE / f"{name}.jsonl") for key in sentence.instances[0].keys}
        assert keys <= wordnet.keys
    for entry, key in read_inventory(SAMPLE / "first_senses.tsv").first.items():
        assert wordnet.first[entry] == key
