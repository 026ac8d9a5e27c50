"""What a run logs, on the console and for the loggers of other packages."""

import io
from typing import Any

import pytest
import spacy
from confection import Config

from spacy_elmo.pretraining.loggers import configure_console_logger_v1, to_log_info

METRICS: dict[str, Any] = {
    "step": 1200,
    "epoch": 1.75,
    "words": 5000,
    "words_per_second": 2345.6,
    "loss": 4.5678,
    "learn_rate": 0.00123,
    "grad_norm": 0.5,
    "perplexity_forward": 1234.56,
    "perplexity_backward": 99.94,
    "perplexity": 667.25,
    "perplexity_unigram": 2000.0,
    "seconds": 60.5,
}


def test_info_has_the_keys_of_spacys_loggers() -> None:
    info = to_log_info(METRICS, n_steps=3600)
    assert info.pop("bilm") == {**METRICS, "seconds_left": 121.0}
    assert info == {
        "epoch": 1,
        "step": 1200,
        "score": 667.25,
        "other_scores": {name: value for name, value in METRICS.items() if name.startswith("perplexity")},
        "losses": {"bilm": 4.5678},
        "checkpoints": [],
        "seconds": 60,
        "words": 5000,
    }


@pytest.mark.parametrize("progress_bar", [True, False])
def test_console_logger_prints_a_line_for_each_evaluation(progress_bar: bool) -> None:
    nlp = spacy.blank("xx")
    nlp.config = Config({**nlp.config, "training": {"max_steps": 3600, "first_step": 1198}})
    stdout, stderr = io.StringIO(), io.StringIO()
    log_step, close = configure_console_logger_v1(progress_bar=progress_bar)(nlp, stdout, stderr)
    log_step(None)
    log_step(to_log_info(METRICS, n_steps=3600))
    close()
    header, _, line = stdout.getvalue().splitlines()
    assert header.split() == ["Step", "Epoch", "Loss", "Forward", "Backward", "Rate", "Norm", "Words/s", "Left"]
    assert line.split() == ["1,200", "1.75", "4.568", "1,234.6", "99.9", "1.23e-03", "0.50", "2,346", "0:02:01"]
    assert stderr.getvalue() == ""  # not a terminal
