"""Directories to write in tests, and what is in them."""

from pathlib import Path

from spacy_elmo.files.atomic import write_directory


def write(directory: Path, text: str) -> None:
    with write_directory(directory, files={"mark"}) as draft:
        (draft / "mark").write_text(text)


def fail(directory: Path, error: type[BaseException]) -> None:
    with write_directory(directory, files={"mark"}) as draft:
        (draft / "mark").write_text("half")
        raise error("disk on fire")


def contents(directory: Path) -> dict[str, str]:
    """Read every file below a directory, hidden ones too."""
    return {str(path.relative_to(directory)): path.read_text() for path in directory.rglob("*") if path.is_file()}
