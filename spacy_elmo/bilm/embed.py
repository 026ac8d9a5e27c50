"""Sentences to layers: each word type is encoded once per batch, and sentences of similar length form a batch."""

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

from .characters import Mark, Word
from .config import InitialState
from .lstm import Packing, State
from .model import BiLM

EncodeWords = Callable[[Sequence[Word]], Tensor]


def embed_sentences(
    bilm: BiLM,
    sentences: Sequence[Sequence[str]],
    *,
    max_batch_items: int,
    initial_state: InitialState = "stored",
    encode_words: EncodeWords | None = None,
) -> list[Tensor]:
    """Compute all layers of the biLM for each sentence. The other sentences do not change the result.

    bilm (BiLM): The model.
    sentences (Sequence[Sequence[str]]): The sentences' words. A sentence may be empty.
    max_batch_items (int): The maximum number of tokens in a batch, with sentence marks. A longer sentence runs alone.
    initial_state (str): The state at the start of each sentence: "stored" or "zero".
    encode_words (EncodeWords | None): Encodes word types, such as the method of a `WordCache`; by default the model's.
    RETURNS (list[Tensor]): One layers_LTW for each sentence, in the order of the sentences, without the marks.
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
    """Run the biLM on one batch of sentences from a given state.

    bilm (BiLM): The model.
    sentences (Sequence[Sequence[str]]): The sentences' words.
    state (State): The state at the start of each sentence.
    encode_words (EncodeWords | None): Encodes word types; by default the model's method.
    with_marks (bool): Whether the layers include the sentence marks.
    RETURNS (tuple): One layers_LTW for each sentence, and the state after each sentence. To carry the state over, pass
        it in with the sentences that follow.
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
