"""A page that compares runs: what they score, how sure that is, what it costs, and how to do it again."""

import json
import shlex
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..atomic import write_directory
from ..charts import Chart, DotPlot, Line, draw_charts, draw_dots
from ..mixes import LearnedMix, draw_mixes
from ..page import Block, Code, Figure, Paragraph, Section, Table, figures_of, to_html, to_json, to_markdown
from .places import ALL
from .runs import Run, name_runs
from .scores import SCORES, Sample, conclude, describe

MARKDOWN, HTML, CONTENT = "report.md", "report.html", "comparison.json"
NOTHING = "–"


def compare_runs(runs: Sequence[Run], *, output: Path, title: str | None = None, score: str | None = None) -> Section:
    """Make a page of runs.

    runs (Sequence[Run]): The runs, the first being the one that the others are compared with.
    output (Path): Where it is going to be.
    title (str | None): The page's title; by default, the task and the runs.
    score (str | None): The score that matters; by default, those by which the runs chose their best models.
    RETURNS (Section): The page.
    """
    shares = _shared_shares(runs)
    keys = _shared_scores(runs, shares[-1], score)
    results = [Paragraph(_conclude(runs[0], run, key, shares), "result") for key in keys for run in runs[1:]]
    tasks = ", ".join(dict.fromkeys(describe(key).task for key in keys))
    others = ", ".join(run.name for run in runs[1:])
    return Section(
        title or f"{tasks}: {others} against {runs[0].name}",
        results,
        [
            _introduction(runs, keys, shares),
            *(section for key in keys for section in _score_sections(runs, key, shares, is_only=len(keys) == 1)),
            *_mixes(runs, shares[-1]),
            _cost(runs, shares[-1]),
            _again(runs, output, title, score),
        ],
    )


def write_comparison(page: Section, output: Path) -> None:
    """Write a page as Markdown, as HTML and as JSON, and its figures.

    page (Section): The page.
    output (Path): The directory. One that has nothing but an old comparison is replaced.
    """
    files = {MARKDOWN: to_markdown(page), HTML: to_html(page), CONTENT: to_json(page)}
    files |= {f"{figure.name}.svg": figure.svg for figure in figures_of(page)}
    with write_directory(output, files={*files, *_old_figures(output)}) as draft:
        for name, text in files.items():
            (draft / name).write_text(text, encoding="utf8")


def _old_figures(output: Path) -> set[str]:
    """Find the files of the figures that an old comparison names. Other pictures are somebody else's."""
    try:
        return set(_figure_files(json.loads((output / CONTENT).read_text(encoding="utf8"))))
    except (OSError, ValueError, KeyError, TypeError):
        return set()


def _figure_files(section: dict[str, Any]) -> Iterator[str]:
    yield from (f"{block['name']}.svg" for block in section["blocks"] if block["type"] == Figure.__name__)
    for part in section["sections"]:
        yield from _figure_files(part)


# What is compared


def _shared_shares(runs: Sequence[Run]) -> list[float]:
    shares = set.intersection(*(set(run.shares) for run in runs))
    if not shares:
        found = "; ".join(f"{run.directory} has {_list_shares(run.shares)}" for run in runs)
        raise ValueError(f"The runs have no share of the training data in common: {found}. Run the missing trials.")
    return sorted(shares)


def _shared_scores(runs: Sequence[Run], share: float, score: str | None) -> list[str]:
    def is_shared(key: str) -> bool:
        return all(len(run.sample(key, share)) for run in runs)

    if score is not None:
        if not is_shared(score):
            known = sorted(key for key in runs[0].at(share)[0]["scores"] if is_shared(key) and key != "speed")
            raise ValueError(
                f"Not all runs have the score {score!r}. They have: {', '.join(known) or 'none in common'}."
            )
        return [score]
    candidates = [key for run in runs for key in run.main_scores(share)]
    keys = [key for key in dict.fromkeys(candidates) if is_shared(key)]
    keys = keys or [key for key in SCORES if is_shared(key)][:1]
    if not keys:
        found = "; ".join(f"{run.directory} has {', '.join(run.main_scores(share)) or 'none'}" for run in runs)
        raise ValueError(f"The runs have no score in common, as if they were of different tasks: {found}.")
    return keys


def find_caveats(runs: Sequence[Run]) -> list[str]:
    """Find what makes runs hard to compare.

    runs (Sequence[Run]): The runs.
    RETURNS (list[str]): A sentence for each.
    """
    caveats = []
    first, shares = runs[0], _shared_shares(runs)
    for run in runs:
        if left_out := [share for share in run.shares if share not in shares]:
            caveats.append(
                f"‘{run.name}’ was trained on {_list_shares(left_out)} of the training data as well, which not all others "
                f"were: left out here."
            )
        if run.n_unfinished:
            caveats.append(
                f"{_count(run.n_unfinished, 'trial')} of ‘{run.name}’ did not come to an end: left out here."
            )
        for name, reason in (("train", "trained on other data than"), ("dev", "chosen on other dev data than")):
            checksums = [trial["identity"].get(f"paths.{name}") for trial in (run.trials[0], first.trials[0])]
            if checksums[0] != checksums[1]:
                caveats.append(
                    f"‘{run.name}’ was {reason} ‘{first.name}’, so that a difference may come from the data."
                )
        if settings := _different_settings(run, first):
            caveats.append(
                f"‘{run.name}’ was trained with other settings than ‘{first.name}’, so that a difference may come from those: "
                f"{', '.join(settings)}."
            )
    counts = {run.name: len(run.at(shares[-1])) for run in runs}
    if 1 in counts.values():
        names = " and ".join(f"‘{name}’" for name, count in counts.items() if count == 1)
        caveats.append(f"There is one seed of {names}: how much it varies is not known, and no deviation is given.")
    return caveats


def _different_settings(*runs: Run) -> list[str]:
    """List the settings of training, and others that were replaced on the command line, in which two runs differ."""
    configs = [run.config for run in runs]
    is_known = all("training" in config for config in configs)  # earlier versions did not write it down
    ours, theirs = (
        {
            **(_flatten(config["training"], "training.") if is_known else {}),
            **{name: value for name, value in config["overrides"].items() if not name.startswith("paths.")},
        }
        for config in configs
    )
    names = (ours.keys() | theirs.keys()) - {"training.seed"}
    return sorted(name for name in names if ours.get(name) != theirs.get(name))


def _flatten(section: dict[str, Any], prefix: str) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in section.items():
        flat |= _flatten(value, f"{prefix}{name}.") if isinstance(value, dict) else {f"{prefix}{name}": value}
    return flat


def _introduction(runs: Sequence[Run], keys: Sequence[str], shares: Sequence[float]) -> Section:
    first = runs[0].config
    names = " and ".join([", ".join(f"‘{run.name}’" for run in runs[:-1]), f"‘{runs[-1].name}’"])
    blocks: list[Block] = [
        Paragraph(
            f"{names} were trained on {Path(first['train']).name} ({_count(first['n_train_docs'], 'document')}) and scored on "
            f"{Path(first['test']).name} ({_count(first['n_test_docs'], 'document')}), which is the same for all."
        )
    ]
    for run in runs:
        config = run.config
        blocks.append(
            Paragraph(
                f"‘{run.name}’ is {config['path']}, with the pipeline {' → '.join(config['pipeline'])}, "
                f"trained with {_count(len(run.at(shares[-1])), 'seed')}."
            )
        )
    blocks += [Paragraph(f"{_title(key)}: {describe(key).meaning} All scores are in per cent.") for key in keys]
    blocks.append(
        Paragraph(
            "A training begins with random numbers, which its seed decides, and ends a little elsewhere with each seed. The "
            "standard deviation says how far apart seeds are. It says nothing about other test documents: with few of them, "
            "scores would vary more than that."
        )
    )
    blocks += [Paragraph(caveat, "note") for caveat in find_caveats(runs)]
    return Section("What is compared", blocks)


# What came out


def _conclude(first: Run, run: Run, key: str, shares: Sequence[float]) -> str:
    *less, full = shares
    data = "" if full == ALL else f"With {full:g}% of the training data: "
    goal = first.sample(key, full)
    text = f"{_title(key)}. {data}{conclude(run.name, run.sample(key, full), first.name, goal)}"
    samples = {share: (run.sample(key, share), first.sample(key, share)) for share in less}
    there = [share for share, (own, other) in samples.items() if own and other and own.mean >= goal.mean > other.mean]
    if there:
        text += f" ‘{run.name}’ reaches the mean of ‘{first.name}’, {goal.mean:.1f}, with {there[0]:g}% of the training data."
    return text


def _score_sections(runs: Sequence[Run], key: str, shares: Sequence[float], *, is_only: bool) -> Iterator[Section]:
    suffix = "" if is_only else f": {_title(key)}"
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
    yield Table(_title(key), header, rows)
    plot = DotPlot(
        _title(key),
        "score, in per cent",
        [run.name for run in runs],
        [("", [run.sample(key, share).values for run in runs])],
    )
    alt = "; ".join(f"{run.name}: {_list_scores(run.sample(key, share))}" for run in runs)
    yield Figure(f"{key}-seeds", "Each dot is a seed, each bar the mean of several.", draw_dots(plot, alt=alt))
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
        Figure(f"{key}-labels", "Each dot is a seed, each bar the mean of several.", draw_dots(plot, alt=alt)),
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
        docs = _count(runs[0].at(share)[0]["n_docs"], "document")
        counts = "/".join(dict.fromkeys(str(len(sample)) for sample in group))
        rows.append(
            [
                f"{share:g}% ({docs})",
                *map(cell, group),
                *(_difference(sample, group[0]) for sample in group[1:]),
                counts,
            ]
        )
    header = ["Training data", *(run.name for run in runs), *_difference_names(runs), "Seeds"]
    chart = Chart(_title(key), "per cent of the training data", lines, x_ticks=shares)
    alt = "; ".join(
        f"{line.name}: " + ", ".join(f"{mean:.1f} with {share:g}%" for share, mean in line.points) for line in lines
    )
    return [
        Figure(
            f"{key}-shares",
            "Lines join the means; bands reach from the lowest seed to the highest.",
            draw_charts([chart], alt=alt),
        ),
        Table(f"{_title(key)}: mean ± standard deviation, and the difference of means to {runs[0].name}", header, rows),
        Paragraph(
            "A share of the training data is a random choice of its documents, the same for every seed and every run; a larger "
            "share has all documents of a smaller one. The labels are those of all of the training data, also where a share has "
            "no example of one, and the dev data are whole."
        ),
    ]


def _mixes(runs: Sequence[Run], share: float) -> Iterator[Section]:
    """Show what each run made of ELMo's layers, if it has any."""
    for number, run in enumerate(runs):
        by_place: dict[tuple[str, str], list[dict[str, Any]]] = {}
        for trial in run.at(share):
            for mix in trial.get("mixes", []):
                by_place.setdefault((mix["component"], mix["place"]), []).append(mix)
        means = [
            LearnedMix(
                *place,
                weights=[statistics.fmean(layer) for layer in zip(*(mix["weights"] for mix in mixes), strict=True)],
                gamma=statistics.fmean(mix["gamma"] for mix in mixes),
            )
            for place, mixes in by_place.items()
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


def _over_seeds(trials: Sequence[Any]) -> str:
    return "of one training" if len(trials) == 1 else f"means of {len(trials)} trainings"


def _cost(runs: Sequence[Run], share: float) -> Section:
    seconds = [Sample([trial["training_seconds"] for trial in run.at(share)]) for run in runs]
    rows = [
        [
            run.name,
            _duration(sample.mean),
            f"{sample.mean / seconds[0].mean:.1f}×",
            f"{Sample([trial['words_per_second'] for trial in run.at(share)]).mean:,.0f}",
        ]
        for run, sample in zip(runs, seconds, strict=True)
    ]
    header = ["Run", "Training", f"Times {runs[0].name}", "Words per second"]
    return Section(
        "What it costs",
        [
            Table("Mean time of a training, and the speed on the test data afterwards", header, rows),
            Paragraph("These depend on the machine, and on what else it did meanwhile."),
        ],
    )


# How to do it again


def _again(runs: Sequence[Run], output: Path, title: str | None, score: str | None) -> Section:
    directories, names = [run.directory for run in runs], [run.name for run in runs]
    options = {
        "--output": str(output),
        "--names": ",".join(names) if names != name_runs(directories) else None,
        "--title": title,
        "--score": score,
    }
    words = ["python", "-m", "spacy", "elmo", "compare", *map(str, directories)]
    words += [word for name, value in options.items() if value is not None for word in (name, value)]
    return Section("How to run it again", [Code("\n".join([*map(_command_of, runs), shlex.join(words)]))])


def _command_of(run: Run) -> str:
    config = run.config
    words = ["python", "-m", "spacy", "elmo", "trials", config["path"], str(run.directory), "--test", config["test"]]
    words += ["--seeds", str(1 + run.seeds[-1]), "--shares", ",".join(f"{share:g}" for share in run.shares)]
    words += ["--code", config["code"]] if config["code"] else []
    words += ["--gold-preproc"] if config["gold_preproc"] else []
    for name, value in config["overrides"].items():
        words += [f"--{name}", value if isinstance(value, str) else json.dumps(value)]
    return shlex.join(words)


# How numbers are written


def cell(sample: Sample) -> str:
    """RETURNS (str): A sample in a table: its mean, and its deviation if there is one."""
    if not len(sample):
        return NOTHING
    return f"{sample.mean:.2f}" + ("" if sample.deviation is None else f" ± {sample.deviation:.2f}")


def signed(difference: float) -> str:
    """RETURNS (str): A difference in a table."""
    return f"{difference:+.2f}".replace("-", "−")


def _difference_names(runs: Sequence[Run]) -> list[str]:
    return ["Difference"] if len(runs) == 2 else [f"{run.name}, difference" for run in runs[1:]]


def _difference(sample: Sample, first: Sample) -> str:
    return signed(sample.mean - first.mean) if len(sample) and len(first) else NOTHING


def _title(key: str) -> str:
    score = describe(key)
    return score.name if score.name == score.task else f"{score.task}, {score.name}"


def _list_scores(sample: Sample) -> str:
    return ", ".join(f"{value:.1f}" for value in sample.values)


def _list_shares(shares: Sequence[float]) -> str:
    return ", ".join(f"{share:g}%" for share in shares)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"


def _duration(seconds: float) -> str:
    for size, name in ((3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {name}"
    return f"{seconds:.1f} s"
