"""A section about a grid of trials: tables 2 and 3 of the paper."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..charts.dot_plot import DOTS_CAPTION, DotPlot, draw_dot_plot
from .comparability import common_fractions, common_scores, find_gaps
from .formatting import NOTHING, format_count, format_list, format_sample, format_seeds
from .grid_trials import read_variants
from .page import Block, Code, Figure, Paragraph, Section, Table
from .paper import TABLES
from .results import Result
from .sample import Sample
from .scores import get_score_info
from .trial_id import ALL
from .trial_set import TrialSet


@dataclass(frozen=True)
class GridScores:
    """One score of the variants of one config.

    name (str): The task and the data, with their fraction if it is not all of them.
    command (str): The command that trained the variants.
    samples (dict[str, Sample]): The scores of each variant, by its name.
    titles (dict[str, str]): The title of each variant.
    """

    name: str
    command: str
    samples: dict[str, Sample]
    titles: dict[str, str]


def make_grid_section(grids: Sequence[tuple[Result, Path]]) -> Section:
    """Show the variants of one grid, for one task or several.

    grids (Sequence[tuple]): The results of the tasks and their directories, all with the same question.
    RETURNS (Section): The section.
    """
    result = grids[0][0]
    trial_sets = [read_variants(grid, directory) for grid, directory in grids]
    scores = [
        found for (grid, _), variants in zip(grids, trial_sets, strict=True) for found in _read_scores(grid, variants)
    ]
    titles = _collect_titles([grid for grid, _ in grids], scores)
    paper = TABLES.get(result["paper_table"])
    header = ["Variant", *(found.name for found in scores)]
    rows = [
        [title, *(format_sample(found.samples.get(name, Sample([]))) for found in scores)]
        for name, title in titles.items()
    ]
    caption = "Scores on the test data in per cent: mean ± standard deviation of the seeds"
    if paper is not None:
        header += [f"{task} (paper)" for task in paper.tasks]
        for row, name in zip(rows, titles, strict=True):
            row += [f"{score:.1f}" for score in paper.scores.get(name, ())] or [NOTHING] * len(paper.tasks)
        caption += f". The last columns are table {result['paper_table']} of the paper, on development data"
    blocks: list[Block] = [Paragraph(_find_best(found), "result") for found in scores]
    blocks += [Paragraph(result["explanation"])] if result.get("explanation") else []
    blocks += [Table(caption, header, rows), *(_draw(found, i) for i, found in enumerate(scores))]
    for (grid, _), variants in zip(grids, trial_sets, strict=True):
        blocks += [Paragraph(f"{variants[0].test_name}: {note}", "note") for note in _find_notes(grid, variants)]
    return Section(result["question"], [*blocks, Code("\n".join(dict.fromkeys(found.command for found in scores)))])


def _collect_titles(grids: Sequence[Result], scores: Sequence[GridScores]) -> dict[str, str]:
    """RETURNS (dict[str, str]): The titles of all variants with scores, by name, in the order of the grids."""
    finished = {name for found in scores for name in found.samples}
    titles: dict[str, str] = {}
    for grid in grids:
        for variant in grid["variants"]:
            if variant["name"] in finished:
                titles.setdefault(variant["name"], variant["title"])
    return titles


def _find_notes(result: Result, trial_sets: Sequence[TrialSet]) -> list[str]:
    finished = {trial_set.directory.name for trial_set in trial_sets}
    missing = [f"‘{variant['title']}’" for variant in result["variants"] if variant["name"] not in finished]
    return [*([f"No trial of {format_list(missing)} is finished."] if missing else []), *find_gaps(trial_sets)]


def _read_scores(result: Result, trial_sets: Sequence[TrialSet]) -> list[GridScores]:
    fraction = common_fractions(trial_sets)[-1]
    data = "" if fraction == ALL else f", {fraction:g}% of the training data"
    titles = {trial_set.directory.name: trial_set.name for trial_set in trial_sets}
    return [
        GridScores(
            f"{get_score_info(key).title}, {trial_sets[0].test_name}{data}",
            result["command"],
            {trial_set.directory.name: trial_set.sample(key, fraction) for trial_set in trial_sets},
            titles,
        )
        for key in common_scores(trial_sets, fraction, None)
    ]


def _find_best(scores: GridScores) -> str:
    """RETURNS (str): Which variant scores highest, and how far it is from the others."""
    (reference, *_), best = scores.samples, max(scores.samples, key=lambda name: scores.samples[name].mean)
    sample = scores.samples[best]
    average = " on average" if len(sample) > 1 else ""
    text = f"{scores.name}: ‘{scores.titles[best]}’ scores highest, {sample.mean:.1f}{average}."
    if best != reference:
        other = scores.samples[reference].mean
        text = (
            f"{text[:-1]}, {sample.mean - other:.1f} points above ‘{scores.titles[reference]}’, which has {other:.1f}."
        )
    if len(sample) == 1:
        return f"{text} There is one seed: differences of a point or two may be chance."
    close = [
        f"‘{scores.titles[name]}’"
        for name, found in scores.samples.items()
        if name != best and max(found.values) >= min(sample.values)
    ]
    seeds = format_count(len(sample), "seed")
    if not close:
        return f"{text} Each of its {seeds} is above every other one."
    return f"{text} Its {seeds} overlap with those of {', '.join(close)}."


def _draw(scores: GridScores, number: int) -> Figure:
    rows = [(scores.titles[name], [sample.values]) for name, sample in scores.samples.items()]
    plot = DotPlot(scores.name, "score, in per cent", ["a seed, and the mean of all"], rows)
    alt = "; ".join(f"{scores.titles[name]}: {format_seeds(sample)}" for name, sample in scores.samples.items())
    return Figure(f"grid-{number}", DOTS_CAPTION, draw_dot_plot(plot, alt=alt))
