"""The mathematics of `crf_ner`, against all paths written out."""

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import numpy
import pytest
import spacy
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from spacy.tokens import Doc, Span
from spacy.training import Example
from thinc.api import NumpyOps

from spacy_elmo.tasks.crf_ner.chain import best_path, log_partition
from spacy_elmo.tasks.crf_ner.component import CrfNer
from spacy_elmo.tasks.crf_ner.inference import decode, loss_and_gradients
from spacy_elmo.tasks.crf_ner.masks import MISSING, gold_tags, possible_tags
from spacy_elmo.tasks.crf_ner.tagger import ChainScores
from spacy_elmo.tasks.crf_ner.tags import Tags, tag_prefixes

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
