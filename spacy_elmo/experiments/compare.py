"""A page that compares runs: what they score, how sure that is, what it costs, and how to do it again."""

import json
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..files.atomic import write_directory
from .comparability import find_caveats, shared_scores, shared_shares
from .page import Block, Code, Figure, Paragraph, Section, Table, figures_of, to_html, to_json, to_markdown
from .results import conclude_run, show_mixes, show_scores
from .runs import Run, name_runs
from .scores import Sample, describe
from .wording import count, duration, title_of

MARKDOWN, HTML, CONTENT = "report.md", "report.html", "comparison.json"


def compare_runs(runs: Sequence[Run], *, output: Path, title: str | None = None, score: str | None = None) -> Section:
    """Make a page of runs.

    runs (Sequence[Run]): The runs, the first being the one that the others are compared with.
    output (Path): Where it is going to be.
    title (str | None): The page's title; by default, the task and the runs.
    score (str | None): The score that matters; by default, those by which the runs chose their best models.
    RETURNS (Section): The page.
    """
    shares = shared_shares(runs)
    keys = shared_scores(runs, shares[-1], score)
    results = [Paragraph(conclude_run(runs[0], run, key, shares), "result") for key in keys for run in runs[1:]]
    tasks = ", ".join(dict.fromkeys(describe(key).task for key in keys))
    others = ", ".join(run.name for run in runs[1:])
    return Section(
        title or f"{tasks}: {others} against {runs[0].name}",
        results,
        [
            _introduction(runs, keys, shares),
            *(section for key in keys for section in show_scores(runs, key, shares, is_only=len(keys) == 1)),
            *show_mixes(runs, shares[-1]),
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


def _introduction(runs: Sequence[Run], keys: Sequence[str], shares: Sequence[float]) -> Section:
    first = runs[0].config
    names = " and ".join([", ".join(f"‘{run.name}’" for run in runs[:-1]), f"‘{runs[-1].name}’"])
    blocks: list[Block] = [
        Paragraph(
            f"{names} were trained on {Path(first['train']).name} ({count(first['n_train_docs'], 'document')}) and scored on "
            f"{Path(first['test']).name} ({count(first['n_test_docs'], 'document')}), which is the same for all."
        )
    ]
    for run in runs:
        config = run.config
        blocks.append(
            Paragraph(
                f"‘{run.name}’ is {config['path']}, with the pipeline {' → '.join(config['pipeline'])}, "
                f"trained with {count(len(run.at(shares[-1])), 'seed')}."
            )
        )
    blocks += [Paragraph(f"{title_of(key)}: {describe(key).meaning} All scores are in per cent.") for key in keys]
    blocks.append(
        Paragraph(
            "A training begins with random numbers, which its seed decides, and ends a little elsewhere with each seed. The "
            "standard deviation says how far apart seeds are. It says nothing about other test documents: with few of them, "
            "scores would vary more than that."
        )
    )
    blocks += [Paragraph(caveat, "note") for caveat in find_caveats(runs)]
    return Section("What is compared", blocks)


def _cost(runs: Sequence[Run], share: float) -> Section:
    seconds = [Sample([trial["training_seconds"] for trial in run.at(share)]) for run in runs]
    rows = [
        [
            run.name,
            duration(sample.mean),
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
