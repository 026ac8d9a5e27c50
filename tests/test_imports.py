"""Who may import whom."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import spacy_elmo

from .fresh_python import FreshPython

PACKAGE = Path(spacy_elmo.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))

# For each part of the package, the other parts and the libraries that it may import, wherever in a file, in functions too.
# What is not listed here is refused, so that no part can reach another one through a third.
ALLOWED: dict[str, tuple[set[str], set[str]]] = {
    "analysis": ({"charts", "corpora", "layers"}, {"numpy", "spacy", "thinc", "torch"}),
    "architectures": ({"layers"}, {"spacy", "thinc"}),
    "bilm": ({"files"}, {"numpy", "safetensors", "srsly", "torch"}),
    "charts": (set(), set()),
    "cli": (
        {
            "analysis",
            "bilm",
            "corpora",
            "embedding",
            "experiments",
            "files",
            "formats",
            "layers",
            "models",
            "pretraining",
        },
        {"spacy", "tqdm", "typer", "wasabi"},
    ),
    "corpora": (set(), {"spacy"}),
    "embedding": (
        {"bilm", "corpora", "files", "layers", "models", "pipeline"},
        {"numpy", "spacy", "torch"},  # pyarrow and Ray are extras, which embedding/extras.py imports by name
    ),
    "experiments": (
        {"analysis", "charts", "files", "models", "pretraining"},
        {"confection", "filelock", "jinja2", "spacy", "srsly"},
    ),
    "files": (set(), {"torch"}),
    "formats": ({"bilm", "files"}, {"h5py", "torch"}),
    "layers": ({"bilm", "corpora", "models"}, {"confection", "numpy", "spacy", "thinc", "torch"}),
    "models": (set(), set()),
    "pipeline": ({"bilm", "files", "layers", "models"}, {"numpy", "spacy", "thinc"}),
    "pretraining": (
        {"bilm", "charts", "corpora", "files", "models"},
        {"confection", "floret", "numpy", "pydantic", "safetensors", "spacy", "torch", "tqdm", "wasabi"},
    ),
    "tasks": ({"files", "layers"}, {"numpy", "safetensors", "spacy", "srsly", "thinc", "torch"}),
}


def part_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_modules(source: str, package: list[str]) -> Iterator[str]:
    """List what a file imports, in full. `from a import b` may mean the module a.b, so it gives that."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) + 1 - node.level] if node.level else []
            base = base + (node.module.split(".") if node.module else [])
            yield from (".".join([*base, alias.name]) for alias in node.names)


def imports_of(path: Path) -> list[str]:
    package = ["spacy_elmo", *path.relative_to(PACKAGE).parent.parts]
    return list(imported_modules(path.read_text(encoding="utf8"), package))


def test_imported_modules_sees_all_ways_to_import() -> None:
    source = """
import os.path
from . import weights
from .model import BiLM
from .. import layers
from ..layers.elmo import elmo
def late():
    from thinc.api import Model
"""
    assert sorted(imported_modules(source, ["spacy_elmo", "bilm"])) == [
        "os.path",
        "spacy_elmo.bilm.model.BiLM",
        "spacy_elmo.bilm.weights",
        "spacy_elmo.layers",
        "spacy_elmo.layers.elmo.elmo",
        "thinc.api.Model",
    ]


def test_every_part_has_its_line() -> None:
    assert ALLOWED.keys() == {part_of(path) for path in FILES} - {"__init__"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_parts_import_only_what_is_allowed(path: Path) -> None:
    own, libraries = ALLOWED.get(part_of(path), (set(), set()))
    allowed = {f"spacy_elmo.{part}" for part in {*own, part_of(path)}} | libraries | sys.stdlib_module_names
    found = (module.split(".") for module in imports_of(path))
    assert [names for names in found if ".".join(names[: 2 if names[0] == "spacy_elmo" else 1]) not in allowed] == []


@pytest.mark.parametrize("part", ALLOWED)
def test_no_part_is_allowed_more_than_it_needs(part: str) -> None:
    found = {tuple(module.split(".")) for path in FILES if part_of(path) == part for module in imports_of(path)}
    own = {names[1] for names in found if names[0] == "spacy_elmo"} - {part}
    libraries = {names[0] for names in found} - {"spacy_elmo", *sys.stdlib_module_names}
    assert (own, libraries) == ALLOWED[part]


@pytest.mark.parametrize(
    ("module", "absent"),
    [
        # spaCy imports every plugin at every start, so what it imports must be quick.
        ("spacy_elmo.pipeline", ["spacy_elmo.bilm.model", "spacy_elmo.formats", "spacy_elmo.tasks.textcat"]),
        ("spacy_elmo.architectures", ["spacy_elmo.bilm.model", "spacy_elmo.tasks"]),
        ("spacy_elmo.tasks.crf_ner.component", ["spacy_elmo.bilm.model", "spacy_elmo.tasks.crf_ner.chain"]),
        ("spacy_elmo.tasks.crf_ner.tagger", ["spacy_elmo.bilm.model", "spacy_elmo.tasks.crf_ner.chain"]),
        ("spacy_elmo.tasks.textcat.classifier", ["spacy_elmo.bilm.model", "spacy_elmo.tasks.textcat.network"]),
        ("spacy_elmo.tasks.crf_ner.chain", ["spacy", "thinc"]),
        ("spacy_elmo.tasks.crf_ner.tags", ["spacy", "thinc", "torch"]),
        ("spacy_elmo.formats", ["spacy", "thinc", "torch", "h5py"]),
        ("spacy_elmo.formats.bilm_tf", ["spacy", "thinc", "h5py"]),
        ("spacy_elmo.pretraining.optimizers", ["spacy_elmo.bilm.model"]),
        ("spacy_elmo.pretraining.loggers", ["spacy_elmo.bilm.model"]),
        # The model that learns, and what it learns from, are torch's part as well.
        ("spacy_elmo.pretraining.language_model", ["spacy", "thinc"]),
        ("spacy_elmo.pretraining.perplexity", ["spacy", "thinc"]),
        # Numbers that were measured are compared without what measured them.
        ("spacy_elmo.experiments.report", ["spacy", "thinc", "torch"]),
        ("spacy_elmo.cli", ["spacy_elmo.experiments", "spacy_elmo.pretraining.run", "spacy_elmo.embedding"]),
        ("spacy_elmo.embedding.embed", ["pyarrow", "ray", "spacy_elmo.pretraining"]),
        ("spacy_elmo.tasks.textcat.network", ["spacy", "thinc"]),
    ],
)
def test_import_is_light(fresh_python: FreshPython, module: str, absent: list[str]) -> None:
    base = next(name for name in ("spacy", "torch", "sys") if name not in absent)
    loaded = fresh_python.modules_after_import(module, base=base)
    assert module in loaded
    assert [name for name in absent if name in loaded] == []


def test_first_use_is_light() -> None:
    code = "import spacy, sys; nlp = spacy.blank('en'); nlp.add_pipe('elmo'); nlp('Hello'); print(*sys.modules)"
    output = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    # Torch's compiler: seconds to import, and nothing here is compiled.
    assert "torch._dynamo" not in output.split()
    assert "spacy_elmo.bilm.model" in output.split()
