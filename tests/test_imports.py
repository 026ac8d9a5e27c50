"""Who may import whom."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import spacy_elmo

PACKAGE = Path(spacy_elmo.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))

# What a part of the package may not import, wherever in a file, in functions too.
FORBIDDEN = {
    "characters": ["spacy", "thinc", "spacy_elmo"],
    "atomic": ["spacy", "thinc", "torch", "spacy_elmo"],
    "charts": ["spacy", "thinc", "torch", "spacy_elmo"],
    "bilm": [
        "spacy",
        "thinc",
        "spacy_elmo.architectures",
        "spacy_elmo.cli",
        "spacy_elmo.formats",
        "spacy_elmo.layers",
        "spacy_elmo.models",
        "spacy_elmo.pipeline",
        "spacy_elmo.pretraining",
        "spacy_elmo.similarity",
    ],
    "crf_ner": [
        "spacy_elmo.architectures",
        "spacy_elmo.bilm",
        "spacy_elmo.cli",
        "spacy_elmo.formats",
        "spacy_elmo.layers",
        "spacy_elmo.models",
        "spacy_elmo.pipeline",
        "spacy_elmo.pretraining",
        "spacy_elmo.similarity",
    ],
    "layers": ["spacy_elmo.cli", "spacy_elmo.formats", "spacy_elmo.pipeline", "spacy_elmo.pretraining"],
    "textcat": [
        "spacy_elmo.architectures",
        "spacy_elmo.cli",
        "spacy_elmo.formats",
        "spacy_elmo.layers",
        "spacy_elmo.pipeline",
        "spacy_elmo.pretraining",
    ],
    "pretraining": ["spacy_elmo.architectures", "spacy_elmo.cli", "spacy_elmo.layers", "spacy_elmo.pipeline"],
    "formats": ["spacy", "thinc"],
    "page": ["spacy", "thinc", "torch"],
    "comparison": [
        "torch",
        "spacy_elmo.architectures",
        "spacy_elmo.bilm",
        "spacy_elmo.cli",
        "spacy_elmo.formats",
        "spacy_elmo.layers",
        "spacy_elmo.models",
        "spacy_elmo.pipeline",
        "spacy_elmo.pretraining",
    ],
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


def is_below(module: str, parent: str) -> bool:
    return module == parent or module.startswith(f"{parent}.")


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


def test_the_parts_are_there() -> None:
    assert FORBIDDEN.keys() <= {part_of(path) for path in FILES}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_parts_import_only_what_lies_below_them(path: Path) -> None:
    wrong = [
        module
        for module in imports_of(path)
        for forbidden in FORBIDDEN.get(part_of(path), [])
        if is_below(module, forbidden)
    ]
    assert wrong == []


def test_formats_import_only_the_torch_half() -> None:
    allowed = ["spacy_elmo.bilm", "spacy_elmo.characters", "spacy_elmo.atomic", "spacy_elmo.formats"]
    files = [path for path in FILES if part_of(path) == "formats"]
    own = [module for path in files for module in imports_of(path) if is_below(module, "spacy_elmo")]
    assert own
    assert [module for module in own if not any(is_below(module, parent) for parent in allowed)] == []


def test_nothing_imports_the_command_line() -> None:
    others = [path for path in FILES if part_of(path) != "cli"]
    assert [path for path in others for module in imports_of(path) if is_below(module, "spacy_elmo.cli")] == []


@pytest.mark.parametrize(
    ("module", "absent"),
    [
        # spaCy imports every plugin at every start, so what it imports must be quick.
        ("spacy_elmo.pipeline", ["spacy_elmo.bilm.model", "spacy_elmo.formats", "spacy_elmo.textcat"]),
        ("spacy_elmo.architectures", ["spacy_elmo.bilm.model", "spacy_elmo.crf_ner.chain"]),
        ("spacy_elmo.crf_ner.component", ["spacy_elmo.bilm.model", "spacy_elmo.crf_ner.chain"]),
        ("spacy_elmo.crf_ner.chain", ["spacy", "thinc"]),
        ("spacy_elmo.crf_ner.tags", ["spacy", "thinc", "torch"]),
        ("spacy_elmo.formats.bilm_tf", ["spacy", "thinc", "h5py"]),
        ("spacy_elmo.pretraining.optimizers", ["spacy_elmo.bilm.model"]),
        ("spacy_elmo.pretraining.loggers", ["spacy_elmo.bilm.model"]),
        # The model that learns, and what it learns from, are torch's part as well.
        ("spacy_elmo.pretraining.language_model", ["spacy", "thinc"]),
        ("spacy_elmo.pretraining.perplexity", ["spacy", "thinc"]),
        # Numbers that were measured are compared without what measured them.
        ("spacy_elmo.comparison.report", ["spacy", "thinc", "torch"]),
        ("spacy_elmo.cli", ["spacy_elmo.comparison", "spacy_elmo.page", "spacy_elmo.pretraining.run"]),
        ("spacy_elmo.textcat.network", ["spacy", "thinc"]),
    ],
)
def test_import_is_light(module: str, absent: list[str]) -> None:
    code = f"import sys, {module}; sys.stdout.write(' '.join(sys.modules))"
    output = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    loaded = output.split()
    assert module in loaded
    assert [name for name in absent if name in loaded] == []


def test_first_use_is_light() -> None:
    code = "import spacy, sys; nlp = spacy.blank('en'); nlp.add_pipe('elmo'); nlp('Hello'); print(*sys.modules)"
    output = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    # Torch's compiler: seconds to import, and nothing here is compiled.
    assert "torch._dynamo" not in output.split()
    assert "spacy_elmo.bilm.model" in output.split()
