"""A pretraining run: the training loop, with metrics, evaluations, models and checkpoints between its steps."""

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass, field
from itertools import islice
from pathlib import Path

from confection import Config

from ..bilm.initial_state import STREAMS, find_initial_state
from ..bilm.state import State
from ..files.atomic import write_file
from .checkpoint import Checkpoint, Progress, RunIdentity
from .language_model import LanguageModel
from .learner import Learner
from .learning_curve import draw_learning_curve
from .loggers import LogStep, start_logger, to_log_info
from .loop import train_steps
from .metrics import Metrics, MetricsFile, MetricsRecorder
from .model_files import load_language_model, save_language_model
from .output import BEST, CHECKPOINT, CURVE, LAST, METRICS, RUN_CONFIG, SCORES, clear_output, open_output
from .perplexity import Likelihood, measure_likelihood
from .prepare import TokenizedCorpus
from .processes import Processes
from .settings import PretrainingSettings
from .streams import Streams
from .vocabulary import Vocabulary

# Enough text for the carried state to settle.
WARM_UP_SENTENCES = 640

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
    train_corpus, dev_corpus (TokenizedCorpus): Its corpora.
    vocabulary (Vocabulary): The words that the model predicts.
    model (LanguageModel): The model that it trains.
    softmax_is_new (bool): Whether the softmax is random while the biLM is not.
    progress (Progress): How far it is.
    """

    settings: PretrainingSettings
    identity: RunIdentity
    output: Path
    processes: Processes
    train_corpus: TokenizedCorpus
    dev_corpus: TokenizedCorpus
    vocabulary: Vocabulary
    model: LanguageModel
    softmax_is_new: bool
    progress: Progress = field(default_factory=Progress)

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
        self.n_steps = max(1, math.ceil(training.epochs * self.steps_per_epoch))
        if training.max_steps:
            self.n_steps = min(self.n_steps, training.max_steps)
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
        for name, found, expected in [
            ("training text", self.identity.train_sha256, checkpoint.identity.train_sha256),
            ("dev text", self.identity.dev_sha256, checkpoint.identity.dev_sha256),
            ("vocabulary", self.identity.vocabulary_sha256, checkpoint.identity.vocabulary_sha256),
        ]:
            if found != expected:
                raise ValueError(
                    f"The run in {self.output} was started with another {name}. Resume it with that one, or start from scratch "
                    f"in another directory."
                )
        n_rows, batch_size = len(checkpoint.tensors["positions"]), self.settings.training.batch_size
        if n_rows != batch_size * self.processes.count:
            raise ValueError(
                f"The run in {self.output} has {n_rows} rows: {n_rows // batch_size} processes with a batch_size of "
                f"{batch_size}. Resume it with as many processes; now there are {self.processes.count}."
            )
        self.learner.restore(checkpoint, self.processes)
        self.progress = checkpoint.progress

    def execute(self, report: Report) -> Result:
        """Train to the last step, and evaluate the best model.

        report (Report): Called before the first step, with each line of a summary.
        RETURNS (Result): The result.
        """
        self.processes.wait()  # one may still be reading weights from files that the first is about to replace
        if self.processes.is_first:
            self._prepare_output()
            for line in self._summarize():
                report(line)
        log_step, close_logger = self._start_logger()
        try:
            self._train(log_step)
        finally:
            close_logger()
        return self._finish()

    def evaluate(self, *, whole: bool = False) -> Likelihood:
        """Measure the model on the dev text, and change nothing. Every process must take part.

        whole (bool): Whether to read all of the dev text, and not a part of it that is the same every time.
        RETURNS (Likelihood): The likelihood of the text.
        """
        n_tokens = 0 if whole else self.settings.training.eval_tokens
        stride = math.ceil(self.dev_corpus.n_tokens / (n_tokens or self.dev_corpus.n_tokens))
        sentences = islice(self.dev_corpus, 0, None, stride)
        own = islice(sentences, self.processes.rank, None, self.processes.count)
        likelihood = measure_likelihood(self.model, self.vocabulary, own)
        return Likelihood.from_sums(self.processes.sum(list(astuple(likelihood))))

    def _train(self, log_step: LogStep) -> None:
        """Train to the last step, and log, evaluate and save on the way."""
        training, progress = self.settings.training, self.progress
        recorder = MetricsRecorder(self.metrics_file, progress, self.processes, steps_per_epoch=self.steps_per_epoch)
        if self.learner.n_steps_done == 0 and isinstance(self.settings.bilm, Path) and not self.n_softmax_steps:
            self._update_initial_state()
            progress.initial_perplexity = self.evaluate(whole=True).perplexities["mean"]
        for step in train_steps(
            self.learner, training, self.processes, n_steps=self.n_steps, n_softmax_steps=self.n_softmax_steps
        ):
            recorder.add(step)
            if step.number % training.eval_frequency == 0 or step.number in (self.n_softmax_steps, self.n_steps):
                self._update_initial_state()
                scores = self.evaluate().perplexities
                _check_perplexity(scores["mean"], step.number)
                if step.number == self.n_softmax_steps:
                    progress.initial_perplexity = self.evaluate(whole=True).perplexities["mean"]
                metrics = recorder.write(step, _to_metrics(scores))
                # In this order: a run that is killed between two files is resumed from the checkpoint before, and writes
                # the same files again.
                if scores["mean"] < progress.best_perplexity:
                    progress.best_perplexity = scores["mean"]
                    self._save_model(BEST)
                self._save_model(LAST)
                self._save_checkpoint()
                log_step(to_log_info(metrics, self.n_steps))
            elif step.number % training.log_frequency == 0:
                recorder.write(step, {})
                log_step(None)
            else:
                log_step(None)

    def _update_initial_state(self) -> None:
        """Store the average state between sentences as the biLM's initial state, if sentences are trained on that state."""
        if self.settings.training.carry_state:
            # From the states of the rows: a model that was never reset may settle into another state from zeros.
            carried = State(*(self.processes.gather(part, dim=2)[:, :, :STREAMS] for part in self.learner.carried))
            find_initial_state(self.model.bilm, list(islice(self.train_corpus, WARM_UP_SENTENCES)), carried)

    def _save_model(self, name: str) -> None:
        if self.processes.is_first:
            corpus = self.settings.corpus
            save_language_model(
                self.model, self.vocabulary, self.output / name, lang=corpus.lang, segmenter=corpus.segmenter
            )

    def _save_checkpoint(self) -> None:
        checkpoint = self.learner.to_checkpoint(
            self.processes, identity=self.identity, softmax_is_new=self.softmax_is_new, progress=self.progress
        )
        if self.processes.is_first:
            write_file(self.output / CURVE, draw_learning_curve(list(self.metrics_file)))
            checkpoint.to_disk(self.output / CHECKPOINT)

    def _prepare_output(self) -> None:
        """Make the directory of the run. An old run is removed only when the new one is ready to start."""
        open_output(self.output)
        if self.learner.n_steps_done:
            self.metrics_file.cut_after(self.learner.n_steps_done)
        else:
            clear_output(self.output)
            write_file(self.output / RUN_CONFIG, self._config.to_str())

    def _summarize(self) -> Iterator[str]:
        """Summarize what is trained, on what, and for how long."""
        training, model, processes = self.settings.training, self.model, self.processes
        n_bilm, n_softmax = (sum(p.numel() for p in part.parameters()) for part in (model.bilm, model.softmax))
        yield (
            f"{n_bilm:,} parameters, and {n_softmax:,} in the softmax of {len(self.vocabulary):,} words, on "
            f"{processes.device.type} ({processes.count} process{'es' * (processes.count > 1)})"
        )
        yield (
            f"{self.train_corpus.n_tokens:,} words in {self.train_corpus.n_sentences:,} sentences: {self.n_steps:,} steps of "
            f"{training.batch_size * processes.count} rows and {training.unroll} tokens, "
            f"{self.n_steps / self.steps_per_epoch:.3g} epochs"
        )
        if self.n_softmax_steps:
            yield f"The softmax is new: it is trained alone for {self.n_softmax_steps:,} steps"
        if self.learner.n_steps_done >= self.n_steps:
            yield f"The run is finished: all {self.n_steps:,} steps are done"
        elif self.learner.n_steps_done:
            yield f"Resuming after step {self.learner.n_steps_done:,}"

    def _finish(self) -> Result:
        """Measure the best model on all of the dev text."""
        likelihood = Likelihood()
        if self.processes.is_first:
            model, vocabulary = load_language_model(self.output / BEST)
            likelihood = measure_likelihood(model.to(self.processes.device), vocabulary, self.dev_corpus)
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
        return start_logger(self.settings, self._config, n_steps=self.n_steps, n_steps_done=self.learner.n_steps_done)

    @property
    def _config(self) -> Config:
        return Config(self.identity.config)


def _check_perplexity(perplexity: float, step: int) -> None:
    if not math.isfinite(perplexity):
        raise FloatingPointError(
            f"After step {step} the dev perplexity is {perplexity}, though the loss was finite: the training has diverged. Its "
            f"weights were not saved."
        )


def _to_metrics(scores: dict[str, float]) -> Metrics:
    return {
        "perplexity_forward": scores["forward"],
        "perplexity_backward": scores["backward"],
        "perplexity": scores["mean"],
        "perplexity_unigram": scores["unigram"],
    }
