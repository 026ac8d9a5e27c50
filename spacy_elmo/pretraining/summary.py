"""A summary of a run before it starts: what is trained, on what, and for how long."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .run import PretrainingRun


def summarize(run: "PretrainingRun") -> Iterator[str]:
    """Summarize a run.

    run (PretrainingRun): The run.
    YIELDS (str): A line of the summary.
    """
    training, model, processes = run.settings.training, run.model, run.processes
    n_bilm, n_softmax = (sum(p.numel() for p in part.parameters()) for part in (model.bilm, model.softmax))
    yield (
        f"{n_bilm:,} parameters, and {n_softmax:,} in the softmax of {len(run.vocabulary):,} words, on "
        f"{processes.device.type} ({processes.count} process{'es' * (processes.count > 1)})"
    )
    yield (
        f"{run.train_corpus.n_tokens:,} words in {run.train_corpus.n_sentences:,} sentences: {run.n_steps:,} steps of "
        f"{training.batch_size * processes.count} rows and {training.unroll} tokens, "
        f"{run.n_steps / run.steps_per_epoch:.3g} epochs"
    )
    n_done = run.learner.n_steps_done
    if n_done < run.n_softmax_steps:
        yield f"The softmax is new: it is trained alone for {run.n_softmax_steps:,} steps"
    if run.extension is not None:
        yield run.extension.describe()
    if n_done >= run.n_steps:
        yield f"The run is finished: all {run.n_steps:,} steps are done"
    elif n_done:
        yield f"Resuming after step {n_done:,}"
