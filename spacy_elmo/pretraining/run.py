"""A pretraining run: the training loop, with metrics, evaluations, models and checkpoints between its steps."""

import json
import math
import time
from collections.abc import Callable
from dataclasses import astuple, dataclass, field
from itertools import islice
from pathlib import Path

from confection import Config

from ..files.atomic import write_file
from .checkpoint import Checkpoint, Progress, RunIdentity
from .language_model import LanguageModel
from .learner import Learner
from .learning_curve import draw_learning_curve
from .length import Extension, count_steps, count_steps_before
from .loggers import LogStep, start_logger, to_log_info
from .loop import train_steps
from .metrics import MetricsFile, MetricsRecorder, Totals, perplexities_to_metrics
from .model_files import load_language_model, save_language_model
from .output import BEST, CHECKPOINT, CURVE, LAST, METRICS, RUN_CONFIG, SCORES, clear_output, open_output
from .perplexity import Likelihood, check_finite_perplexity, measure_likelihood
from .prepare import TokenizedCorpus
from .processes import Processes
from .settings import PretrainingSettings
from .stopping import Stopped, StopSignals
from .streams import Streams
from .summary import summarize
from .vocabulary import Vocabulary

Report = Callable[[str], None]


@dataclass(frozen=True)
class Result:
    """The result of a run.

    likelihood (Likelihood): That of all of its dev text under its best model.
    initial_perplexity (float | None): The mean perplexity before the weights were trained, if they were not random.
    """

    likelihood: Likelihood
    initial_perplexity: float | None


@dataclass(kw_only=True)
class PretrainingRun:
    """A run, ready to start.

    settings (PretrainingSettings): Its settings.
    identity (RunIdentity): Its inputs, which must be the same when it is resumed.
    output (Path): Its directory.
    processes (Processes): Its processes.
    signals (StopSignals): The signals that stop it.
    train_corpus, dev_corpus (TokenizedCorpus): Its corpora.
    vocabulary (Vocabulary): The words that the model predicts.
    model (LanguageModel): The model that it trains.
    softmax_is_new (bool): Whether the softmax is random while the biLM is not.
    progress (Progress): How far it is.
    totals (Totals): The steps since its last line of metrics.
    extension (Extension | None): What has changed, if it is resumed with more steps than before.
    """

    settings: PretrainingSettings
    identity: RunIdentity
    output: Path
    processes: Processes
    signals: StopSignals
    train_corpus: TokenizedCorpus
    dev_corpus: TokenizedCorpus
    vocabulary: Vocabulary
    model: LanguageModel
    softmax_is_new: bool
    progress: Progress = field(default_factory=Progress)
    totals: Totals = field(default_factory=Totals)
    extension: Extension | None = None

    def __post_init__(self) -> None:
        training, processes = self.settings.training, self.processes
        n_rows = training.batch_size * processes.count
        first_row = training.batch_size * processes.rank
        streams = Streams(
            self.train_corpus.path,
            self.vocabulary,
            n_rows=n_rows,
            rows=range(first_row, first_row + training.batch_size),
            unroll=training.unroll,
            with_end=training.carry_state,
        )
        n_tokens = self.train_corpus.n_tokens + self.train_corpus.n_sentences * streams.marks_in_a_sentence
        self.steps_per_epoch = n_tokens / (n_rows * training.unroll)
        self.n_steps = count_steps(vars(training), self.steps_per_epoch)
        self.n_softmax_steps = math.floor(training.softmax_share * self.n_steps) if self.softmax_is_new else 0
        optimizer = self.settings.make_optimizer(self.model.parameters())
        schedule = self.settings.make_schedule(optimizer, self.n_steps)
        carried = self.model.bilm.start(training.batch_size)
        self.learner = Learner(self.model, optimizer, schedule, streams, carried)
        self.metrics_file = MetricsFile(self.output / METRICS)

    def restore(self, checkpoint: Checkpoint) -> None:
        """Return to the state of a checkpoint.

        checkpoint (Checkpoint): The checkpoint.
        """
        self.identity.check_same_data(checkpoint.identity, self.output)
        n_rows, batch_size = len(checkpoint.tensors["positions"]), self.settings.training.batch_size
        if n_rows != batch_size * self.processes.count:
            raise ValueError(
                f"The run in {self.output} has {n_rows} rows: {n_rows // batch_size} processes with a batch_size of "
                f"{batch_size}. Resume it with as many processes; now there are {self.processes.count}."
            )
        before = checkpoint.identity.config["bilm_training"]
        n_before = count_steps_before(vars(self.settings.training), before, self.steps_per_epoch)
        is_longer = self.n_steps > n_before
        self.learner.restore(checkpoint, self.processes, is_longer=is_longer)
        self.progress = checkpoint.progress
        if "totals" in checkpoint.tensors:
            self.totals = Totals.from_tensor(self.processes.own_part(checkpoint.tensors["totals"], dim=0))
        n_done = self.learner.n_steps_done
        if is_longer:
            rates = (checkpoint.optimizer["param_groups"][0]["lr"], self.learner.optimizer.param_groups[0]["lr"])
            self.extension = Extension(n_before, self.n_steps, n_done + 1, *rates)
        if self.progress.initial_perplexity is not None:
            # The biLM is trained by now, and stays so if a longer run would have started with it later.
            self.n_softmax_steps = 0

    def execute(self, report: Report) -> Result:
        """Train to the last step, and evaluate the best model.

        report (Report): Called before the first step, with each line of a summary.
        RETURNS (Result): The result.
        """
        self.processes.wait()  # one may still be reading weights from files that the first is about to replace
        if self.processes.is_first:
            self._prepare_output()
            for line in summarize(self):
                report(line)
        self.recorder = MetricsRecorder(
            self.metrics_file, self.progress, self.totals, self.processes, steps_per_epoch=self.steps_per_epoch
        )
        log_step, close_logger = self._start_logger()
        with self.signals.deferred():
            try:
                self._train(log_step)
            finally:
                close_logger()
            return self._finish()

    @property
    def n_steps_recorded(self) -> int:
        """RETURNS (int): Steps up to which metrics are complete: one less than the steps done if some are not in a line of
        metrics yet. A run that resumes looks at its last step again."""
        return self.learner.n_steps_done - (not self.totals.is_empty)

    def evaluate(self, *, whole: bool = False) -> Likelihood:
        """Measure the model on the dev text, and change nothing. Every process must take part.

        whole (bool): Whether to read all of the dev text, and not a part of it that is the same every time.
        RETURNS (Likelihood): The likelihood of the text.
        """
        n_tokens = 0 if whole else self.settings.training.eval_tokens
        stride = math.ceil(self.dev_corpus.n_tokens / (n_tokens or self.dev_corpus.n_tokens))
        sentences = islice(self.dev_corpus, 0, None, stride)
        own = islice(sentences, self.processes.rank, None, self.processes.count)
        likelihood = measure_likelihood(self.model, self.vocabulary, own, is_stopped=self.signals.is_received)
        sums = self.processes.sum(list(astuple(likelihood)))
        self.signals.raise_together(self.processes)
        return Likelihood.from_sums(sums)

    def _train(self, log_step: LogStep) -> None:
        """Train to the last step. If a signal stops the training, write a checkpoint first."""
        learner, progress = self.learner, self.progress
        self._saved_at = time.monotonic()
        if learner.n_steps_done == 0 and isinstance(self.settings.bilm, Path) and not self.n_softmax_steps:
            self._update_initial_state()
            progress.initial_perplexity = self.evaluate(whole=True).perplexities["mean"]
        try:
            if not self.totals.is_empty:  # the run may have been stopped in the evaluation after this step
                self._record(log_step)
            for step in train_steps(
                learner,
                self.settings.training,
                self.processes,
                n_steps=self.n_steps,
                n_softmax_steps=self.n_softmax_steps,
            ):
                self.totals.add(step)
                self._record(log_step)
                if self._is_checkpoint_due():
                    self._save_checkpoint()
                self.signals.raise_together(self.processes)
        except Stopped:
            self._save_checkpoint()
            self.processes.wait()  # torchrun ends the others as soon as one has ended
            raise

    def _record(self, log_step: LogStep) -> None:
        """Log, evaluate and save after a step, if it is time for that."""
        training, progress, step = self.settings.training, self.progress, self.learner.n_steps_done
        if step % training.eval_frequency == 0 or step in (self.n_softmax_steps, self.n_steps):
            self._update_initial_state()
            scores = self.evaluate().perplexities
            check_finite_perplexity(scores["mean"], step)
            if step == self.n_softmax_steps:
                progress.initial_perplexity = self.evaluate(whole=True).perplexities["mean"]
            metrics = self.recorder.write(step, perplexities_to_metrics(scores))
            # In this order: a run that is killed between two files is resumed from the checkpoint before, and writes the
            # same files again.
            if scores["mean"] < progress.best_perplexity:
                progress.best_perplexity = scores["mean"]
                self._save_model(BEST)
            self._save_model(LAST)
            if self.processes.is_first:
                write_file(self.output / CURVE, draw_learning_curve(list(self.metrics_file)))
            self._save_checkpoint()
            log_step(to_log_info(metrics, self.n_steps))
        else:
            if step % training.log_frequency == 0:
                self.recorder.write(step, {})
            log_step(None)

    def _is_checkpoint_due(self) -> bool:
        """RETURNS (bool): Whether it is time for a checkpoint, by the clock of the first process. All must take part."""
        minutes = self.settings.training.checkpoint_minutes
        is_due = 0 < minutes <= (time.monotonic() - self._saved_at) / 60
        return self.processes.sum([float(is_due and self.processes.is_first)])[0] > 0

    def _update_initial_state(self) -> None:
        if self.settings.training.carry_state:
            self.learner.update_initial_state(self.train_corpus, self.processes)

    def _save_model(self, name: str) -> None:
        if self.processes.is_first:
            directory = self.output / name
            kept = frozenset(path.name for path in directory.glob("*"))  # somebody's notes must not end the run
            save_language_model(self.model, self.vocabulary, directory, lang=self.settings.corpus.lang, kept=kept)

    def _save_checkpoint(self) -> None:
        self.recorder.keep_time()
        checkpoint = self.learner.to_checkpoint(
            self.processes,
            totals=self.totals.to_tensor(),
            identity=self.identity,
            softmax_is_new=self.softmax_is_new,
            progress=self.progress,
        )
        if self.processes.is_first:
            if not (self.output / LAST).exists():  # before the first evaluation; a resumed run reads its words there
                self._save_model(LAST)
            checkpoint.to_disk(self.output / CHECKPOINT)
        self._saved_at = time.monotonic()

    def _prepare_output(self) -> None:
        """Make the directory of the run. An old run is removed only when the new one is ready to start."""
        open_output(self.output)
        if self.learner.n_steps_done:
            self.metrics_file.cut_after(self.n_steps_recorded)
        else:
            clear_output(self.output)
        write_file(self.output / RUN_CONFIG, self._config.to_str())

    def _finish(self) -> Result:
        """Measure the best model on all of the dev text."""
        likelihood = Likelihood()
        if self.processes.is_first:
            model, vocabulary = load_language_model(self.output / BEST)
            model = model.to(self.processes.device)
            likelihood = measure_likelihood(model, vocabulary, self.dev_corpus, is_stopped=self.signals.is_received)
        self.signals.raise_together(self.processes)
        if self.processes.is_first:
            scores = {
                **likelihood.to_dict(),
                "n_words": self.progress.n_words,
                "seconds": self.progress.seconds,
                "best": self.progress.best_perplexity,
                "before": self.progress.initial_perplexity,
            }
            write_file(self.output / SCORES, json.dumps(scores, indent=2) + "\n")
        self.processes.wait()
        return Result(likelihood, self.progress.initial_perplexity)

    def _start_logger(self) -> tuple[LogStep, Callable[[], None]]:
        if not self.processes.is_first:
            return lambda info: None, lambda: None
        return start_logger(self.settings, self._config, n_steps=self.n_steps, n_steps_done=self.n_steps_recorded)

    @property
    def _config(self) -> Config:
        return Config(self.identity.config)
