"""What came out of runs: sentences, tables and figures."""

import re
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from ..analysis.mixes import LearnedMix, draw_mixes
from ..charts.plots import Chart, DotPlot, Line, draw_charts, draw_dots
from .page import Block, Figure, Paragraph, Section, Table
from .places import ALL
from .runs import Run
from .scores import Sample, conclude, describe
from .wording import NOTHING, cell, count, list_scores, signed, title_of


def conclude_run(first: Run, run: Run, key: str, shares: Sequence[float]) -> str:
    """Say what came out of a run.

    first, run (Run): The one that it is compared with, and itself.
    key (str): The score.
    shares (Sequence[float]): The shares of the training data that both were trained on, in order.
    RETURNS (str): Whether it is better, and how much of the training data it takes to be as good.
    """
    *less, full = shares
    data = "" if full == ALL else f"With {full:g}% of the training data: "
    goal = first.sample(key, full)
    text = f"{title_of(key)}. {data}{conclude(run.name, run.sample(key, full), first.name, goal)}"
    samples = {share: (run.sample(key, share), first.sample(key, share)) for share in less}
    there = [share for share, (own, other) in samples.items() if own and other and own.mean >= goal.mean > other.mean]
    if there:
        text += f" ‘{run.name}’ reaches the mean of ‘{first.name}’, {goal.mean:.1f}, with {there[0]:g}% of the training data."
    return text


def show_scores(runs: Sequence[Run], key: str, shares: Sequence[float], *, is_only: bool) -> Iterator[Section]:
    """Show the scores of runs: all together, label by label, and with less training data.

    runs (Sequence[Run]): The runs, the first being the one that the others are compared with.
    key (str): The score.
    shares (Sequence[float]): The shares of the training data that all were trained on, in order.
    is_only (bool): Whether the page has no other score to tell it from.
    YIELDS (Section): The sections.
    """
    suffix = "" if is_only else f": {title_of(key)}"
    yield Section(f"Scores{suffix}", list(_scores(runs, key, shares[-1])))
    labels = _labels(runs, key, shares[-1])
    if labels:
        yield Section(f"Label by label{suffix}", labels)
    if len(shares) > 1:
        yield Section(f"With less training data{suffix}", _efficiency(runs, key, shares))


def _scores(runs: Sequence[Run], key: str, share: float) -> Iterator[Block]:
    score, first = describe(key), runs[0].sample(key, share)
    rows = []
    for run in runs:
        sample = run.sample(key, share)
        rows.append(
            [
                run.name,
                f"{sample.mean:.2f}",
                NOTHING if sample.deviation is None else f"{sample.deviation:.2f}",
                f"{min(sample.values):.2f}",
                f"{max(sample.values):.2f}",
                str(len(sample)),
                NOTHING if run is runs[0] else signed(sample.mean - first.mean),
            ]
        )
    header = ["Run", "Mean", "Standard deviation", "Lowest", "Highest", "Seeds", f"Difference to {runs[0].name}"]
    yield Table(title_of(key), header, rows)
    plot = DotPlot(
        title_of(key),
        "score, in per cent",
        [run.name for run in runs],
        [("", [run.sample(key, share).values for run in runs])],
    )
    alt = "; ".join(f"{run.name}: {list_scores(run.sample(key, share))}" for run in runs)
    yield Figure(
        _file_name(f"{key}-seeds"), "Each dot is a seed, each bar the mean of several.", draw_dots(plot, alt=alt)
    )
    others = [other for other in score.others if any(len(run.sample(other, share)) for run in runs)]
    if others:
        rows = [[describe(other).name, *(cell(run.sample(other, share)) for run in runs)] for other in others]
        yield Table("Other scores: mean ± standard deviation", ["Score", *(run.name for run in runs)], rows)


def _labels(runs: Sequence[Run], key: str, share: float) -> list[Block]:
    per_label = describe(key).per_label
    if per_label is None:
        return []
    samples = [run.label_samples(per_label, share) for run in runs]
    labels = sorted(set().union(*samples))
    if not labels:
        return []
    nothing = Sample([])
    groups = {label: [sample.get(label, nothing) for sample in samples] for label in labels}
    rows = [
        [label, *map(cell, group), *(_difference(sample, group[0]) for sample in group[1:])]
        for label, group in groups.items()
    ]
    header = ["Label", *(run.name for run in runs), *_difference_names(runs)]
    caption = f"F of each label: mean ± standard deviation, and the difference of means to {runs[0].name}"
    plot = DotPlot(
        "F of each label",
        "F, in per cent",
        [run.name for run in runs],
        [(label, [sample.values for sample in group]) for label, group in groups.items()],
    )
    alt = f"The F of {len(labels)} labels in each run; the numbers are in the table."
    return [
        Table(caption, header, rows),
        Figure(
            _file_name(f"{key}-labels"), "Each dot is a seed, each bar the mean of several.", draw_dots(plot, alt=alt)
        ),
    ]


def _efficiency(runs: Sequence[Run], key: str, shares: Sequence[float]) -> list[Block]:
    lines, rows = [], []
    for run in runs:
        samples = [(share, run.sample(key, share)) for share in shares]
        known = [(share, sample) for share, sample in samples if len(sample)]
        means = [(share, sample.mean) for share, sample in known]
        bands = [(min(sample.values), max(sample.values)) for _, sample in known]
        lines.append(Line(run.name, means, band=bands, marked=True))
    for share in shares:
        group = [run.sample(key, share) for run in runs]
        docs = count(runs[0].at(share)[0]["n_docs"], "document")
        counts = [str(len(sample)) for sample in group]
        rows.append(
            [
                f"{share:g}% ({docs})",
                *map(cell, group),
                *(_difference(sample, group[0]) for sample in group[1:]),
                counts[0] if len(set(counts)) == 1 else "/".join(counts),
            ]
        )
    header = ["Training data", *(run.name for run in runs), *_difference_names(runs), "Seeds"]
    chart = Chart(title_of(key), "per cent of the training data", lines, x_ticks=shares, per_cent=True)
    alt = "; ".join(
        f"{line.name}: " + ", ".join(f"{mean:.1f} with {share:g}%" for share, mean in line.points) for line in lines
    )
    return [
        Figure(
            _file_name(f"{key}-shares"),
            "Lines join the means; bands reach from the lowest seed to the highest.",
            draw_charts([chart], alt=alt),
        ),
        Table(
            f"{title_of(key)}: mean ± standard deviation, and the difference of means to {runs[0].name}", header, rows
        ),
        Paragraph(
            "A share of the training data is a random choice of its documents, the same for every seed and every run; a larger "
            "share has all documents of a smaller one. The labels are those of all of the training data, also where a share has "
            "no example of one, and the dev data are whole."
        ),
    ]


def show_mixes(runs: Sequence[Run], share: float) -> Iterator[Section]:
    """Show what each run made of ELMo's layers.

    runs (Sequence[Run]): The runs.
    share (float): The share of the training data.
    YIELDS (Section): A section for each run that learned a mix.
    """
    for number, run in enumerate(runs):
        by_place: dict[tuple[str, str, int], list[dict[str, Any]]] = {}
        for trial in run.at(share):
            n_there: Counter[tuple[str, str]] = Counter()  # a trial may have several in a place
            for mix in trial.get("mixes", []):
                key = (mix["component"], mix["place"])
                by_place.setdefault((*key, n_there[key]), []).append(mix)
                n_there[key] += 1
        means = [
            LearnedMix(
                component,
                place,
                weights=[statistics.fmean(layer) for layer in zip(*(mix["weights"] for mix in mixes), strict=True)],
                gamma=statistics.fmean(mix["gamma"] for mix in mixes),
            )
            for (component, place, _), mixes in by_place.items()
        ]
        if means:
            yield Section(
                f"What {run.name} uses",
                [
                    Paragraph(
                        "ELMo's vectors are a mix of the language model's layers, and training finds out how much of each is of "
                        "use: the token layer knows the word alone, the layers above it know the sentence. Gamma scales the mix."
                    ),
                    Figure(f"mixes-{number}", f"The layers' weights, {_over_seeds(run.at(share))}", draw_mixes(means)),
                ],
            )


def _file_name(name: str) -> str:
    """A figure is a file: the key of a score may have a slash, or what means something in Markdown."""
    return re.sub(r"[^\w.-]", "-", name)


def _over_seeds(trials: Sequence[Any]) -> str:
    return "of one training" if len(trials) == 1 else f"means of {len(trials)} trainings"


def _difference_names(runs: Sequence[Run]) -> list[str]:
    return ["Difference"] if len(runs) == 2 else [f"{run.name}, difference" for run in runs[1:]]


def _difference(sample: Sample, first: Sample) -> str:
    return signed(sample.mean - first.mean) if len(sample) and len(first) else NOTHING
