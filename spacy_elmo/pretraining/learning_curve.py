"""A picture of how a run went."""

from collections.abc import Sequence

from ..charts.line_chart import Line, LineChart, draw_line_charts
from .metrics import Metrics


def draw_learning_curve(metrics: Sequence[Metrics]) -> str:
    """Draw the training loss, and the dev perplexity in both directions.

    metrics (Sequence[Metrics]): What the run wrote down.
    RETURNS (str): An SVG document.
    """
    loss = Line("sampled or full, both directions", [(line["words"], line["loss"]) for line in metrics])
    evaluated = [line for line in metrics if "perplexity" in line]
    perplexities = [
        Line(direction, [(line["words"], line[f"perplexity_{direction}"]) for line in evaluated])
        for direction in ("forward", "backward")
    ]
    unigrams = [(line["words"], line["perplexity_unigram"]) for line in evaluated]
    perplexities.append(Line("unigrams", unigrams, dashed=True))
    return draw_line_charts(
        [
            LineChart("Training loss (nats)", "words read", [loss]),
            LineChart("Dev perplexity, full softmax", "words read", perplexities, log_scale=True),
        ]
    )
