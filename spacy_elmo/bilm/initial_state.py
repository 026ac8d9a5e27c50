"""Find the state that a biLM settles into, for every sentence to start from."""

from collections.abc import Sequence

import torch

from .embed import run_batch
from .lstm import State
from .model import BiLM

STREAMS = 16  # texts that are read side by side
BURN_IN = 4  # sentences of each stream that are read before the state counts: until then it remembers the zeros
TOLERANCE = 0.01  # the average state has settled when one more sentence moves it by less than this share of its size


def find_initial_state(bilm: BiLM, sentences: Sequence[Sequence[str]], start: State | None = None) -> tuple[int, bool]:
    """Run sentences with the state carried over from each to the next, as published models were trained, and store the
    average of the states between sentences.

    The state after one sentence still knows that sentence; the average over many is what they have in common.

    bilm (BiLM): The model, whose initial state is replaced.
    sentences (Sequence[Sequence[str]]): The sentences' words, in the order of the text.
    start (State | None): States that texts were read up to, one for each stream; None to start from zeros. A model may
        settle into one state from zeros and into another from what it has seen while it was trained.
    RETURNS (tuple): How many sentences were read, and whether the state had settled then.
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
            # Each stream is one stretch of the text, so that what follows in it followed there.
            batch = [sentences[stream * n_rounds + i] for stream in range(n_streams)]
            _, state = run_batch(bilm, batch, state)
            if i < burn_in:
                continue
            current = State(state.hidden.mean(dim=2), state.cell.mean(dim=2))
            if average is None:
                average = current
                continue
            share = 1 / (i - burn_in + 1)
            moved = State(*(old.lerp(new, share) for old, new in zip(average, current, strict=True)))
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
