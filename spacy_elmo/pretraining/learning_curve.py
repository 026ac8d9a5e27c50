"""A picture of how a run went."""

from .metrics import Metrics


def draw_learning_curve(metrics: list[Metrics], unigram: float) -> str:
    return ""
