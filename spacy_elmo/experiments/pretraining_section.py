"""A section about the pretraining of a language model: its learning curve and its perplexity."""

import json
from pathlib import Path

from ..files.damage import refuse_damaged
from ..pretraining.learning_curve import draw_learning_curve
from ..pretraining.metrics import MetricsFile
from ..pretraining.output import METRICS, SCORES
from .page import Block, Figure, Paragraph, Section, Table
from .scores import is_score

EVALUATION = "perplexity.json"  # `spacy elmo evaluate --output` may write it beside the files of the pretraining
NAMES = {
    "forward": "Forward: each word from those before it",
    "backward": "Backward: each word from those after it",
    "mean": "Mean of the two",
    "unigram": "Word frequencies alone, without context",
}


def make_pretraining_section(directory: Path) -> Section:
    """Show how a language model was pretrained.

    directory (Path): The output directory of the pretraining.
    RETURNS (Section): Its learning curve and its perplexities, as far as the directory has them.
    """
    if not directory.is_dir():
        raise ValueError(f"There is no pretraining in {directory}: no such directory.")
    metrics = list(MetricsFile(directory / METRICS))
    scores = _read_scores(directory)
    if not metrics and not scores:
        raise ValueError(
            f"{directory} is not the output of a pretraining: it has no {METRICS} and no {SCORES}. Give the output directory of "
            f"`python -m spacy elmo pretrain`."
        )
    blocks: list[Block] = [
        Paragraph(
            "ELMo’s vectors come from a language model. It has learned to predict each word of a text, from the words before it "
            "and from the words after it. The perplexity says how well: a perplexity of 50 is as good as guessing among 50 "
            "equally likely words. Lower is better."
        )
    ]
    if metrics:
        last = metrics[-1]
        with refuse_damaged(directory / METRICS, "the metrics of a pretraining"):
            blocks += [
                Paragraph(f"It was trained on {last['words']:,} words in {last['step']:,} steps."),
                Figure("learning-curve", "The learning curve of the language model.", draw_learning_curve(metrics)),
            ]
    if scores:
        rows = [[name, f"{scores[key]:,.1f}"] for key, name in NAMES.items() if is_score(scores.get(key))]
        caption = "Perplexity of the best model, on the text of its last evaluation"
        blocks.append(Table(caption, ["", "Perplexity"], rows))
    return Section(f"Language model: {directory.resolve().name}", blocks)


def _read_scores(directory: Path) -> dict[str, float]:
    paths = [path for path in (directory / EVALUATION, directory / SCORES) if path.exists()]
    if not paths:
        return {}
    path = max(paths, key=lambda path: path.stat().st_mtime)  # an evaluation may be older than a resumed pretraining
    try:
        scores = json.loads(path.read_text(encoding="utf8"))
        return {name: scores[f"perplexity_{name}"] for name in NAMES}
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"{path} has no perplexities: {error}. Write it again with `spacy elmo evaluate`.") from error
