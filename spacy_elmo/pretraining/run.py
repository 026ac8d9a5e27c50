"""A run: what happens between the steps of the training loop. Metrics, evaluations, models and checkpoints."""

import json
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, astuple, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from ..bilm.initial_state import STREAMS, find_initial_state
from ..bilm.lstm import State
from ..files.atomic import write_file
from .checkpoint import Checkpoint
from .language_model import LanguageModel
from .learning_curve import draw_learning_curve
from .loggers import LogStep, start_logger
from .metrics import Metrics, MetricsFile, Totals
from .model_files import load_language_model, save_language_model
from .output import BEST, CHECKPOINT, CONFIG, CURVE, LAST, METRICS, SCORES, clear_output, open_output
from .perplexity import Likelihood, measure_likelihood
from .prepare import TokenizedCorpus
from .processes import Processes
from .settings import Settings
from .streams import Streams
from .train import Learner, Step, train
from .vocabulary import Vocabulary

# A text that is long enough for the carried state to settle.
WARM_UP_SENTENCES = 640

Report = Callable[[str], None]


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
        self.n_softmax_steps = math.floor(training.softmax_share * self.n_steps) if self.softmax_is_new else 0
        optimizer = self.settings.make_optimizer(self.model.parameters())
        schedule = self.settings.make_schedule(optimizer, self.n_steps)
        self.learner = Learner(self.model, optimizer, schedule, streams, bilm.start(training.batch_size))
        self.metrics = MetricsFile(self.output / METRICS)

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go back to where a checkpoint was made.

        checkpoint (Checkpoint): The checkpoint.
        """
        for name in ("training text", "dev text", "vocabulary"):
            if checkpoint.facts[name] != self.identity[name]:
                raise ValueError(
                    f"The run in {self.output} has another {name}. Go on with the one it began with, or start anew in another "
                    f"place."
                )
        n_rows, batch_size = len(checkpoint.tensors["positions"]), self.settings.training.batch_size
        if n_rows != batch_size * self.processes.count:
            raise ValueError(
                f"The run in {self.output} has {n_rows} rows: {n_rows // batch_size} processes with a batch_size of "
                f"{batch_size}. Go on with as many; now there are {self.processes.count}."
            )
        self.learner.restore(checkpoint, self.processes)
        self.progress = Progress(**checkpoint.facts["progress"])

    def go(self, report: Report) -> Result:
        """Learn to the end.

        report (Report): Called with what is worth saying before the first step.
        RETURNS (Result): What came out.
        """
        self.processes.wait()  # one may still be reading weights from where the first is about to write
        if self.processes.is_first:
            self._open_output()
            for line in self._introduce():
                report(line)
        log_step, finalize = self._start_logger()
        try:
            self._learn(log_step)
        finally:
            finalize()
        return self._finish()

    def _learn(self, log_step: LogStep) -> None:
        """Go through the steps, and do between them what is due."""
        training, learner, processes = self.settings.training, self.learner, self.processes
        goes_on_from_weights = isinstance(self.settings.bilm, Path)
        if goes_on_from_weights and not self.n_softmax_steps and learner.n_done == 0:
            self.progress.before = self.evaluate(whole=True)["perplexity"]
        totals = Totals()
        start = time.perf_counter() - self.progress.seconds
        for step in train(learner, training, processes, n_steps=self.n_steps, n_softmax_steps=self.n_softmax_steps):
            totals.add(step)
            is_evaluated = step.number % training.eval_frequency == 0 or step.number in (
                self.n_softmax_steps,
                self.n_steps,
            )
            if not is_evaluated and step.number % training.log_frequency:
                log_step(None)
                continue
            sums, totals = totals.over(processes), Totals()
            self.progress.n_words += sums.n_words
            metrics = self._describe(sums, step)
            if is_evaluated:
                metrics |= self._evaluate_after(step)
            self.progress.seconds = metrics["seconds"] = time.perf_counter() - start
            if processes.is_first:
                self.metrics.append(metrics)
            if is_evaluated:
                self._save(metrics["perplexity"])
            log_step(self._inform(metrics) if is_evaluated else None)

    def _evaluate_after(self, step: Step) -> Metrics:
        """Measure the model after a step, and note it where the biLM is about to learn for the first time."""
        metrics = self.evaluate()
        if not math.isfinite(metrics["perplexity"]):
            raise FloatingPointError(
                f"After step {step.number}, with a loss that was still a number, the weights predict nothing: the dev perplexity is "
                f"{metrics['perplexity']}. They were not saved."
            )
        if step.number == self.n_softmax_steps:
            self.progress.before = self.evaluate(whole=True)["perplexity"]
        return metrics

    def evaluate(self, *, whole: bool = False) -> Metrics:
        """Measure the model on a part of the dev text that is the same every time. Every process must take part.

        whole (bool): Whether to measure it on all of the dev text instead.
        RETURNS (Metrics): Its perplexities.
        """
        if self.settings.training.carry_state:
            # From where the rows are: a model that was never reset may not find there from zeros.
            carried = State(*(self.processes.gather(part, dim=2)[:, :, :STREAMS] for part in self.learner.carried))
            find_initial_state(self.model.bilm, list(islice(self.train, WARM_UP_SENTENCES)), carried)
        n_tokens = 0 if whole else self.settings.training.eval_tokens
        stride = math.ceil(self.dev.n_tokens / (n_tokens or self.dev.n_tokens))
        sentences = islice(self.dev, 0, None, stride)
        own = islice(sentences, self.processes.rank, None, self.processes.count)
        likelihood = measure_likelihood(self.model, self.vocabulary, own)
        scores = Likelihood.from_sums(self.processes.sum(list(astuple(likelihood)))).perplexities
        return {
            "perplexity_forward": scores["forward"],
            "perplexity_backward": scores["backward"],
            "perplexity": scores["mean"],
            "perplexity_unigram": scores["unigram"],
        }

    def _describe(self, sums: Totals, step: Step) -> Metrics:
        return {
            "step": step.number,
            "epoch": step.number / self.steps_in_an_epoch,
            "words": self.progress.n_words,
            "words_per_second": sums.n_words / sums.seconds,
            "loss": sums.loss / max(1, sums.n_predicted),
            "learn_rate": step.learn_rate,
            "grad_norm": step.grad_norm,
        }

    def _save(self, perplexity: float) -> None:
        """Keep the model, the best one too, then all that it takes to go on from here. In this order: a run that is killed
        on the way goes on from the checkpoint before, and makes the same models again."""
        if perplexity < self.progress.best:
            self.progress.best = perplexity
            if self.processes.is_first:
                self._save_model(BEST)
        facts = {
            **self.identity,
            "bilm": self.model.bilm.config.to_dict(),
            "softmax_is_new": self.softmax_is_new,
            "progress": asdict(self.progress),
        }
        checkpoint = self.learner.to_checkpoint(self.processes, facts)
        if self.processes.is_first:
            write_file(self.output / CURVE, draw_learning_curve(list(self.metrics)))
            self._save_model(LAST)
            checkpoint.to_disk(self.output / CHECKPOINT)

    def _save_model(self, name: str) -> None:
        save_language_model(self.model, self.vocabulary, self.output / name, lang=self.settings.corpus.lang)

    def _open_output(self) -> None:
        """Make the run's directory ready. Only now, when nothing is in the way of the run, an old one is removed."""
        open_output(self.output)
        if self.learner.n_done:
            self.metrics.cut_after(self.learner.n_done)
        else:
            clear_output(self.output)
            write_file(self.output / CONFIG, self.identity["config"].to_str())

    def _introduce(self) -> Iterator[str]:
        """Say what is about to happen."""
        training, model = self.settings.training, self.model
        n_bilm, n_softmax = (sum(p.numel() for p in part.parameters()) for part in (model.bilm, model.softmax))
        n_rows = training.batch_size * self.processes.count
        yield (
            f"{n_bilm:,} parameters, and {n_softmax:,} in the softmax of {len(self.vocabulary):,} words, on "
            f"{self.processes.device.type} ({self.processes.count} process{'es' * (self.processes.count > 1)})"
        )
        yield (
            f"{self.train.n_tokens:,} words in {self.train.n_sentences:,} sentences: {self.n_steps:,} steps of {n_rows} rows "
            f"and {training.unroll} tokens, {self.n_steps / self.steps_in_an_epoch:.3g} epochs"
        )
        if self.n_softmax_steps:
            yield f"The softmax is new, and learns alone for {self.n_softmax_steps:,} steps"
        if self.learner.n_done:
            yield f"Going on after step {self.learner.n_done:,}"

    def _finish(self) -> Result:
        """Measure the best model on all of the dev text."""
        likelihood = Likelihood()
        if self.processes.is_first:
            model, vocabulary = load_language_model(self.output / BEST)
            likelihood = measure_likelihood(model.to(self.processes.device), vocabulary, self.dev)
            scores = {**likelihood.to_dict(), **asdict(self.progress)}
            write_file(self.output / SCORES, json.dumps(scores, indent=2) + "\n")
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
