"""Sentences to layers: each word's spelling is read once, and sentences of similar length run together."""

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

from .characters import Mark, Word
from .lstm import Packing, State
from .model import BiLM, InitialState

EncodeWords = Callable[[Sequence[Word]], Tensor]


def embed_sentences(
    bilm: BiLM,
    sentences: Sequence[Sequence[str]],
    *,
    max_batch_items: int,
    initial_state: InitialState = "stored",
    encode_words: EncodeWords | None = None,
) -> list[Tensor]:
    """Compute all layers of the biLM for each sentence, independently of all others.

    bilm (BiLM): The model.
    sentences (Sequence[Sequence[str]]): The sentences' words. A sentence may be empty.
    max_batch_items (int): The most tokens to run at once, sentence marks included; a longer sentence runs alone.
    initial_state (str): What each sentence starts from: "stored" or "zero".
    encode_words (EncodeWords | None): Encodes word types; by default the model's own, a `WordCache` to remember them.
    RETURNS (list[Tensor]): One layers_LTW for each sentence, in the sentences' order, without the marks.
    """
    results: list[Tensor] = [torch.empty(0)] * len(sentences)
    for batch in _batch_by_length([len(sentence) + 2 for sentence in sentences], max_batch_items):
        state = bilm.start(len(batch), initial_state)
        layers, _ = run_batch(bilm, [sentences[i] for i in batch], state, encode_words=encode_words)
        for i, layers_LTW in zip(batch, layers, strict=True):
            results[i] = layers_LTW
    return results


def run_batch(
    bilm: BiLM,
    sentences: Sequence[Sequence[str]],
    state: State,
    *,
    encode_words: EncodeWords | None = None,
    with_marks: bool = False,
) -> tuple[list[Tensor], State]:
    """Run one batch of sentences from a given state.

    bilm (BiLM): The model.
    sentences (Sequence[Sequence[str]]): The sentences' words.
    state (State): What each sentence starts from.
    encode_words (EncodeWords | None): Encodes word types; by default the model's own.
    with_marks (bool): Whether the layers have the sentence marks, too.
    RETURNS (tuple): One layers_LTW for each sentence, without the marks by default, and the state after each sentence: pass it
        on to carry it over to the sentences that follow.
    """
    encode_words = encode_words or bilm.encode_words
    order = sorted(range(len(sentences)), key=lambda i: -len(sentences[i]))
    lengths = [len(sentences[i]) + 2 for i in order]
    types: dict[Word, int] = {}
    token_types: list[int] = []
    for i in order:
        words: list[Word] = [Mark.BEGIN_SENTENCE, *sentences[i], Mark.END_SENTENCE]
        token_types.extend(types.setdefault(word, len(types)) for word in words)
    packing = Packing.from_lengths(lengths, bilm.device)
    types_N = torch.empty_like(packing.rows_N)
    types_N[packing.rows_N] = torch.as_tensor(token_types).to(bilm.device)
    layers_LNW, state = bilm(encode_words(list(types)), types_N, packing, _reorder(state, order))
    in_reading_order = layers_LNW[:, packing.rows_N]
    inner = slice(None) if with_marks else slice(1, -1)
    layers = [sentence_LTW[:, inner] for sentence_LTW in torch.split(in_reading_order, lengths, dim=1)]
    back = sorted(range(len(order)), key=order.__getitem__)
    return [layers[i] for i in back], _reorder(state, back)


def _reorder(state: State, order: list[int]) -> State:
    if order == list(range(len(order))):
        return state
    return State(state.hidden[:, :, order], state.cell[:, :, order])


def _batch_by_length(lengths: Sequence[int], max_items: int) -> Iterator[list[int]]:
    """Group sentences into batches of at most `max_items` tokens, the longest sentences first."""
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
