"""A run: what happens between the steps of the training loop. Metrics, evaluations, models and checkpoints."""

import json
import math
import time
from collections.abc import Callable
from dataclasses import asdict, astuple, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from ..atomic import write_file
from ..bilm.lstm import State
from ..bilm.warm_up import STREAMS, find_initial_state
from .checkpoint import Checkpoint
from .language_model import LanguageModel
from .learning_curve import draw_learning_curve
from .loggers import LogStep, start_logger
from .metrics import Metrics, MetricsFile, Totals
from .model_files import load_language_model, save_language_model
from .perplexity import Likelihood, measure_likelihood
from .prepare import TokenizedCorpus
from .processes import Processes
from .settings import Settings
from .streams import Streams
from .train import Learner, train
from .vocabulary import Vocabulary

BEST, LAST = "model-best", "model-last"
CHECKPOINT, METRICS, SCORES, CURVE = "checkpoint.safetensors", "metrics.jsonl", "scores.json", "learning-curve.svg"

# A text that is long enough for the carried state to settle.
WARM_UP_SENTENCES = 640


@dataclass(frozen=True)
class Result:
    """What a run came to.

    likelihood (Likelihood): Of its best model, on all of its dev text.
    before (float | None): The mean perplexity before the weights learned, if they were not random.
    """

    likelihood: Likelihood
    before: float | None


@dataclass
class Progress:
    """How far a run is.

    n_words (int): Words that were read.
    seconds (float): Time that it took, pauses left out.
    best (float): The lowest mean perplexity so far.
    before (float | None): The mean perplexity before the weights learned, if they were not random.
    """

    n_words: int = 0
    seconds: float = 0.0
    best: float = math.inf
    before: float | None = None


@dataclass(kw_only=True)
class Run:
    """A run.

    settings (Settings): Its settings.
    identity (dict[str, Any]): What must be the same when it goes on.
    output (Path): Its directory.
    processes (Processes): Who takes part.
    train, dev (TokenizedCorpus): Its corpora.
    vocabulary (Vocabulary): The words that it predicts.
    model (LanguageModel): The model that it changes.
    softmax_is_new (bool): Whether the softmax is random while the biLM is not.
    """

    settings: Settings
    identity: dict[str, Any]
    output: Path
    processes: Processes
    train: TokenizedCorpus
    dev: TokenizedCorpus
    vocabulary: Vocabulary
    model: LanguageModel
    softmax_is_new: bool
    progress: Progress = field(default_factory=Progress)

    def __post_init__(self) -> None:
        training, processes, bilm = self.settings.training, self.processes, self.model.bilm
        n_rows = training.batch_size * processes.count
        first_row = training.batch_size * processes.rank
        streams = Streams(
            self.train.path,
            self.vocabulary,
            n_rows=n_rows,
            rows=range(first_row, first_row + training.batch_size),
            n_steps=training.unroll,
            with_end=training.carry_state,
        )
        n_tokens = self.train.n_tokens + self.train.n_sentences * streams.marks_in_a_sentence
        self.steps_in_an_epoch = n_tokens / (n_rows * training.unroll)
        self.n_steps = max(1, math.ceil(training.epochs * self.steps_in_an_epoch))
        if training.max_steps:
            self.n_steps = min(self.n_steps, training.max_steps)
        self.n_softmax_steps = min(training.softmax_steps, self.n_steps) if self.softmax_is_new else 0
        optimizer = self.settings.make_optimizer(self.model.parameters())
        schedule = self.settings.make_schedule(optimizer, self.n_steps)
        self.learner = Learner(self.model, optimizer, schedule, streams, bilm.start(training.batch_size))
        self.metrics = MetricsFile(self.output / METRICS)

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go back to where a checkpoint was made.

        checkpoint (Checkpoint): The checkpoint.
        """
        for name in ("corpus", "vocabulary"):
            if checkpoint.facts[name] != self.identity[name]:
                raise ValueError(
                    f"The run in {self.output} has another {name}. Go on with the one it began with, or start anew in another "
                    f"place."
                )
        n_rows = len(checkpoint.tensors["positions"])
        if n_rows != self.settings.training.batch_size * self.processes.count:
            raise ValueError(
                f"The run in {self.output} has {n_rows} rows, which {self.processes.count} processes with a batch_size of "
                f"{self.settings.training.batch_size} have not. Go on with as many processes as before."
            )
        self.learner.restore(checkpoint, self.processes)
        self.progress = Progress(**checkpoint.facts["progress"])
        if self.processes.is_first:
            self.metrics.cut_after(self.learner.n_done)

    def go(self) -> Result:
        """Learn to the end.

        RETURNS (Result): What came out.
        """
        training, learner, processes = self.settings.training, self.learner, self.processes
        goes_on_from_weights = isinstance(self.settings.bilm, Path)
        log_step, finalize = self._start_logger()
        if goes_on_from_weights and not self.softmax_is_new and learner.n_done == 0:
            self.progress.before = self.evaluate()["perplexity"]
        totals = Totals()
        start = time.perf_counter() - self.progress.seconds
        for step in train(learner, training, processes, n_steps=self.n_steps, n_softmax_steps=self.n_softmax_steps):
            totals.add(step)
            is_evaluated = step.number % training.eval_frequency == 0 or step.number in (
                self.n_softmax_steps,
                self.n_steps,
            )
            info = None
            if is_evaluated or step.number % training.log_frequency == 0:
                sums = totals.over(processes)
                totals = Totals()
                self.progress.n_words += sums.n_words
                metrics = self._describe(sums, step.learn_rate, step.grad_norm)
                if is_evaluated:
                    metrics |= self.evaluate()
                    if goes_on_from_weights and step.number == self.n_softmax_steps:
                        self.progress.before = metrics["perplexity"]
                self.progress.seconds = metrics["seconds"] = time.perf_counter() - start
                if processes.is_first:
                    self.metrics.append(metrics)
                if is_evaluated:
                    self._save(metrics["perplexity"])
                    info = self._inform(metrics)
            log_step(info)
        finalize()
        return self._finish()

    def evaluate(self) -> Metrics:
        """Measure the model on a part of the dev text that is the same every time. Every process must take part.

        RETURNS (Metrics): Its perplexities.
        """
        if self.settings.training.carry_state:
            # From where the rows are: a model that was never reset may not find there from zeros.
            carried = State(*(self.processes.gather(part, dim=2)[:, :, :STREAMS] for part in self.learner.carried))
            find_initial_state(self.model.bilm, list(islice(self.train, WARM_UP_SENTENCES)), carried)
        n_tokens = self.settings.training.eval_tokens or self.dev.n_tokens
        stride = math.ceil(self.dev.n_tokens / n_tokens)
        sentences = islice(self.dev, 0, None, stride)
        own = islice(sentences, self.processes.rank, None, self.processes.count)
        likelihood = measure_likelihood(self.model, self.vocabulary, own)
        scores = Likelihood.from_sums(self.processes.sum(list(astuple(likelihood)))).perplexities
        return {
            "perplexity_forward": scores["forward"],
            "perplexity_backward": scores["backward"],
            "perplexity": scores["mean"],
        }

    def _describe(self, sums: Totals, learn_rate: float, grad_norm: float) -> Metrics:
        n_done = self.learner.n_done
        return {
            "step": n_done,
            "epoch": n_done / self.steps_in_an_epoch,
            "words": self.progress.n_words,
            "words_per_second": sums.n_words / sums.seconds,
            "loss": sums.loss / sums.n_predicted,
            "learn_rate": learn_rate,
            "grad_norm": grad_norm,
        }

    def _save(self, perplexity: float) -> None:
        """Keep the model, the best one too, then all that it takes to go on from here. In this order: a run that is killed
        on the way goes on from the checkpoint before, and makes the same models again."""
        if perplexity < self.progress.best:
            self.progress.best = perplexity
            if self.processes.is_first:
                save_language_model(self.model, self.vocabulary, self.output / BEST)
        facts = {**self.identity, "progress": asdict(self.progress)}
        checkpoint = self.learner.to_checkpoint(self.processes, facts)
        if self.processes.is_first:
            save_language_model(self.model, self.vocabulary, self.output / LAST)
            checkpoint.to_disk(self.output / CHECKPOINT)

    def _finish(self) -> Result:
        """Measure the best model on all of the dev text, and draw how it came to be."""
        likelihood = Likelihood()
        if self.processes.is_first:
            model, vocabulary = load_language_model(self.output / BEST)
            likelihood = measure_likelihood(model.to(self.processes.device), vocabulary, self.dev)
            scores = {**likelihood.to_dict(), "before": self.progress.before, **asdict(self.progress)}
            write_file(self.output / SCORES, json.dumps(scores, indent=2) + "\n")
            write_file(self.output / CURVE, draw_learning_curve(list(self.metrics), likelihood.perplexities["unigram"]))
        self.processes.wait()
        return Result(likelihood, self.progress.before)

    def _start_logger(self) -> tuple[LogStep, Callable[[], None]]:
        if not self.processes.is_first:
            return lambda info: None, lambda: None
        return start_logger(self.settings, self.identity["config"], n_steps=self.n_steps, n_done=self.learner.n_done)

    def _inform(self, metrics: Metrics) -> Metrics:
        """Put metrics into the form that spaCy's loggers know."""
        left = (self.n_steps - metrics["step"]) * metrics["seconds"] / metrics["step"]
        return {
            "epoch": int(metrics["epoch"]),
            "step": metrics["step"],
            "score": metrics["perplexity"],
            "other_scores": {name: value for name, value in metrics.items() if name.startswith("perplexity")},
            "losses": {"bilm": metrics["loss"]},
            "checkpoints": [],
            "seconds": int(metrics["seconds"]),
            "words": metrics["words"],
            "bilm": {**metrics, "seconds_left": left},
        }
