"""Word sense disambiguation by nearest neighbours (table 5 of the paper).

The vectors of each sense in a training set are averaged. A new use of a word gets the nearest of the senses of its entry,
that is, of its lemma and part of speech. Where the entry is not in the training set, it gets the first sense.

Only entries of the test sets are averaged, so memory depends on the number of their senses, not on the size of the texts.

Shape suffixes: L layer, T token, W width of a layer, S sense.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy
from spacy.language import Language

from .sense_data import Entry, Instance, SenseSentence
from .sense_inventory import SenseInventory
from .vectors import Combination, Floats, embed_sentences, layer_combinations, unit_vectors

ALL = "all"
FIRST_SENSE, MOST_FREQUENT_SENSE = "first sense", "most frequent sense"

Guesses = Mapping[str, str | None]  # by the name of a way to guess: a sense, or None for no answer


class Training:
    """The senses of a training set: how often each occurs, and its average vector in each layer.

    wanted (set[Entry]): The entries whose senses are averaged.
    known_keys (set[str] | None): All keys that there are; others are left out, and counted. None for any key.
    """

    def __init__(self, wanted: set[Entry], known_keys: set[str] | None) -> None:
        self.n_instances = 0
        self.n_unknown_keys = 0
        self.entries: set[Entry] = set()
        self.keys: set[str] = set()
        self._counts: defaultdict[Entry, Counter[str]] = defaultdict(Counter)
        self._sums: dict[tuple[Entry, str], Floats] = {}  # layers_LW
        self._wanted = wanted
        self._known_keys = known_keys

    def select(self, sentences: Iterable[SenseSentence]) -> Iterator[tuple[list[str], list[Instance]]]:
        """Count senses, and choose what has to be embedded.

        sentences (Iterable[SenseSentence]): The training set.
        YIELDS (tuple): The tokens of a sentence, and its instances of wanted entries, at least one.
        """
        for tokens, instances in sentences:
            chosen = []
            for instance in instances:
                keys = [key for key in instance.keys if self._known_keys is None or key in self._known_keys]
                self.n_unknown_keys += len(instance.keys) - len(keys)
                if not keys:
                    continue
                self.n_instances += 1
                self.entries.add(instance.entry)
                self.keys.update(keys)
                if instance.entry in self._wanted:
                    chosen.append(instance._replace(keys=keys))
            if chosen:
                yield tokens, chosen

    def add(self, instance: Instance, layers_LW: Floats) -> None:
        """Add the vectors of a use to its senses."""
        for key in instance.keys:
            self._counts[instance.entry][key] += 1
            sum_LW = self._sums.setdefault((instance.entry, key), numpy.zeros(layers_LW.shape, dtype="float32"))
            sum_LW += layers_LW

    def most_frequent(self, entry: Entry) -> str | None:
        """RETURNS (str | None): The most frequent sense of an entry; None if the entry does not occur."""
        counts = self._counts.get(entry)
        return counts.most_common(1)[0][0] if counts else None

    def nearest(
        self, entry: Entry, layers_LW: Floats, combinations: Mapping[str, Combination]
    ) -> dict[str, str | None]:
        """Find the senses of an entry whose averages are nearest to a use.

        entry (Entry): The entry.
        layers_LW (NDArray): The vectors of the use.
        combinations (Mapping[str, Combination]): Ways to make one vector of the layers, by name.
        RETURNS (dict[str, str | None]): The nearest sense for each of them; None if the entry does not occur.
        """
        counts = self._counts.get(entry)
        if not counts:
            return dict.fromkeys(combinations)
        keys = list(counts)
        averages_LSW = numpy.stack([self._sums[entry, key] / counts[key] for key in keys], axis=1)
        found: dict[str, str | None] = {}
        for name, (_, combine) in combinations.items():
            similarities_S = unit_vectors(combine(averages_LSW)) @ combine(layers_LW[:, None])[0]
            found[name] = keys[int(similarities_S.argmax())]
        return found


@dataclass
class SetScores:
    """The answers to a test set.

    name (str): Its name.
    n_instances (int): The number of its instances.
    n_unseen (int): The number of instances whose entry is not in the training set.
    n_unknown_keys (int): The number of keys that the inventory does not have.
    n_answered, n_right (Counter[str]): By the name of a way to guess, the number of its answers, and of the right ones.
    """

    name: str
    n_instances: int = 0
    n_unseen: int = 0
    n_unknown_keys: int = 0
    n_answered: Counter[str] = field(default_factory=Counter)
    n_right: Counter[str] = field(default_factory=Counter)

    def f1(self, name: str) -> float:
        """RETURNS (float): The harmonic mean of precision and recall of a way to guess, in per cent."""
        return 200 * self.n_right[name] / (self.n_answered[name] + self.n_instances)


@dataclass(frozen=True)
class SenseResults:
    """The scores of all ways to guess senses.

    n_instances, n_senses, n_entries (int): The size of the training set.
    n_unknown_keys (int): The number of its keys that the inventory does not have, which were left out.
    inventory (str | None): The name of the file with first senses.
    tests (list[SetScores]): The scores of each test set, then of all together if there are several.
    baselines (list[str]): The names of the ways to guess without vectors.
    layers (dict[str, list[int]]): By the name of each way to guess with vectors, the layers that it reads.
    """

    n_instances: int
    n_senses: int
    n_entries: int
    n_unknown_keys: int
    inventory: str | None
    tests: list[SetScores]
    baselines: list[str]
    layers: dict[str, list[int]]

    def to_dict(self) -> dict[str, Any]:
        """RETURNS (dict): The results, to be written as JSON."""
        f1 = {name: {test.name: test.f1(name) for test in self.tests} for name in [*self.baselines, *self.layers]}
        return {
            "train": {
                "instances": self.n_instances,
                "senses": self.n_senses,
                "lemmas": self.n_entries,
                "unknown_keys": self.n_unknown_keys,
            },
            "first_senses": self.inventory,
            "tests": [
                {
                    "name": test.name,
                    "instances": test.n_instances,
                    "unseen_lemmas": test.n_unseen,
                    "unknown_keys": test.n_unknown_keys,
                }
                for test in self.tests
            ],
            "baselines": [{"name": name, "f1": f1[name]} for name in self.baselines],
            "layers": [{"name": name, "layers": layers, "f1": f1[name]} for name, layers in self.layers.items()],
        }


def disambiguate(
    nlp: Language,
    train: Iterable[SenseSentence],
    tests: Mapping[str, Sequence[SenseSentence]],
    inventory: SenseInventory | None,
) -> SenseResults:
    """Guess the senses of test sets from the average vectors of senses in a training set, and score the guesses.

    nlp (Language): The pipeline, with an `elmo` component that keeps its layers.
    train (Iterable[SenseSentence]): The training set.
    tests (Mapping[str, Sequence[SenseSentence]]): The test sets, by name.
    inventory (SenseInventory | None): First senses, for entries that are not in the training set. Without them, these have
        no answer, and there is no such baseline.
    RETURNS (SenseResults): The scores.
    """
    if len(tests) > 1 and ALL in tests:
        raise ValueError(f"A test set has the name {ALL!r}, which is that of all test sets together. Rename its file.")
    known_keys = inventory.keys if inventory else None
    wanted = {instance.entry for test in tests.values() for _, instances in test for instance in instances}
    training = Training(wanted, known_keys)
    for layers_LTW, instances in embed_sentences(nlp, training.select(train)):
        for instance in instances:
            training.add(instance, _use_layers(layers_LTW, instance))
    first = inventory.first if inventory else {}
    scores = []
    for name, test in tests.items():
        scores.append(SetScores(name))
        for layers_LTW, instances in embed_sentences(nlp, (sentence for sentence in test if sentence.instances)):
            combinations = layer_combinations(len(layers_LTW))
            for instance in instances:
                guesses = {
                    MOST_FREQUENT_SENSE: training.most_frequent(instance.entry),
                    **training.nearest(instance.entry, _use_layers(layers_LTW, instance), combinations),
                }
                _score(scores[-1], instance, guesses, first.get(instance.entry), known_keys)
    if len(scores) > 1:
        scores.append(_add_up(scores))
    return SenseResults(
        n_instances=training.n_instances,
        n_senses=len(training.keys),
        n_entries=len(training.entries),
        n_unknown_keys=training.n_unknown_keys,
        inventory=inventory.name if inventory else None,
        tests=scores,
        baselines=[*([FIRST_SENSE] if inventory else []), MOST_FREQUENT_SENSE],
        layers={name: layers for name, (layers, _) in combinations.items()},
    )


def _use_layers(layers_LTW: Floats, instance: Instance) -> Floats:
    """RETURNS (NDArray): layers_LW, the mean of the tokens of an instance."""
    mean_LW: Floats = layers_LTW[:, instance.start : instance.end].mean(axis=1)
    return mean_LW


def _score(
    scores: SetScores, instance: Instance, guesses: Guesses, first: str | None, known_keys: set[str] | None
) -> None:
    scores.n_instances += 1
    scores.n_unseen += guesses[MOST_FREQUENT_SENSE] is None
    scores.n_unknown_keys += sum(known_keys is not None and key not in known_keys for key in instance.keys)
    for name, guess in {FIRST_SENSE: None, **guesses}.items():
        answer = guess or first
        scores.n_answered[name] += answer is not None
        scores.n_right[name] += answer in instance.keys


def _add_up(scores: Sequence[SetScores]) -> SetScores:
    return SetScores(
        ALL,
        n_instances=sum(each.n_instances for each in scores),
        n_unseen=sum(each.n_unseen for each in scores),
        n_unknown_keys=sum(each.n_unknown_keys for each in scores),
        n_answered=sum((each.n_answered for each in scores), Counter()),
        n_right=sum((each.n_right for each in scores), Counter()),
    )
