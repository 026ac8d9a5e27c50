"""The average state of a biLM over a text, as the initial state of every sentence."""

from collections.abc import Sequence

import torch

from .embed import run_batch
from .model import BiLM
from .state import State

STREAMS = 16  # parts of the text that are read in parallel
BURN_IN = 4  # sentences of each stream that are read before states are averaged, to forget the start from zeros
TOLERANCE = 0.01  # the average has settled when a round, one more sentence of each stream, changes it by less than this fraction of its norm


def find_initial_state(bilm: BiLM, sentences: Sequence[Sequence[str]], start: State | None = None) -> tuple[int, bool]:
    """Find an initial state and store it in a model.

    The state is carried over from each sentence to the next, as in the training of published models. The state after
    one sentence depends on that sentence, so the average of many such states is stored.

    bilm (BiLM): The model, whose initial state is replaced.
    sentences (Sequence[Sequence[str]]): The words of the sentences, in the order of the text.
    start (State | None): The states to start from, one for each stream, such as those at the end of training; None for
        zeros. The average may depend on it.
    RETURNS (tuple): The number of sentences that were read, and whether the average had settled.
    """
    if not sentences:
        raise ValueError("There is no sentence in the text to find an initial state from.")
    n_streams = min(STREAMS if start is None else start.hidden.shape[2], len(sentences))
    n_rounds = len(sentences) // n_streams
    burn_in = min(BURN_IN, n_rounds - 1)
    state = bilm.start(n_streams, "zero") if start is None else State(*(part[:, :, :n_streams] for part in start))
    average: State | None = None
    settled = False
    with torch.no_grad():
        for i in range(n_rounds):
            # Each stream is a contiguous part of the text, so the order of its sentences is that of the text.
            batch = [sentences[stream * n_rounds + i] for stream in range(n_streams)]
            _, state = run_batch(bilm, batch, state)
            if i < burn_in:
                continue
            current = State(state.hidden.mean(dim=2), state.cell.mean(dim=2))
            if average is None:
                average = current
                continue
            weight = 1 / (i - burn_in + 1)
            moved = State(*(old.lerp(new, weight) for old, new in zip(average, current, strict=True)))
            change = max(_distance(old, new) for old, new in zip(average, moved, strict=True))
            average = moved
            if change < TOLERANCE:
                settled = True
                break
    assert average is not None  # there is at least one round after the burn-in
    bilm.initial_hidden, bilm.initial_cell = average
    return (i + 1) * n_streams, settled


def _distance(old: torch.Tensor, new: torch.Tensor) -> float:
    return float((new - old).norm() / old.norm().clamp(min=1e-12))
