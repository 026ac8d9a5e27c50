"""What killed writers leave, and how later ones clean it up."""

import os
from pathlib import Path

import pytest

from spacy_elmo.files.atomic import open_file, recover_directory, remove_leftovers, write_directory, write_file

from .written import contents, fail, write


def kill_between_the_renames(directory: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Do what a kill does at the worst moment: the old directory has another name, and nothing runs any more."""

    def die(*_: object, **__: object) -> None:
        raise KeyboardInterrupt("killed")

    rename = Path.rename
    n_renames = 0

    def rename_once(path: Path, target: Path) -> Path:
        nonlocal n_renames
        n_renames += 1
        if n_renames > 1:
            die()
        return rename(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", rename_once)
        patch.setattr("shutil.rmtree", die)
        with pytest.raises(KeyboardInterrupt, match="killed"):
            write(directory, text)
    assert n_renames > 1
    assert not directory.exists()


@pytest.mark.usefixtures("no_exchange")
def test_recover_directory_restores_the_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "out", "old")
    kill_between_the_renames(tmp_path / "out", "new", monkeypatch)
    recover_directory(tmp_path / "out")
    assert contents(tmp_path / "out") == {"mark": "old"}


@pytest.mark.usefixtures("no_exchange")
def test_write_directory_after_a_kill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "out", "old")
    kill_between_the_renames(tmp_path / "out", "new", monkeypatch)
    with pytest.raises(RuntimeError, match="disk on fire"):
        fail(tmp_path / "out", RuntimeError)
    assert contents(tmp_path / "out") == {"mark": "old"}
    write(tmp_path / "out", "newer")
    assert contents(tmp_path / "out") == {"mark": "newer"}


def test_recover_directory_keeps_an_existing_directory(tmp_path: Path) -> None:
    recover_directory(tmp_path / "out")
    recover_directory(tmp_path / "nowhere" / "out")
    assert list(tmp_path.iterdir()) == []
    write(tmp_path / "out", "new")
    (tmp_path / ".out-abcd1234.draft-old").mkdir()
    (tmp_path / ".out-abcd1234.draft-old" / "mark").write_text("old")
    recover_directory(tmp_path / "out")
    assert contents(tmp_path / "out") == {"mark": "new"}


@pytest.mark.parametrize(
    "name",
    [".out-best-abcd1234.draft-old", ".output-abcd1234.draft-old", ".out-abcd1234.draft", "out-abcd1234.draft-old"],
)
def test_recover_directory_ignores_other_directories(tmp_path: Path, name: str) -> None:
    # Of a directory "out-best", of one "output", the draft of "out", and what somebody else called so.
    (tmp_path / name).mkdir()
    (tmp_path / name / "mark").write_text("other")
    recover_directory(tmp_path / "out")
    assert contents(tmp_path) == {f"{name}/mark": "other"}


def test_recover_directory_takes_the_latest(tmp_path: Path) -> None:
    for name, time in [("aaaaaaaa", 1_000), ("mmmmmmmm", 3_000), ("zzzzzzzz", 2_000)]:
        aside = tmp_path / f".out-{name}.draft-old"
        aside.mkdir()
        (aside / "mark").write_text(str(time))
        for path in (aside / "mark", aside):
            os.utime(path, (time, time))
    recover_directory(tmp_path / "out")
    assert contents(tmp_path / "out") == {"mark": "3000"}


def test_recover_directory_takes_names_literally(tmp_path: Path) -> None:
    aside = tmp_path / ".out[1]-abcd1234.draft-old"
    aside.mkdir()
    (aside / "mark").write_text("old")
    recover_directory(tmp_path / "out[1]")
    assert contents(tmp_path) == {"out[1]/mark": "old"}


def test_remove_leftovers_of_files_and_directories(tmp_path: Path) -> None:
    others = [".a.txt-mine", ".a.txt-original", ".out-snapshot", ".out-snapshot-old"]
    write_file(tmp_path / "a.txt", "whole")
    write(tmp_path / "out", "whole")
    (tmp_path / ".a.txt-abcd1234.draft").write_text("half")
    for name in (".out-abcd1234.draft", ".out-abcd1234.draft-old", *others):
        (tmp_path / name).mkdir()
    for name in ("a.txt", "out"):
        remove_leftovers(tmp_path / name)
    assert sorted(path.name for path in tmp_path.iterdir()) == [*others, "a.txt", "out"]
    assert contents(tmp_path) == {"a.txt": "whole", "out/mark": "whole"}


def test_writers_remove_what_killed_writers_left(tmp_path: Path) -> None:
    (tmp_path / ".a.txt-abcd1234.draft").write_text("half")
    for name in (".out-abcd1234.draft", ".out-efgh5678.draft-old"):
        (tmp_path / name).mkdir()
    write_file(tmp_path / "a.txt", "whole")
    write(tmp_path / "out", "whole")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.txt", "out"]


@pytest.mark.skipif(os.name == "nt", reason="there are no such locks on Windows")
def test_writers_keep_the_drafts_of_other_writers(tmp_path: Path) -> None:
    with open_file(tmp_path / "a.txt") as file, write_directory(tmp_path / "out", files={"mark"}) as draft:
        file.write("slow")
        (draft / "mark").write_text("slow")
        for name in ("a.txt", "out"):
            remove_leftovers(tmp_path / name)
        write_file(tmp_path / "a.txt", "quick")
        write(tmp_path / "out", "quick")
        assert len(list(tmp_path.iterdir())) == 4
    assert contents(tmp_path) == {"a.txt": "slow", "out/mark": "slow"}


@pytest.mark.skipif(os.name == "nt", reason="there are no such locks on Windows")
def test_a_draft_that_was_taken_for_a_leftover_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fcntl  # not on Windows

    flock = fcntl.flock
    removed: list[Path] = []

    def remove_before_the_first_lock(handle: int, operation: int) -> None:
        if not removed:
            removed.extend(tmp_path.iterdir())
            removed[0].unlink()
        flock(handle, operation)

    monkeypatch.setattr(fcntl, "flock", remove_before_the_first_lock)
    write_file(tmp_path / "a.txt", "new")
    assert len(removed) == 1
    assert contents(tmp_path) == {"a.txt": "new"}


def test_drafts_of_other_users_stop_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    foreign = tmp_path / ".file.txt-abcd1234.draft"
    foreign.write_text("theirs", encoding="utf8")
    open_any = os.open

    def open_own(path: os.PathLike[str] | str, *arguments: int) -> int:
        if Path(path) == foreign:
            raise PermissionError(13, "Permission denied", str(path))
        return open_any(path, *arguments)

    monkeypatch.setattr("os.open", open_own)
    with open_file(tmp_path / "file.txt") as file:
        file.write("ours")
    assert (tmp_path / "file.txt").read_text(encoding="utf8") == "ours"
    assert foreign.read_text(encoding="utf8") == "theirs"
