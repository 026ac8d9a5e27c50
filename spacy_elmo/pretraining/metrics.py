"""What a run writes down about itself: a line of JSON now and then."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..files.atomic import naming, write_file
from .processes import Processes
from .train import Step

Metrics = dict[str, Any]


@dataclass
class Totals:
    """Steps since the last line of metrics, summed up.

    loss (float): Cross-entropies of both directions.
    n_predicted, n_words (int): Predictions and words.
    seconds (float): Time.
    """

    loss: float = 0.0
    n_predicted: int = 0
    n_words: int = 0
    seconds: float = 0.0

    def add(self, step: Step) -> None:
        """Add a step.

        step (Step): The step, of this process.
        """
        self.loss += step.loss
        self.n_predicted += step.n_predicted
        self.n_words += step.n_words
        self.seconds += step.seconds

    def over(self, processes: Processes) -> "Totals":
        """RETURNS (Totals): The sums over all processes, which take the same time. All must take part."""
        loss, n_predicted, n_words = processes.sum([self.loss, self.n_predicted, self.n_words])
        return Totals(loss, int(n_predicted), int(n_words), self.seconds)


class MetricsFile:
    """A file of JSON lines, each with the number of the step it was written after.

    path (Path): The file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, metrics: Metrics) -> None:
        """Write a line.

        metrics (Metrics): The numbers.
        """
        with naming(self.path), self.path.open("a", encoding="utf8") as file:
            file.write(json.dumps(metrics) + "\n")

    def __iter__(self) -> Iterator[Metrics]:
        if not self.path.exists():
            return
        for line in self.path.read_text(encoding="utf8").splitlines():
            try:
                yield json.loads(line)
            except ValueError:  # a kill may cut the last line off
                return

    def cut_after(self, step: int) -> None:
        """Drop the lines of later steps, which a resumed run will write again.

        step (int): The last step to keep.
        """
        kept = [metrics for metrics in self if metrics["step"] <= step]
        write_file(self.path, "".join(json.dumps(metrics) + "\n" for metrics in kept))
