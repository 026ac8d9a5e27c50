"""The docs: links lead somewhere, every module is on the map, and the hooks run what CI runs."""

import re
from pathlib import Path

import pytest
import srsly

from .test_imports import ALLOWED

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "spacy_elmo"
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *(ROOT / "assets").glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        *PACKAGE.glob("models/*/*.md"),
    ]
)
MODULES = sorted(str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py") if path.name != "__init__.py")


def anchors(page: Path) -> set[str]:
    """RETURNS (set[str]): The anchors that GitHub gives to the headings of a page."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf8"), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_have_targets(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf8")):
        if link.startswith("http"):
            continue
        target, _, anchor = link.partition("#")
        path = page.parent / target if target else page
        assert path.exists(), link
        assert not anchor or anchor in anchors(path), link


def documented_modules() -> list[str]:
    """RETURNS (list[str]): The modules in the tables of docs/design.md, as paths in the package."""
    text = (ROOT / "docs" / "design.md").read_text(encoding="utf8")
    section = text.split("\n## Modules\n")[1].split("\n## ")[0]
    found, folder = [], ""
    for line in section.splitlines():
        if line.startswith("### "):
            folder = line.removeprefix("### ")
        elif match := re.match(r"\| `([^`]+\.py)` \| \S", line):
            found.append(folder + match[1])
    return found


def test_every_module_is_in_the_design() -> None:
    found = documented_modules()
    assert len(found) == len(set(found))
    assert sorted(name for name in found if not name.endswith("__init__.py")) == MODULES


def test_every_script_config_and_data_file_is_in_the_design() -> None:
    text = (ROOT / "docs" / "design.md").read_text(encoding="utf8")
    section = text.split("\n## Scripts, configs and test data\n")[1].split("\n## ")[0]
    found = [
        name for row in re.findall(r"^\| (`.+?) \|", section, re.MULTILINE) for name in re.findall(r"`(.+?)`", row)
    ]
    assert len(found) == len(set(found))
    files = [path for pattern in ("scripts/*.py", "benchmarks/*.py", "configs/*.cfg") for path in ROOT.glob(pattern)]
    files += [path for pattern in ("golden/[!_]*.py", "legacy/make_*.py") for path in (ROOT / "tests").glob(pattern)]
    assert set(found) == {str(path.relative_to(ROOT)) for path in [*files, ROOT / "assets" / "README.md"]}
    data = [path for path in PACKAGE.glob("*/*.*") if path.suffix in {".tsv", ".jinja"}]
    assert len(data) == 2
    for path in data:
        assert f"| `{path.name}` | " in text, path


def test_map_of_the_readme_matches_the_package() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf8")
    section = text.split("\n## Where things are\n")[1].split("\n## ")[0]
    folders = {path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    linked = set(re.findall(r"\]\(([^)]+)\)", section))
    assert {f"spacy_elmo/{folder}" for folder in folders} <= linked
    for row in section.splitlines():
        folders_in_row = [ROOT / link for link in re.findall(r"`\]\(([^)]+)\)", row)]
        for name in re.findall(r"`([^`]+)`", row.split("|")[3]) if folders_in_row else []:
            assert any((folder / name).exists() for folder in folders_in_row), name


def test_imports_in_the_design_are_those_that_are_allowed() -> None:
    text = (ROOT / "docs" / "design.md").read_text(encoding="utf8")
    section = text.split("\n## Import rules\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (`.+?) \| (.+) \|$", section, flags=re.MULTILINE)
    documented = {
        part: set(re.findall(r"`(\w+)`", allowed)) for parts, allowed in rows for part in re.findall(r"`(\w+)`", parts)
    }
    assert documented == {part: own for part, (own, _) in ALLOWED.items()}


def test_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf8").splitlines()) < 150


@pytest.mark.parametrize(
    "heading", ["How a text becomes vectors", "How a corpus becomes weights", "How a corpus becomes vectors"]
)
def test_functions_in_the_design_exist(heading: str) -> None:
    text = (ROOT / "docs" / "design.md").read_text(encoding="utf8")
    diagram = text.split(f"\n## {heading}\n")[1].split("```")[1]
    rows = re.findall(r"^ +(?:\w+: )?(?:\w+\.)?(\w+) +([\w/]+\.py)", diagram, flags=re.MULTILINE)
    assert len(rows) >= 8
    for name, file in rows:
        path = PACKAGE / file if (PACKAGE / file).exists() else PACKAGE / "pretraining" / file
        assert re.search(rf"^ *(?:def|class) {name}\b", path.read_text(encoding="utf8"), flags=re.MULTILINE), name


def test_files_to_change_exist() -> None:
    text = (ROOT / "docs" / "design.md").read_text(encoding="utf8")
    section = text.split("\n## Where does a change go\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (.+?) \| (.+) \|$", section, flags=re.MULTILINE)[1:]
    assert len(rows) == 12
    for change, where in rows:
        for name in re.findall(r"`([\w/.]+/[\w.]*)`", where):
            assert "NAME" in name or (PACKAGE / name).exists() or (ROOT / name).exists(), f"{change}: {name}"


def test_hooks_run_what_ci_runs() -> None:
    (repository,) = srsly.read_yaml(ROOT / ".pre-commit-config.yaml")["repos"]
    commands = (ROOT / ".ci" / "run").read_text(encoding="utf8").splitlines()
    for hook in repository["hooks"]:
        assert hook["entry"].replace(".venv", ".ci-venv") in commands


def test_workflow_runs_every_version_of_python_that_the_package_supports() -> None:
    workflow = srsly.read_yaml(ROOT / ".github" / "workflows" / "ci.yml")
    job = workflow["jobs"]["checks"]
    setup = (ROOT / "setup.cfg").read_text(encoding="utf8")
    assert job["strategy"]["matrix"]["python"] == re.findall(r"Python :: (3\.\d+)", setup)
    assert job["steps"][-1] == {"run": "bash .ci/run"}


COMMANDS = [
    (str(page.relative_to(ROOT)), line)
    for page in PAGES
    for line in re.findall(
        r"python (?:-m spacy project run|scripts/|benchmarks/)[^`\n]+", page.read_text(encoding="utf8")
    )
]


@pytest.mark.parametrize(("page", "command"), COMMANDS, ids=[" ".join(pair) for pair in COMMANDS])
def test_commands_in_the_docs_exist(page: str, command: str) -> None:
    project = srsly.read_yaml(ROOT / "project.yml")
    if script := re.match(r"python ((?:scripts|benchmarks)/\S+\.py)", command):
        assert (ROOT / script[1]).is_file()
    elif name := re.match(r"python -m spacy project run ([\w-]+)", command):
        assert name[1] in {*project["workflows"], *(each["name"] for each in project["commands"])}
    assert set(re.findall(r"--vars\.(\w+)", command)) <= project["vars"].keys()
