"""A section of a page: how a language model learned, and how well it predicts."""

import json
from pathlib import Path

from ..experiments.page import Block, Figure, Paragraph, Section, Table
from .learning_curve import draw_learning_curve
from .metrics import MetricsFile
from .output import METRICS, SCORES

EVALUATION = "perplexity.json"  # what `spacy elmo evaluate --output` is asked to write, beside the run's own files
NAMES = {
    "forward": "Forward: each word from those before it",
    "backward": "Backward: each word from those after it",
    "mean": "Mean of the two",
    "unigram": "Frequencies alone, without any context",
}


def summarize_pretraining(directory: Path) -> Section:
    """Describe a pretraining run.

    directory (Path): Its directory.
    RETURNS (Section): Its learning curve and its perplexities, as far as they are there.
    """
    if not directory.is_dir():
        raise ValueError(f"There is no pretraining run at {directory}: no such directory.")
    metrics = list(MetricsFile(directory / METRICS))
    scores = _read_scores(directory)
    if not metrics and not scores:
        raise ValueError(
            f"{directory} is not a pretraining run: it has no {METRICS} and no {SCORES}. Name the output directory of `python "
            f"-m spacy elmo pretrain`."
        )
    blocks: list[Block] = [
        Paragraph(
            "ELMo’s vectors come from a language model that has learned to predict each word of a text from the words before "
            "it, and from those after it. Perplexity says how well: a perplexity of 50 is that of guessing among 50 equally "
            "likely words. Lower is better."
        )
    ]
    if metrics:
        last = metrics[-1]
        blocks += [
            Paragraph(f"It read {last['words']:,} words in {last['step']:,} steps."),
            Figure("learning-curve", "How the language model learned.", draw_learning_curve(metrics)),
        ]
    if scores:
        rows = [
            [name, f"{scores[key]:,.1f}"] for key, name in NAMES.items() if isinstance(scores.get(key), int | float)
        ]
        blocks.append(
            Table("Perplexity of the best model, on the text that it was last evaluated on", ["", "Perplexity"], rows)
        )
    return Section("The language model", blocks)


def _read_scores(directory: Path) -> dict[str, float]:
    for path in (directory / EVALUATION, directory / SCORES):
        if path.exists():
            try:
                scores = json.loads(path.read_text(encoding="utf8"))
                return {name: scores[f"perplexity_{name}"] for name in NAMES}
            except (ValueError, KeyError, TypeError) as error:
                raise ValueError(
                    f"{path} has no perplexities: {error}. Write it again with `spacy elmo evaluate`."
                ) from error
    return {}
