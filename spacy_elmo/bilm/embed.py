"""Sentences to layers: each word type is encoded once per batch, and sentences of similar length form a batch."""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain

import numpy
import torch
from torch import Tensor

from .characters import Mark, Word
from .config import InitialState
from .model import BiLM
from .packing import Packing
from .state import State

EncodeWords = Callable[[Sequence[Word]], Tensor]


def embed_sentences(
    bilm: BiLM,
    sentences: Sequence[Sequence[str]],
    *,
    max_batch_items: int,
    initial_state: InitialState = "stored",
    encode_words: EncodeWords | None = None,
    after_mark: State | None = None,
) -> list[Tensor]:
    """Compute all layers of the biLM for each sentence. The other sentences do not change the result.

    bilm (BiLM): The model.
    sentences (Sequence[Sequence[str]]): The sentences' words. A sentence may be empty.
    max_batch_items (int): The maximum number of tokens in a batch, with sentence marks. A longer sentence runs alone.
    initial_state (str): The state at the start of each sentence: "stored" or "zero".
    encode_words (EncodeWords | None): Encodes word types, such as the method of a `WordCache`; by default the model's.
    after_mark (State | None): What `read_mark` gives for the initial state, if it is known: the mark is not read again.
    RETURNS (list[Tensor]): One layers_LTW for each sentence, in the order of the sentences, without the marks.
    """
    empty = bilm.any_weight.new_empty(bilm.config.depth + 1, 0, bilm.config.width)
    results: list[Tensor] = [empty] * len(sentences)
    not_empty = [i for i, sentence in enumerate(sentences) if sentence]
    for batch in batch_by_length([len(sentences[i]) + 2 for i in not_empty], max_batch_items):
        indices = [not_empty[i] for i in batch]
        if after_mark is None:
            state = bilm.start(len(indices), initial_state)
        else:
            state = State(*(part.expand(-1, -1, len(indices), -1) for part in after_mark))
        layers, _ = run_batch(
            bilm,
            [sentences[i] for i in indices],
            state,
            encode_words=encode_words,
            from_mark=after_mark is None,
            to_mark=False,
        )
        for i, layers_LTW in zip(indices, layers, strict=True):
            results[i] = layers_LTW
    return results


def read_mark(bilm: BiLM, initial_state: InitialState, encode_words: EncodeWords | None = None) -> State:
    """Compute the state in which each direction reads the first word of a sentence, which is the same for all sentences.

    bilm (BiLM): The model.
    initial_state (str): The state before the mark: "stored" or "zero".
    encode_words (EncodeWords | None): Encodes word types; by default the model's method.
    RETURNS (State): The state of one sentence.
    """
    types_UP = (encode_words or bilm.encode_words)([Mark.BEGIN_SENTENCE, Mark.END_SENTENCE])
    types_AN = torch.tensor([[0], [1]]).to(bilm.device)
    state: State = bilm(types_UP, types_AN, [1], bilm.start(1, initial_state))[1]
    return state


def run_batch(
    bilm: BiLM,
    sentences: Sequence[Sequence[str]],
    state: State,
    *,
    encode_words: EncodeWords | None = None,
    with_marks: bool = False,
    from_mark: bool = True,
    to_mark: bool = True,
) -> tuple[list[Tensor], State]:
    """Run the biLM on one batch of sentences from a given state.

    bilm (BiLM): The model.
    sentences (Sequence[Sequence[str]]): The sentences' words.
    state (State): The state at the start of each sentence.
    encode_words (EncodeWords | None): Encodes word types; by default the model's method.
    with_marks (bool): Whether the layers include the sentence marks.
    from_mark (bool): Whether each direction reads the mark at its start. If not, `state` is the one after it, and no
        sentence may be empty.
    to_mark (bool): Whether each direction reads the mark at its end, which the layers of words do not depend on.
    RETURNS (tuple): One layers_LTW for each sentence, and the state after each sentence. To carry the state over, pass
        it in with the sentences that follow, if all marks were read; `with_marks` needs them, too. Layer 0 is the token
        vector twice. The other layers are concatenations of both directions.
    """
    encode_words = encode_words or bilm.encode_words
    order = sorted(range(len(sentences)), key=lambda i: -len(sentences[i]))
    types: dict[Word, int] = {Mark.BEGIN_SENTENCE: 0, Mark.END_SENTENCE: 1}
    forward: list[int] = []
    backward: list[int] = []
    for i in order:
        words = [types.setdefault(word, len(types)) for word in sentences[i]]
        forward += [0] * from_mark + words + [1] * to_mark
        backward += [1] * from_mark + words[::-1] + [0] * to_mark
    packing = Packing.from_lengths([from_mark + len(sentences[i]) + to_mark for i in order])
    types_AN = numpy.empty((2, len(forward)), dtype="int64")
    types_AN[:, list(chain.from_iterable(packing.rows))] = forward, backward
    layers_LANP, state = bilm(
        encode_words(list(types)), torch.as_tensor(types_AN).to(bilm.device), packing.sizes, _reorder(state, order)
    )
    lengths = [len(sentences[i]) + 2 * with_marks for i in order]
    # Row N + r of both directions' rows is row r of the backward direction, which reads the last token first.
    kept_AN = packing.rows_of_steps(lengths, first=int(from_mark and not with_marks))
    rows_NA = numpy.array(kept_AN, dtype="int64").T + [0, len(forward)]
    rows = torch.as_tensor(rows_NA.ravel()).to(bilm.device)
    layers_LNW = layers_LANP.flatten(1, 2).index_select(1, rows).view(len(layers_LANP), sum(lengths), bilm.config.width)
    layers = torch.split(layers_LNW, lengths, dim=1)
    back = sorted(range(len(order)), key=order.__getitem__)
    return [layers[i] for i in back], _reorder(state, back)


def _reorder(state: State, order: list[int]) -> State:
    if order == list(range(len(order))):
        return state
    return State(state.hidden[:, :, order], state.cell[:, :, order])


def batch_by_length(lengths: Sequence[int], max_items: int) -> Iterator[list[int]]:
    """Group sentences into batches, the longest sentences first.

    lengths (Sequence[int]): The number of tokens of each sentence, with sentence marks.
    max_items (int): The maximum number of tokens in a batch. A longer sentence is alone.
    YIELDS (list[int]): The indices of the sentences of a batch.
    """
    batch: list[int] = []
    n_items = 0
    for i in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        if batch and n_items + lengths[i] > max_items:
            yield batch
            batch, n_items = [], 0
        batch.append(i)
        n_items += lengths[i]
    if batch:
        yield batch
