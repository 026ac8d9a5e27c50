"""Grids: trials of several variants of one config, as in tables 2 and 3 of the paper."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from spacy.util import load_config, load_config_from_str

from .commands import trials_command
from .trials import Trials
from .variants import PLACES, Variant, make_variant

GRID, VARIANT_CONFIG = "grid.json", "config.cfg"


@dataclass(frozen=True)
class Grid:
    """Variants of a config that answer a question together.

    question (str): The question.
    explanation (str): What a reader must know about the variants.
    paper_table (int | None): The number of the paper's table with these variants, if there is one.
    variants (Sequence[Variant]): The variants, in the order of the table.
    """

    question: str
    explanation: str
    paper_table: int | None
    variants: Sequence[Variant]


def load_grid(path: Path) -> Grid:
    """Read the variants of a grid.

    path (Path): The config of the grid, such as configs/grid_layers.cfg.
    RETURNS (Grid): The grid.
    """
    config = load_config(path)
    head, variants = config.get("grid", {}), config.get("variants", {})
    question, explanation, paper_table = head.get("question"), head.get("explanation", ""), head.get("paper_table")
    if not question or not variants:
        raise ValueError(
            f"{path} is not a grid: it needs a block [grid] with a question, and a block [variants.NAME] for each variant. "
            f"configs/grid_layers.cfg is one."
        )
    for name, text in (("question", question), ("explanation", explanation)):
        if not isinstance(text, str):
            raise ValueError(f"In {path}, the {name} of [grid] must be a text in quotation marks, got {text!r}.")
    if not isinstance(paper_table, int | None):
        raise ValueError(f"In {path}, the paper_table of [grid] must be a whole number or null, got {paper_table!r}.")
    found = []
    for name, block in variants.items():
        if not isinstance(block, dict):
            raise ValueError(
                f"In {path}, [variants] can only have blocks, got {name} = {block!r}. Write a block [variants.NAME] for each variant."
            )
        settings = dict(block)
        title, place = settings.pop("title", name), settings.pop("place", None)
        if not isinstance(title, str):
            raise ValueError(
                f"In {path}, the title of [variants.{name}] must be a text in quotation marks, got {title!r}."
            )
        if place not in list(PLACES):  # it may be a list
            raise ValueError(
                f"In {path}, the place of [variants.{name}] must be one of {', '.join(PLACES)}, got {place!r}."
            )
        found.append(Variant(name, title, place, settings))
    return Grid(question, explanation, paper_table, found)


def prepare_grid(path: Path, trials: Trials) -> tuple[dict[str, Trials], dict[Path, str]]:
    """Make the trials of each variant. Nothing is written: existing trials of something else may have to be kept.

    path (Path): The config of the grid.
    trials (Trials): The trials of the config itself, which are not run.
    RETURNS (tuple): The trials of each variant, by its name, and the files to write before they run: the config of each
        variant, and what `spacy elmo report` needs to find them.
    """
    grid = load_grid(path)
    configs = {variant.name: make_variant(trials.config, variant) for variant in grid.variants}
    config = {
        "path": str(trials.config_path),
        "test": str(trials.test_path),
        "code": str(trials.code_path) if trials.code_path else None,
        "gold_preproc": trials.gold_preproc,
        "overrides": trials.overrides,
    }
    result = {
        "kind": "grid",
        "command": trials_command(
            config, trials.output, n_seeds=len(trials.seeds), fractions=trials.fractions, grid=path
        ),
        "question": grid.question,
        "explanation": grid.explanation,
        "paper_table": grid.paper_table,
        "variants": [{"name": variant.name, "title": variant.title} for variant in grid.variants],
    }
    runs, files = {}, {}
    for name, variant in configs.items():
        config_path = trials.output / name / VARIANT_CONFIG
        files[config_path] = text = variant.to_str(interpolate=False)
        runs[name] = replace(trials, config_path=config_path, output=config_path.parent, overrides={})
        runs[name].config = load_config_from_str(text)  # as it will be read from the file
    files[trials.output / GRID] = json.dumps(result, indent=2) + "\n"
    return runs, files
