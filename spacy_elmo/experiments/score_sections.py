"""Sections about scores: over all labels, label by label, and with less training data."""

import re
from collections.abc import Iterator, Sequence

from ..charts.dot_plot import DOTS_CAPTION, DotPlot, draw_dot_plot
from ..charts.line_chart import Line, LineChart, draw_line_charts
from .formatting import NOTHING, format_count, format_difference, format_number, format_sample, format_seeds
from .page import Block, Figure, Paragraph, Section, Table
from .sample import Sample, compare_samples
from .scores import get_score_info
from .trial_id import ALL
from .trial_set import TrialSet


def summarize_result(baseline: TrialSet, trial_set: TrialSet, key: str, fractions: Sequence[float]) -> str:
    """Say how a model compares with the baseline.

    baseline, trial_set (TrialSet): The trials of the two.
    key (str): The score.
    fractions (Sequence[float]): The fractions of the training data that both have, in ascending order.
    RETURNS (str): Whether it is better, and with how much less data it reaches the baseline.
    """
    *smaller, largest = fractions
    data = "" if largest == ALL else f"With {largest:g}% of the training data: "
    goal = baseline.sample(key, largest)
    result = compare_samples(trial_set.name, trial_set.sample(key, largest), baseline.name, goal)
    text = f"{get_score_info(key).title}. {data}{result}"
    for fraction in smaller:
        sample, other = trial_set.sample(key, fraction), baseline.sample(key, fraction)
        if sample and other and sample.mean >= goal.mean > other.mean:
            return (
                f"{text} ‘{trial_set.name}’ reaches the mean of ‘{baseline.name}’, {goal.mean:.1f}, with {fraction:g}% of the "
                f"training data."
            )
    return text


def make_score_sections(
    trial_sets: Sequence[TrialSet], key: str, fractions: Sequence[float], *, is_only: bool
) -> Iterator[Section]:
    """Show one score of several models.

    trial_sets (Sequence[TrialSet]): The trials of each model, the baseline first.
    key (str): The score.
    fractions (Sequence[float]): The fractions of the training data that all have, in ascending order.
    is_only (bool): Whether the page has no other score, so that headings need not name it.
    YIELDS (Section): The sections.
    """
    suffix = "" if is_only else f": {get_score_info(key).title}"
    yield Section(f"Scores{suffix}", list(_show_score(trial_sets, key, fractions[-1])))
    label_blocks = _show_labels(trial_sets, key, fractions[-1])
    if label_blocks:
        yield Section(f"Scores by label{suffix}", label_blocks)
    if len(fractions) > 1:
        yield Section(f"Less training data{suffix}", show_fractions(trial_sets, key, fractions))


def _show_score(trial_sets: Sequence[TrialSet], key: str, fraction: float) -> Iterator[Block]:
    info, baseline = get_score_info(key), trial_sets[0].sample(key, fraction)
    names = [trial_set.name for trial_set in trial_sets]
    samples = [trial_set.sample(key, fraction) for trial_set in trial_sets]
    rows = [
        [
            name,
            f"{sample.mean:.2f}",
            format_number(sample.deviation, 2),
            f"{min(sample.values):.2f}",
            f"{max(sample.values):.2f}",
            str(len(sample)),
            NOTHING if i == 0 else format_difference(sample, baseline),
        ]
        for i, (name, sample) in enumerate(zip(names, samples, strict=True))
    ]
    header = ["Model", "Mean", "Standard deviation", "Lowest", "Highest", "Seeds", f"Difference from {names[0]}"]
    yield Table(info.title, header, rows)
    plot = DotPlot(info.title, "score, in per cent", names, [("", [sample.values for sample in samples])])
    alt = "; ".join(f"{name}: {format_seeds(sample)}" for name, sample in zip(names, samples, strict=True))
    yield Figure(_file_name(f"{key}-seeds"), DOTS_CAPTION, draw_dot_plot(plot, alt=alt))
    others = [other for other in info.others if any(len(found.sample(other, fraction)) for found in trial_sets)]
    if others:
        rows = [
            [get_score_info(other).name, *(format_sample(found.sample(other, fraction)) for found in trial_sets)]
            for other in others
        ]
        yield Table("Other scores: mean ± standard deviation", ["Score", *names], rows)


def _show_labels(trial_sets: Sequence[TrialSet], key: str, fraction: float) -> list[Block]:
    per_label = get_score_info(key).per_label
    if per_label is None:
        return []
    samples = [trial_set.label_samples(per_label, fraction) for trial_set in trial_sets]
    labels = sorted(set().union(*samples))
    if not labels:
        return []
    names = [trial_set.name for trial_set in trial_sets]
    groups = {label: [sample.get(label, Sample([])) for sample in samples] for label in labels}
    rows = [[label, *_sample_cells(group)] for label, group in groups.items()]
    plot = DotPlot(
        "F of each label",
        "F, in per cent",
        names,
        [(label, [sample.values for sample in group]) for label, group in groups.items()],
    )
    alt = f"The F of {len(labels)} labels for each model; the table has the numbers."
    return [
        Table(f"F of each label: {_cells_caption(names)}", ["Label", *_cells_header(names)], rows),
        Figure(_file_name(f"{key}-labels"), DOTS_CAPTION, draw_dot_plot(plot, alt=alt)),
    ]


def show_fractions(trial_sets: Sequence[TrialSet], key: str, fractions: Sequence[float]) -> list[Block]:
    """Show one score of several models by the fraction of the training data, as figure 1 of the paper does.

    trial_sets (Sequence[TrialSet]): The trials of each model, the baseline first.
    key (str): The score.
    fractions (Sequence[float]): The fractions that all have, in ascending order.
    RETURNS (list[Block]): A curve with a band between the lowest and the highest seed, and a table.
    """
    title, names = get_score_info(key).title, [trial_set.name for trial_set in trial_sets]
    lines, rows = [], []
    for trial_set in trial_sets:
        samples = {fraction: trial_set.sample(key, fraction) for fraction in fractions}
        samples = {fraction: sample for fraction, sample in samples.items() if len(sample)}
        means = [(fraction, sample.mean) for fraction, sample in samples.items()]
        band = [(min(sample.values), max(sample.values)) for sample in samples.values()]
        lines.append(Line(trial_set.name, means, band=band, marked=True))
    for fraction in fractions:
        group = [trial_set.sample(key, fraction) for trial_set in trial_sets]
        docs = format_count(trial_sets[0].trials_with(fraction)[0]["n_docs"], "document")
        n_seeds = [str(len(sample)) for sample in group]
        seeds = n_seeds[0] if len(set(n_seeds)) == 1 else "/".join(n_seeds)
        rows.append([f"{fraction:g}% ({docs})", *_sample_cells(group), seeds])
    chart = LineChart(title, "per cent of the training data", lines, x_ticks=fractions, per_cent=True)
    alt = "; ".join(
        f"{line.name}: " + ", ".join(f"{mean:.1f} with {fraction:g}%" for fraction, mean in line.points)
        for line in lines
    )
    return [
        Figure(
            _file_name(f"{key}-fractions"),
            "Lines connect the means; bands reach from the lowest seed to the highest.",
            draw_line_charts([chart], alt=alt),
        ),
        Table(f"{title}: {_cells_caption(names)}", ["Training data", *_cells_header(names), "Seeds"], rows),
        Paragraph(
            "A fraction of the training data is a random choice of its documents. The choice is the same for all seeds and "
            "models, and a larger fraction contains every smaller one. The labels are those of the whole training data, even if "
            "a fraction has no example of one. The dev data are always complete."
        ),
    ]


def _sample_cells(group: Sequence[Sample]) -> list[str]:
    baseline, *others = group
    return [*map(format_sample, group), *(format_difference(sample, baseline) for sample in others)]


def _cells_header(names: Sequence[str]) -> list[str]:
    return [*names, *(["Difference"] if len(names) == 2 else [f"{name}, difference" for name in names[1:]])]


def _cells_caption(names: Sequence[str]) -> str:
    return f"mean ± standard deviation, and the difference of the means from {names[0]}"


def _file_name(name: str) -> str:
    """Replace what a file name must not have: the key of a score may contain a slash, or Markdown."""
    return re.sub(r"[^\w.-]", "-", name)
