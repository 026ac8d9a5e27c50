"""Loggers of a run. They have spaCy's interface, so that the loggers of other packages can be used as well."""

import sys
from collections.abc import Callable
from datetime import timedelta
from typing import IO, Any, Literal

import spacy
from confection import Config
from spacy.language import Language
from spacy.util import registry
from tqdm import tqdm
from wasabi.tables import row

from .settings import PretrainingSettings

LogStep = Callable[[dict[str, Any] | None], None]
Logger = Callable[[Language, IO[str], IO[str]], tuple[LogStep, Callable[[], None]]]

COLUMNS = {"Step": 8, "Epoch": 6, "Loss": 7, "Forward": 9, "Backward": 9, "Rate": 9, "Norm": 7, "Words/s": 8, "Left": 9}


def start_logger(
    settings: PretrainingSettings, config: Config, *, n_steps: int, n_steps_done: int
) -> tuple[LogStep, Callable[[], None]]:
    """Start the logger that a config names.

    settings (PretrainingSettings): The run's settings.
    config (Config): Its config.
    n_steps, n_steps_done (int): The number of all steps, and of those that are done.
    RETURNS (tuple): A function to call after each step, with the results of an evaluation or None; and one for the end.
    """
    # spaCy's loggers read the settings of a run from the config of a pipeline.
    nlp = spacy.blank(settings.corpus.lang or "xx")
    training = {"max_steps": n_steps, "eval_frequency": settings.training.eval_frequency, "first_step": n_steps_done}
    nlp.config = Config({**nlp.config, **config, "training": {**nlp.config["training"], **training}})
    logger: Logger = settings.make_logger
    return logger(nlp, sys.stdout, sys.stderr)


def to_log_info(metrics: dict[str, Any], n_steps: int) -> dict[str, Any]:
    """Convert the metrics of an evaluation to the dictionary that spaCy's loggers expect.

    metrics (dict[str, Any]): The metrics.
    n_steps (int): The number of all steps.
    RETURNS (dict[str, Any]): spaCy's keys, and all metrics under "bilm".
    """
    left = (n_steps - metrics["step"]) * metrics["seconds"] / metrics["step"]
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


@registry.loggers("spacy_elmo.ConsoleLogger.v1")
def configure_console_logger_v1(*, progress_bar: bool) -> Logger:
    """Print a line after each evaluation.

    progress_bar (bool): Whether to show a progress bar in between, if the output is a terminal.
    RETURNS (Logger): The logger.
    """

    def setup(nlp: Language, stdout: IO[str], stderr: IO[str]) -> tuple[LogStep, Callable[[], None]]:
        training = nlp.config["training"]
        bar = tqdm(
            total=training["max_steps"],
            initial=training["first_step"],
            unit=" steps",
            leave=False,
            file=stderr,
            disable=None if progress_bar else True,
        )
        widths = list(COLUMNS.values())
        aligns: list[Literal["r"]] = ["r"] * len(widths)

        def write(cells: list[str]) -> None:
            bar.clear()
            stdout.write(row(cells, widths=widths, aligns=aligns) + "\n")
            stdout.flush()

        write(list(COLUMNS))
        write(["-" * width for width in widths])

        def log_step(info: dict[str, Any] | None) -> None:
            bar.update(1)
            if info is None:
                return
            metrics = info["bilm"]
            write(
                [
                    f"{metrics['step']:,}",
                    f"{metrics['epoch']:.2f}",
                    f"{metrics['loss']:.3f}",
                    f"{metrics['perplexity_forward']:,.1f}",
                    f"{metrics['perplexity_backward']:,.1f}",
                    f"{metrics['learn_rate']:.2e}",
                    f"{metrics['grad_norm']:.2f}",
                    f"{metrics['words_per_second']:,.0f}",
                    str(timedelta(seconds=round(metrics["seconds_left"]))),
                ]
            )

        return log_step, bar.close

    return setup
