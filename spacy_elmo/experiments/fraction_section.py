"""A section about less training data: figure 1 of the paper."""

from collections.abc import Sequence

from .comparability import common_fractions, common_scores, find_caveats
from .comparison import repeat_command
from .page import Block, Code, Paragraph, Section
from .paper import FRACTIONS
from .score_sections import show_fractions, summarize_result
from .trial_set import TrialSet

QUESTION = "How much training data does ELMo save?"


def make_fraction_section(trial_sets: Sequence[TrialSet], title: str | None = None) -> Section:
    """Show how models compare with less training data.

    trial_sets (Sequence[TrialSet]): The trials of each model, the baseline first, with several fractions of the training data.
    title (str | None): What to add to the question.
    RETURNS (Section): The section.
    """
    fractions = common_fractions(trial_sets)
    keys = common_scores(trial_sets, fractions[-1], None)
    baseline, *others = trial_sets
    blocks: list[Block] = [
        Paragraph(summarize_result(baseline, trial_set, key, fractions), "result")
        for key in keys
        for trial_set in others
    ]
    blocks += [block for key in keys for block in show_fractions(trial_sets, key, fractions)]
    blocks += [Paragraph(caveat, "note") for caveat in find_caveats(trial_sets)]
    blocks += [Paragraph(FRACTIONS, "paper"), Code("\n".join(map(repeat_command, trial_sets)))]
    return Section(f"{QUESTION} {title}" if title else QUESTION, blocks)
