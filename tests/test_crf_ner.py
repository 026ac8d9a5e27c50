"""The component `crf_ner`: its mathematics against all paths written out, its entities against what was asked for."""

import itertools
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, cast

import numpy
import pytest
import spacy
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from spacy.cli.train import train
from spacy.language import Language
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Example
from thinc.api import Config, NumpyOps, fix_random_seed

from spacy_elmo.bilm.weights import save_weights
from spacy_elmo.crf_ner.chain import best_path, log_partition
from spacy_elmo.crf_ner.component import CrfNer
from spacy_elmo.crf_ner.inference import DOCS_AT_ONCE, decode, loss_and_gradients
from spacy_elmo.crf_ner.masks import MISSING, gold_tags, possible_tags
from spacy_elmo.crf_ner.tags import Tags, tag_prefixes
from spacy_elmo.crf_ner.transitions import ChainScores

from .helpers import random_bilm

pytestmark = pytest.mark.usefixtures("one_thread")

Array = Any  # NumPy's arrays, which are not thinc's to a type checker
TagPath = tuple[int, ...]


# --- the tags ---


def spans_in(length: int, labels: list[str], start: int = 0) -> Iterator[list[tuple[int, int, str]]]:
    """List all sets of entities that a doc can have."""
    if start == length:
        yield []
        return
    yield from spans_in(length, labels, start + 1)
    for end in range(start + 1, length + 1):
        for label in labels:
            yield from ([(start, end, label), *rest] for rest in spans_in(length, labels, end))


def is_legal(tags: Tags, path: TagPath) -> bool:
    inner = all(tags.legal_KK[a, b] for a, b in itertools.pairwise(path))
    return bool(tags.start_K[path[0]] and inner and tags.end_K[path[-1]])


@pytest.mark.parametrize(("labels", "length"), [(["A"], 1), (["A"], 4), (["A", "B-x"], 2), (["A", "B-x"], 3)])
def test_legal_tags_are_those_of_all_sets_of_entities(labels: list[str], length: int) -> None:
    tags = Tags(labels)
    expected: dict[TagPath, list[tuple[int, int, str]]] = {}
    for spans in spans_in(length, labels):
        names = ["O"] * length
        for start, end, label in spans:
            names[start:end] = [f"{prefix}-{label}" for prefix in tag_prefixes(end - start)]
        expected[tuple(tags.ids[name] for name in names)] = spans
    legal = [path for path in itertools.product(range(len(tags)), repeat=length) if is_legal(tags, path)]
    assert sorted(legal) == sorted(expected)
    assert {path: list(tags.spans(path)) for path in legal} == expected


def test_names_of_tags() -> None:
    assert Tags(["A", "B"]).names == ["O", "B-A", "I-A", "L-A", "U-A", "B-B", "I-B", "L-B", "U-B"]
    assert [tag_prefixes(n) for n in (1, 2, 3, 5)] == ["U", "BL", "BIL", "BIIIL"]


# --- the chain ---

NO_PATH = float("-inf")


def random_chain(lengths: list[int], n_tags: int, seed: int = 0, legal: Tags | None = None) -> list[Array]:
    """Make scores_TBK, lengths_B, transitions_KK, start_K, end_K; what is beyond a length would turn any result."""
    random = numpy.random.RandomState(seed)
    scores = random.normal(size=(max(lengths), len(lengths), n_tags))
    for i, length in enumerate(lengths):
        scores[length:, i] = random.normal(size=(max(lengths) - length, n_tags)) * 300
    transitions, start, end = (
        random.normal(size=(n_tags, n_tags)),
        random.normal(size=n_tags),
        random.normal(size=n_tags),
    )
    if legal is not None:
        transitions[~legal.legal_KK], start[~legal.start_K], end[~legal.end_K] = NO_PATH, NO_PATH, NO_PATH
    return [torch.tensor(array) for array in (scores, numpy.asarray(lengths), transitions, start, end)]


def weigh_paths(chain: list[Array], i: int) -> dict[TagPath, float]:
    """Write out all paths of one sequence with their scores."""
    scores, lengths, transitions, start, end = (tensor.detach().numpy() for tensor in chain)
    length, n_tags = int(lengths[i]), scores.shape[2]
    return {
        path: start[path[0]]
        + sum(scores[t, i, tag] for t, tag in enumerate(path))
        + sum(transitions[a, b] for a, b in itertools.pairwise(path))
        + end[path[-1]]
        for path in itertools.product(range(n_tags), repeat=length)
    }


def log_sum(values: Iterable[float]) -> float:
    return float(numpy.logaddexp.reduce(list(values)))


CHAINS = [
    random_chain([1], 3),
    random_chain([4], 3),
    random_chain([2, 5, 1, 5, 3], 3, seed=1),
    random_chain([1, 1], 5, seed=2, legal=Tags(["A"])),
    random_chain([3, 1, 4, 2], 5, seed=3, legal=Tags(["A"])),
]


@pytest.mark.parametrize("chain", CHAINS)
def test_log_partition_is_the_sum_over_all_paths(chain: list[Array]) -> None:
    expected = [log_sum(weigh_paths(chain, i).values()) for i in range(len(chain[1]))]
    assert_allclose(log_partition(*chain), expected, rtol=1e-12)


@pytest.mark.parametrize("chain", CHAINS)
def test_best_path_is_the_best_of_all_paths(chain: list[Array]) -> None:
    tags_TB = best_path(*chain)
    for i, length in enumerate(chain[1].tolist()):
        weights = weigh_paths(chain, i)
        assert tuple(tags_TB[:length, i].tolist()) == max(weights, key=weights.__getitem__)
        assert not tags_TB[length:, i].any()


@pytest.mark.parametrize("chain", CHAINS)
def test_gradients_are_marginals(chain: list[Array]) -> None:
    scores, lengths, transitions, start, end = chain = [
        tensor.clone().requires_grad_(tensor.is_floating_point()) for tensor in chain
    ]
    found = torch.autograd.grad(log_partition(*chain).sum(), [scores, transitions, start, end], materialize_grads=True)
    expected = [numpy.zeros(tensor.shape) for tensor in (scores, transitions, start, end)]
    for i in range(len(lengths)):
        weights = weigh_paths(chain, i)
        total = log_sum(weights.values())
        for path, weight in weights.items():
            probability = numpy.exp(weight - total)
            for t, tag in enumerate(path):
                expected[0][t, i, tag] += probability
            for pair in itertools.pairwise(path):
                expected[1][pair] += probability
            expected[2][path[0]] += probability
            expected[3][path[-1]] += probability
    for gradient, marginals in zip(found, expected, strict=True):
        assert_allclose(gradient, marginals, atol=1e-12)


@given(lengths=st.lists(st.integers(1, 12), min_size=1, max_size=6), seed=st.integers(0, 1000))
def test_sequences_do_not_depend_on_their_batch(lengths: list[int], seed: int) -> None:
    tags = Tags(["A", "B"])
    chain = random_chain(lengths, len(tags), seed, legal=tags)
    together, paths = log_partition(*chain), best_path(*chain)
    for i, length in enumerate(lengths):
        alone = [chain[0][:length, i : i + 1], chain[1][i : i + 1], *chain[2:]]
        assert_allclose(log_partition(*alone)[0], together[i], rtol=1e-12)
        assert_array_equal(best_path(*alone)[:, 0], paths[:length, i])
        assert is_legal(tags, tuple(paths[:length, i].tolist()))


def test_long_sequences_with_high_scores_keep_their_digits() -> None:
    tags = Tags(["A", "B"])
    scores, *rest = random_chain([600, 10], len(tags), legal=tags)
    scores = (30 * scores).requires_grad_()
    (marginals,) = torch.autograd.grad(log_partition(scores, *rest).sum(), scores)
    assert_allclose(marginals[:, 0].sum(dim=1), 1, rtol=1e-9)
    assert not marginals[10:, 1].any()


# --- from scores to a loss ---

TAGS = Tags(["A"])


def make_scores(*lengths: int, seed: int = 0, tags: Tags = TAGS) -> ChainScores:
    random = numpy.random.RandomState(seed)

    def draw(*shape: int) -> Array:
        return random.standard_normal(shape).astype("float32")

    n = len(tags)
    return ChainScores([draw(length, n) for length in lengths], draw(n, n), draw(n), draw(n))


def as_gold(*names: str | None) -> Array:
    return numpy.asarray([MISSING if name is None else TAGS.ids[name] for name in names], dtype="int64")


def written_out(scores: ChainScores, gold: list[Array]) -> tuple[float, ChainScores]:
    """Compute the loss and its gradients from all legal paths: what is expected of them, and what they are in gold."""
    shapes = [*scores.tags, scores.transitions, scores.start, scores.end]
    *d_tags, d_transitions, d_start, d_end = [numpy.zeros(array.shape) for array in shapes]
    loss = 0.0
    for tags_TK, gold_T, d_TK in zip(scores.tags, gold, d_tags, strict=True):
        if not len(gold_T):
            continue
        scores_TBK: Array = numpy.asarray(tags_TK)[:, None]
        chain = [scores_TBK, numpy.asarray([len(gold_T)]), scores.transitions, scores.start, scores.end]
        weights = weigh_paths([torch.tensor(array, dtype=torch.float64) for array in chain], 0)
        everything = {path: weight for path, weight in weights.items() if is_legal(TAGS, path)}
        agrees = {
            path: weight
            for path, weight in everything.items()
            if all(tag in (MISSING, own) for tag, own in zip(gold_T, path, strict=True))
        }
        loss += log_sum(everything.values()) - log_sum(agrees.values())
        for sign, some in ((1, everything), (-1, agrees)):
            total = log_sum(some.values())
            for path, weight in some.items():
                share = sign * numpy.exp(weight - total)
                for t, tag in enumerate(path):
                    d_TK[t, tag] += share
                for pair in itertools.pairwise(path):
                    d_transitions[pair] += share
                d_start[path[0]] += share
                d_end[path[-1]] += share
    return loss, ChainScores(d_tags, d_transitions, d_start, d_end)


def check_equal(found: ChainScores, expected: ChainScores) -> None:
    assert_allclose(found.transitions, expected.transitions, atol=1e-5)
    assert_allclose(found.start, expected.start, atol=1e-5)
    assert_allclose(found.end, expected.end, atol=1e-5)
    for found_TK, expected_TK in zip(found.tags, expected.tags, strict=True):
        assert found_TK.shape == expected_TK.shape
        assert found_TK.dtype == "float32"
        assert_allclose(found_TK, expected_TK, atol=1e-5)


@pytest.mark.parametrize(
    "gold",
    [
        [as_gold("O")],
        [as_gold("U-A")],
        [as_gold("O", "B-A", "L-A", "O")],
        [as_gold("B-A", "L-A"), as_gold("O", "U-A", "U-A", "O"), as_gold("O")],
        [as_gold(None, "U-A", None, None)],
        [as_gold("O", None), as_gold(None, None, None), as_gold("B-A", "I-A", "L-A")],
        [as_gold(), as_gold("O", None, "O"), as_gold(), as_gold("U-A"), as_gold()],
    ],
)
def test_loss_and_gradients_are_those_of_all_paths_written_out(gold: list[Array]) -> None:
    scores = make_scores(*map(len, gold))
    expected_loss, expected = written_out(scores, gold)
    loss, gradients = loss_and_gradients(NumpyOps(), scores, gold, TAGS)
    assert_allclose(loss, expected_loss, rtol=1e-6)
    check_equal(gradients, expected)


@pytest.mark.parametrize("lengths", [[], [0], [0, 2, 1], [*range(3, 14)]])
def test_without_gold_nothing_is_learned(lengths: list[int]) -> None:
    gold = [as_gold(*[None] * length) for length in lengths]
    loss, gradients = loss_and_gradients(NumpyOps(), make_scores(*lengths), gold, TAGS)
    assert loss == 0
    assert [d_TK.shape for d_TK in gradients.tags] == [(length, len(TAGS)) for length in lengths]
    for array in (*gradients.tags, gradients.transitions, gradients.start, gradients.end):
        assert not array.any()


def test_loss_is_a_sum_over_docs() -> None:
    gold = [as_gold("B-A", "L-A"), as_gold("O", "U-A", None)]
    scores = make_scores(2, 3)
    whole, _ = loss_and_gradients(NumpyOps(), scores, gold, TAGS)
    weights = (scores.transitions, scores.start, scores.end)
    parts = [
        loss_and_gradients(NumpyOps(), ChainScores([tags_TK], *weights), [gold_T], TAGS)[0]
        for tags_TK, gold_T in zip(scores.tags, gold, strict=True)
    ]
    assert_allclose(whole, sum(parts))


def test_gradients_inside_inference_mode() -> None:
    with torch.inference_mode():
        loss, gradients = loss_and_gradients(NumpyOps(), make_scores(2), [as_gold("O", "U-A")], TAGS)
    assert loss > 0
    assert gradients.transitions.any()


# --- what docs say about their tags ---

VOCAB = spacy.blank("en").vocab
WORDS = st.sampled_from(["Ada", "wrote", "\n", "  "])


@st.composite
def docs(draw: st.DrawFn) -> Doc:
    """Make docs with whitespace, sentences, entities of labels known and unknown, and blocked tokens."""
    words = draw(st.lists(WORDS, max_size=8))
    n = len(words)
    starts = draw(st.lists(st.sampled_from([True, False, None]), min_size=n, max_size=n))
    doc = Doc(VOCAB, words=words, sent_starts=starts)
    ents: list[Span] = []
    blocked: list[Span] = []
    end = 0
    for start in range(n):
        kind = draw(st.sampled_from(["", "", "", "A", "B", "unknown", "blocked"]))
        if kind and start >= end:
            end = draw(st.integers(start + 1, min(n, start + 3)))
            (blocked if kind == "blocked" else ents).append(Span(doc, start, end, label=kind))
    doc.set_ents(ents, blocked=blocked, default=draw(st.sampled_from(["outside", "missing"])))
    return doc


@given(doc=docs(), seed=st.integers(0, 100))
def test_predictions_are_legal_and_keep_to_what_the_doc_says(doc: Doc, seed: int) -> None:
    tags = Tags(["A", "B"])
    component = CrfNer(doc.vocab, None)
    component.cfg["labels"] = ["A", "B"]
    before = [(ent.start, ent.end, ent.label_) for ent in doc.ents]
    blocked = [token.i for token in doc if token.ent_iob_ == "B" and not token.ent_type_]
    taken = {i for start, end, _ in before for i in range(start, end)}
    scores = make_scores(len(doc), seed=seed, tags=tags)
    # All tags but O are likely, so that only what is forbidden is not chosen.
    for tags_TK in scores.tags:
        tags_TK[:, 1:] += 5
    ids = decode(NumpyOps(), scores, [possible_tags(doc, tags)], tags)
    if len(doc):
        assert is_legal(tags, tuple(ids[0].tolist()))
    component.set_annotations([doc], ids)
    after = [(ent.start, ent.end, ent.label_) for ent in doc.ents]
    assert set(before) <= set(after)
    for start, end, label in set(after) - set(before):
        assert label in ("A", "B")
        assert not (taken | set(blocked)) & set(range(start, end))
        assert not doc[start].text.isspace()
        assert not doc[end - 1].text.isspace()
        assert not any(token.is_sent_start for token in doc[start + 1 : end])
    assert [token.i for token in doc if token.ent_iob_ == "B" and not token.ent_type_] == blocked
    assert all(token.ent_iob_ for token in doc), "no annotation is missing any more"


def tags_of(doc: Doc) -> list[set[str]]:
    """Say which tags of the label A each token of a doc may have."""
    return [{TAGS.names[i] for i in numpy.flatnonzero(mask_K)} for mask_K in possible_tags(doc, TAGS)]


def make_doc(words: str, **settings: Any) -> Doc:
    return Doc(VOCAB, words=words.split("_"), **settings)


ALL = set(TAGS.names)


def test_whitespace_and_sentences_bound_entities() -> None:
    assert tags_of(make_doc("Ada_wrote")) == [ALL, ALL]
    assert tags_of(make_doc("Ada_\n_Byron")) == [ALL, {"O", "I-A"}, ALL]
    doc = make_doc("Ada_wrote_it", sent_starts=[True, False, True])
    assert tags_of(doc)[:2] == [ALL, {"O", "L-A", "U-A"}]


def test_entities_that_are_there_have_their_tags() -> None:
    doc = make_doc("Ada_Byron_Lovelace_met_Babbage_today")
    blocked = [doc[5:6]]
    doc.set_ents([Span(doc, 0, 3, label="A"), Span(doc, 4, 5, label="unknown")], blocked=blocked, default="outside")
    assert tags_of(doc) == [{"B-A"}, {"I-A"}, {"L-A"}, ALL, {"O"}, {"O"}]


def test_gold_tags_of_another_tokenization() -> None:
    nlp = spacy.blank("en")
    reference = Doc(nlp.vocab, words=["Ada", "Byron", "met", "NewYork", "today"])
    reference.set_ents(
        [Span(reference, 0, 2, label="A"), Span(reference, 3, 4, label="A")],
        missing=[reference[4:5]],
        default="outside",
    )
    predicted = Doc(nlp.vocab, words=["Ada", "Byr", "on", "met", "NewYork", "today"])
    found = gold_tags(Example(predicted, reference), TAGS)
    assert_array_equal(found, as_gold("B-A", "I-A", "L-A", "O", "U-A", None))
    joined = Doc(nlp.vocab, words=["Ada", "Byronmet", "NewYork", "today"])
    assert_array_equal(gold_tags(Example(joined, reference), TAGS), as_gold(None, None, "U-A", None))


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


@pytest.mark.parametrize(("nO", "message"), [(13, "nO is 13, but .* are 9"), (5, "model scores 5 tags")])
def test_number_of_tags_that_does_not_fit(nO: int, message: str) -> None:
    nlp = make_nlp(SMALL.replace('CrfTagger.v1"', f'CrfTagger.v1"\nnO = {nO}'))
    with pytest.raises(ValueError, match=message):
        initialize(nlp)
    assert initialize(make_nlp(SMALL.replace('CrfTagger.v1"', 'CrfTagger.v1"\nnO = 9'))).labels == LABELS


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


def test_scores_that_are_too_far_apart() -> None:
    scores = make_scores(1)
    scores.tags[0][0] = [0, 0, 2000, 0, 0]
    with pytest.raises(ValueError, match="hundreds apart"):
        loss_and_gradients(NumpyOps(), scores, [as_gold("O")], TAGS)
    scores.tags[0][0] = [0, 0, 500, 0, 0]
    assert loss_and_gradients(NumpyOps(), scores, [as_gold("O")], TAGS)[0] < 10


def test_scores_of_another_device_than_torch_likes() -> None:
    scores, gold, mask = make_scores(2), [as_gold("O", "U-A")], numpy.ones((2, len(TAGS)), dtype=bool)
    expected = (
        loss_and_gradients(NumpyOps(), scores, gold, TAGS)[0],
        decode(NumpyOps(), scores, [mask], TAGS)[0].tolist(),
    )
    with torch.device("meta"):
        loss = loss_and_gradients(NumpyOps(), scores, gold, TAGS)[0]
        assert loss_and_gradients(NumpyOps(), scores, [as_gold(None, None)], TAGS)[0] == 0
        assert (loss, decode(NumpyOps(), scores, [mask], TAGS)[0].tolist()) == expected


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
