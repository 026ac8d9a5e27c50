"""The metrics of a run: a line of JSON every few steps."""

import json
import time
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..files.atomic import explain_write_errors, write_file
from .checkpoint import Progress
from .loop import Step
from .processes import Processes

Metrics = dict[str, Any]


@dataclass
class Totals:
    """What the next line of metrics has to say: sums over the steps since the last line.

    loss (float): Cross-entropies of both directions.
    n_predicted, n_words (int): Predictions and words.
    seconds (float): Time.
    learn_rate, grad_norm (float): The learning rate and the norm of the gradients in the last step.
    """

    loss: float = 0.0
    n_predicted: int = 0
    n_words: int = 0
    seconds: float = 0.0
    learn_rate: float = 0.0
    grad_norm: float = 0.0

    @property
    def is_empty(self) -> bool:
        """RETURNS (bool): Whether there was no step since the last line."""
        return self == Totals()

    def add(self, step: Step) -> None:
        """Add a step.

        step (Step): The step, of this process.
        """
        self.loss += step.loss
        self.n_predicted += step.n_predicted
        self.n_words += step.n_words
        self.seconds += step.seconds
        self.learn_rate, self.grad_norm = step.learn_rate, step.grad_norm

    def reset(self) -> None:
        """Forget all steps, because a line about them was written."""
        vars(self).update(vars(Totals()))

    def sum_over(self, processes: Processes) -> "Totals":
        """RETURNS (Totals): The sums over all processes, which take the same time. All must take part."""
        loss, n_predicted, n_words = processes.sum([self.loss, self.n_predicted, self.n_words])
        return Totals(loss, int(n_predicted), int(n_words), self.seconds, self.learn_rate, self.grad_norm)

    def to_tensor(self) -> Tensor:
        """RETURNS (Tensor): The values in one row, for a checkpoint."""
        return torch.tensor([astuple(self)], dtype=torch.float64)

    @classmethod
    def from_tensor(cls, tensor: Tensor) -> "Totals":
        """RETURNS (Totals): What `to_tensor` made a row of."""
        loss, n_predicted, n_words, seconds, learn_rate, grad_norm = tensor[0].tolist()
        return cls(loss, int(n_predicted), int(n_words), seconds, learn_rate, grad_norm)


class MetricsFile:
    """A file of JSON lines, each with the number of the step that it was written after.

    path (Path): The file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, metrics: Metrics) -> None:
        """Write a line.

        metrics (Metrics): The numbers.
        """
        with explain_write_errors(self.path), self.path.open("a", encoding="utf8") as file:
            file.write(json.dumps(metrics) + "\n")

    def __iter__(self) -> Iterator[Metrics]:
        if not self.path.is_file():
            return
        for line in self.path.read_bytes().splitlines():
            try:
                metrics = json.loads(line.decode("utf8"))
            except (ValueError, RecursionError):  # a kill may cut the last line off
                return
            if not isinstance(metrics, dict) or not isinstance(metrics.get("step"), int):
                raise ValueError(
                    f"{self.path} is not the metrics of a run: expected a step in each line, got {line!r:.80}."
                )
            yield metrics

    def cut_after(self, step: int) -> None:
        """Drop the lines of later steps, which a resumed run will write again.

        step (int): The last step to keep.
        """
        kept = [metrics for metrics in self if metrics["step"] <= step]
        write_file(self.path, "".join(json.dumps(metrics) + "\n" for metrics in kept))


class MetricsRecorder:
    """Writes the metrics of steps. It keeps the words and the time of a run's progress up to date.

    file (MetricsFile): The file, which the first process writes.
    progress (Progress): The progress of the run.
    totals (Totals): The steps since the last line, of this process. A line resets them.
    processes (Processes): The processes of the run.
    steps_per_epoch (float): The number of steps that read the corpus once.
    """

    def __init__(
        self,
        file: MetricsFile,
        progress: Progress,
        totals: Totals,
        processes: Processes,
        *,
        steps_per_epoch: float,
    ) -> None:
        self._file = file
        self._progress = progress
        self._totals = totals
        self._processes = processes
        self._steps_per_epoch = steps_per_epoch
        self._start = time.perf_counter() - progress.seconds

    def keep_time(self) -> None:
        """Update the time of the run's progress."""
        self._progress.seconds = time.perf_counter() - self._start

    def write(self, step: int, scores: Metrics) -> Metrics:
        """Write a line about all steps since the last one. Every process must take part.

        step (int): The number of the last step.
        scores (Metrics): The results of an evaluation after it, or nothing.
        RETURNS (Metrics): The line.
        """
        totals = self._totals.sum_over(self._processes)
        self._totals.reset()
        self._progress.n_words += totals.n_words
        self.keep_time()
        metrics = {
            "step": step,
            "epoch": step / self._steps_per_epoch,
            "words": self._progress.n_words,
            "words_per_second": totals.n_words / totals.seconds,
            "loss": totals.loss / max(1, totals.n_predicted),
            "learn_rate": totals.learn_rate,
            "grad_norm": totals.grad_norm,
            **scores,
            "seconds": self._progress.seconds,
        }
        if self._processes.is_first:
            self._file.append(metrics)
        return metrics


def perplexities_to_metrics(perplexities: dict[str, float]) -> Metrics:
    """RETURNS (Metrics): The perplexities of an evaluation under the names that they have in a line of metrics."""
    return {
        "perplexity_forward": perplexities["forward"],
        "perplexity_backward": perplexities["backward"],
        "perplexity": perplexities["mean"],
        "perplexity_unigram": perplexities["unigram"],
    }
