"""Nearest neighbours in context, on vectors that are easy to see through."""

import numpy
import pytest
import spacy
from spacy.tokens import Doc
from spacy.vocab import Vocab

import spacy_elmo.pipeline  # noqa: F401  registers doc._.elmo_layers
from spacy_elmo.analysis.neighbours import find_neighbours, mark_use, read_use


def make_doc(words: str, *vectors: tuple[float, float]) -> Doc:
    doc = Doc(Vocab(), words=words.split(" "))
    doc.tensor = numpy.asarray(vectors, dtype="float32")
    doc._.elmo_layers = numpy.stack(
        [doc.tensor, doc.tensor[::-1]]
    )  # the second layer has the words' vectors the other way round
    return doc


def test_the_closest_by_angle_come_first() -> None:
    use = make_doc("east", (1, 0))[0]
    docs = [make_doc("north far", (0, 5), (9, 1)), make_doc("near", (1, 1))]
    ((neighbours,),) = find_neighbours([use], docs, n=2)
    assert [neighbour.token.text for neighbour in neighbours] == ["far", "near"]
    assert [neighbour.similarity for neighbour in neighbours] == pytest.approx([9 / 82**0.5, 0.5**0.5])


def test_layers_and_uses_in_one_pass() -> None:
    east, north = make_doc("east", (1, 0))[0], make_doc("north", (0, 1))[0]
    docs = iter([make_doc("E N", (1, 0), (0, 1))])
    found = find_neighbours([east, north], docs, n=1, layers=[None, 0, 1])
    assert [[best.token.text for (best,) in of_layer] for of_layer in found] == [["E", "N"], ["E", "N"], ["N", "E"]]


def test_equally_close_ones_come_in_their_order() -> None:
    use = make_doc("use", (1, 0))[0]
    docs = [make_doc("a b", (1, 0), (2, 0)), make_doc("c", (3, 0))]
    ((neighbours,),) = find_neighbours([use], docs, n=2)
    assert [neighbour.token.text for neighbour in neighbours] == ["a", "b"]


def test_neighbours_exclude_the_word_itself_and_whitespace() -> None:
    doc = make_doc("same \n same", (1, 0), (0, 0), (1, 0))
    ((neighbours,),) = find_neighbours([doc[0]], [doc], n=5)
    assert [neighbour.token.i for neighbour in neighbours] == [2]


def test_docs_without_vectors() -> None:
    use, bare = make_doc("east", (1, 0))[0], Doc(Vocab(), words=["It", "is"])
    for uses, docs in (([use], [bare]), ([bare[0]], [use.doc])):
        with pytest.raises(ValueError, match=r"The doc 'It is ' has no vectors in Doc\.tensor"):
            find_neighbours(uses, docs)
        with pytest.raises(ValueError, match=r"The doc 'It is ' has no layers.*keep_layers = true"):
            find_neighbours(uses, docs, layers=[0])
    for layer in (2, -1):
        with pytest.raises(ValueError, match=f"There is no layer {layer}: the layers are 0 to 1"):
            find_neighbours([use], [use.doc], layers=[layer])


def test_docs_that_were_retokenized() -> None:
    doc = make_doc("east side", (1, 0), (0, 1))
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[0:2])
    with pytest.raises(ValueError, match="The doc .* was retokenized: its layers are those of other tokens"):
        find_neighbours([doc[0]], [doc], layers=[0])


def test_no_uses_have_no_neighbours() -> None:
    assert find_neighbours([], [make_doc("east", (1, 0))], layers=[0, 1]) == [[], []]


def test_uses_are_read_and_written() -> None:
    nlp = spacy.blank("en")
    use = read_use(nlp, "They don't [play] chess.")
    assert (use.text, use.i) == ("play", 3)
    assert mark_use(use) == "They don't [play] chess."
    assert mark_use(use, width=5) == "…n't [play] che…"
    assert mark_use(use, width=20) == "They don't [play] chess."


def test_only_the_use_is_in_square_brackets() -> None:
    doc = Doc(Vocab(), words=["see", "[", "1", "]", "the", "bank"])
    assert mark_use(doc[5]) == "see ( 1 ) the [bank]"
    assert mark_use(doc[1]) == "see [(] 1 ) the bank"
