"""Whether an existing plan is that of the same corpus, settings and model."""

from collections.abc import Iterator
from pathlib import Path

from ..corpora.files import find_files
from .plan import Plan, list_files
from .records import FORMATS
from .scan import Report, make_plan
from .settings import EmbeddingSettings

MODEL_NAMES = {"weights": "the content of the weights", "pipeline": "the content of the pipeline"}


def check_plan(
    plan: Plan, corpus: Path, output: Path, settings: EmbeddingSettings, model: dict[str, str], report: Report
) -> None:
    """Refuse to continue an embedding with anything else than it was begun with.

    plan (Plan): The existing plan.
    corpus, output (Path): The corpus, and the directory of the plan.
    settings (EmbeddingSettings): The settings now.
    model (dict): `Embedder.identity` now.
    report (Report): Called with the bytes that are read, if the corpus must be read again.
    """
    differences = [*_compare_settings(plan, settings, model)]
    differences = differences or [*_compare_files(plan, corpus, settings, model, report)]
    if differences:
        raise ValueError(
            f"{output} was begun with something else: {'; '.join(differences)}. Use what it was begun with, choose another "
            f"directory, or start again with --overwrite."
        )


def _compare_settings(plan: Plan, settings: EmbeddingSettings, model: dict[str, str]) -> Iterator[str]:
    for name, value in settings.comparable().items():
        if plan.settings.get(name) != value:
            yield f"{name} was {plan.settings.get(name)!r} and is {value!r}"
    for name, value in model.items():
        if plan.model.get(name) != value:
            yield (
                f"{MODEL_NAMES[name]} differs"
                if name in MODEL_NAMES
                else f"{name} was {plan.model.get(name)} and is {value}"
            )


def _compare_files(
    plan: Plan, corpus: Path, settings: EmbeddingSettings, model: dict[str, str], report: Report
) -> Iterator[str]:
    before = {file.name: file for file in plan.files}
    now = {file.name: file for file in list_files(corpus, find_files(corpus, FORMATS))}
    yield from (f"{name} is missing" for name in before.keys() - now.keys())
    yield from (f"{name} is new" for name in now.keys() - before.keys())
    changed = [name for name in before if name in now and before[name] != now[name]]
    sizes = [name for name in changed if before[name].size != now[name].size]
    yield from (f"{name} had {before[name].size:,} bytes and has {now[name].size:,}" for name in sizes)
    # Files that were copied have another time. Whether they have another content, only reading can tell.
    if changed and not sizes and before.keys() == now.keys():
        again = make_plan(corpus, settings, model, report)
        if again.fingerprint != plan.fingerprint:
            yield f"the content of {', '.join(changed)} differs"
