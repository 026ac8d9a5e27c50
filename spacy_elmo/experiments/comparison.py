"""A page that compares models: their scores, how certain those are, what they cost, and how to repeat the trials."""

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from ..files.atomic import write_directory
from .commands import trials_command
from .comparability import common_fractions, common_scores, find_caveats
from .formatting import format_count, format_duration, format_list
from .mix_sections import make_mix_sections
from .page import Block, Code, Paragraph, Section, Table, figures_of
from .render import to_html, to_markdown
from .sample import Sample
from .score_sections import make_score_sections, summarize_result
from .scores import get_score_info
from .trial_id import ALL
from .trial_set import TrialSet, default_names

MARKDOWN, HTML = "report.md", "report.html"
OLD_JSON = "comparison.json"  # version 0.1 wrote it


def compare_trial_sets(
    trial_sets: Sequence[TrialSet], *, title: str | None = None, score: str | None = None, command: str | None = None
) -> Section:
    """Make a page that compares models.

    trial_sets (Sequence[TrialSet]): The trials of each model, the baseline first.
    title (str | None): The title; by default, the task and the names of the models.
    score (str | None): The key of the score to use; by default, the scores by which the best models were chosen.
    command (str | None): The command that makes the page, to be shown after those that run the trials.
    RETURNS (Section): The page.
    """
    fractions = common_fractions(trial_sets)
    keys = common_scores(trial_sets, fractions[-1], score)
    baseline, *others = trial_sets
    results = [
        Paragraph(summarize_result(baseline, trial_set, key, fractions), "result")
        for key in keys
        for trial_set in others
    ]
    tasks = ", ".join(dict.fromkeys(get_score_info(key).task for key in keys))
    names = ", ".join(trial_set.name for trial_set in others)
    commands = [*map(repeat_command, trial_sets), *([command] if command else [])]
    return Section(
        title or f"{tasks}: {names} against {baseline.name}",
        results,
        [
            _introduce(trial_sets, keys, fractions),
            *(
                section
                for key in keys
                for section in make_score_sections(trial_sets, key, fractions, is_only=len(keys) == 1)
            ),
            *make_mix_sections(trial_sets, fractions[-1]),
            _show_cost(trial_sets, fractions[-1]),
            Section("Commands to repeat this", [Code("\n".join(commands))]),
        ],
    )


def repeat_command(trial_set: TrialSet) -> str:
    """RETURNS (str): The command that runs a set of trials again."""
    n_seeds = 1 + trial_set.seeds[-1]
    return trials_command(trial_set.config, trial_set.directory, n_seeds=n_seeds, fractions=trial_set.fractions)


def compare_command(trial_sets: Sequence[TrialSet], output: Path, title: str | None, score: str | None) -> str:
    """RETURNS (str): The command that compares these trials."""
    directories, names = [found.directory for found in trial_sets], [found.name for found in trial_sets]
    options = {
        "--output": str(output),
        "--names": ",".join(names) if names != default_names(directories) else None,
        "--title": title,
        "--score": score,
    }
    words = ["python", "-m", "spacy", "elmo", "compare", *map(str, directories)]
    return shlex.join(words + [word for name, value in options.items() if value for word in (name, value)])


def write_comparison(page: Section, output: Path) -> None:
    """Write a page as Markdown and as HTML, and its figures.

    page (Section): The page.
    output (Path): The directory. One with an old comparison is replaced, unless it has other files as well.
    """
    files = {MARKDOWN: to_markdown(page), HTML: to_html(page)}
    files |= {f"{figure.name}.svg": figure.svg for figure in figures_of(page)}
    with write_directory(output, files={*files, *_old_figures(output), OLD_JSON}) as draft:
        for name, text in files.items():
            (draft / name).write_text(text, encoding="utf8")


def _old_figures(output: Path) -> set[str]:
    """Find the figures that the existing Markdown page shows. Other pictures are not ours to replace."""
    try:
        return set(re.findall(r"^!\[.*\]\(([\w.-]+\.svg)\)$", (output / MARKDOWN).read_text(encoding="utf8"), re.M))
    except (OSError, ValueError):
        return set()


def _introduce(trial_sets: Sequence[TrialSet], keys: Sequence[str], fractions: Sequence[float]) -> Section:
    config, largest = trial_sets[0].config, fractions[-1]
    fraction = "" if largest == ALL else f"{largest:g}% of "
    n_docs = trial_sets[0].trials_with(largest)[0]["n_docs"]
    names = [f"‘{trial_set.name}’" for trial_set in trial_sets]
    blocks: list[Block] = [
        Paragraph(
            f"{format_list(names)} were trained on {fraction}{Path(config['train']).name} "
            f"({format_count(n_docs, 'document')}). All were scored on {Path(config['test']).name} "
            f"({format_count(config['n_test_docs'], 'document')})."
        )
    ]
    for trial_set in trial_sets:
        seeds = format_count(len(trial_set.trials_with(largest)), "seed")
        pipeline = " → ".join(trial_set.config["pipeline"])
        blocks.append(
            Paragraph(
                f"‘{trial_set.name}’ is {trial_set.config['path']}, with the pipeline {pipeline}, trained with {seeds}."
            )
        )
    infos = [get_score_info(key) for key in keys]
    blocks += [Paragraph(f"{info.title}: {info.meaning} All scores are in per cent.") for info in infos]
    blocks.append(
        Paragraph(
            "The seed of a training sets its random numbers, and each seed gives a slightly different model. The standard "
            "deviation says how much the seeds differ. It does not say how much other test documents would change the scores: if "
            "there are few, that may be more."
        )
    )
    blocks += [Paragraph(caveat, "note") for caveat in find_caveats(trial_sets)]
    return Section("Compared models", blocks)


def _show_cost(trial_sets: Sequence[TrialSet], fraction: float) -> Section:
    trials = [trial_set.trials_with(fraction) for trial_set in trial_sets]
    seconds = [Sample([trial["training_seconds"] for trial in found]).mean for found in trials]
    speeds = [Sample([trial["words_per_second"] for trial in found]).mean for found in trials]
    rows = [
        [trial_set.name, format_duration(time), f"{time / seconds[0]:.1f}×", f"{speed:,.0f}"]
        for trial_set, time, speed in zip(trial_sets, seconds, speeds, strict=True)
    ]
    header = ["Model", "Training", f"Times {trial_sets[0].name}", "Words per second"]
    return Section(
        "Time and speed",
        [
            Table("Mean time of a training, and speed on the test data", header, rows),
            Paragraph("These depend on the machine and its load."),
        ],
    )
