"""Files and directories that are written whole or not at all."""

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from spacy_elmo.files.atomic import draft_file, explain_write_errors, open_file, write_directory, write_file

from .written import contents, fail, write


@pytest.fixture
def usual_umask() -> Iterator[None]:
    """The permissions that most systems give to new files."""
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The inodes of the files and directories that were put on the disk, in that order."""
    inodes: list[int] = []
    fsync = os.fsync

    def record(handle: int) -> None:
        inodes.append(os.fstat(handle).st_ino)
        fsync(handle)

    monkeypatch.setattr(os, "fsync", record)
    return inodes


def inode(path: Path) -> int:
    return path.stat().st_ino


def test_write_directory_makes_missing_parents(tmp_path: Path) -> None:
    write(tmp_path / "a" / "b", "new")
    assert contents(tmp_path) == {"a/b/mark": "new"}
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["b"]


def test_write_directory_shows_nothing_before_the_end(tmp_path: Path) -> None:
    with write_directory(tmp_path / "out", files={"mark"}) as draft:
        (draft / "mark").write_text("new")
        assert not (tmp_path / "out").exists()
        assert draft.parent == tmp_path  # on the same disk, so that a rename is enough
    assert contents(tmp_path) == {"out/mark": "new"}


def test_write_directory_replaces_all_of_the_old(tmp_path: Path) -> None:
    write(tmp_path / "out", "old")
    write(tmp_path / "out", "new")
    assert contents(tmp_path) == {"out/mark": "new"}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_write_directory_uses_an_empty_directory(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    write(tmp_path / "out", "new")
    assert contents(tmp_path) == {"out/mark": "new"}


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_write_directory_keeps_the_old_if_writing_fails(tmp_path: Path, error: type[BaseException]) -> None:
    write(tmp_path / "out", "old")
    with pytest.raises(error, match="disk on fire"):
        fail(tmp_path / "out", error)
    assert contents(tmp_path) == {"out/mark": "old"}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_write_directory_leaves_nothing_if_the_first_writing_fails(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="disk on fire"):
        fail(tmp_path / "out", RuntimeError)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("no_exchange")
def test_write_directory_replaces_the_old_in_two_steps(tmp_path: Path) -> None:
    write(tmp_path / "out", "old")
    write(tmp_path / "out", "new")
    assert contents(tmp_path) == {"out/mark": "new"}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.usefixtures("no_exchange")
def test_write_directory_restores_the_old_if_the_rename_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "out", "old")
    rename = Path.rename

    def fail_for_the_draft(path: Path, target: Path) -> Path:
        if target == tmp_path / "out" and (path / "mark").read_text() == "new":
            raise OSError("cannot rename")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", fail_for_the_draft)
    with pytest.raises(OSError, match="cannot rename"):
        write(tmp_path / "out", "new")
    assert contents(tmp_path) == {"out/mark": "old"}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_write_directory_refuses_unknown_files(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.txt").write_text("years of work")
    with pytest.raises(ValueError, match="home has other files in it, such as"):
        write(tmp_path / "home", "new")
    assert contents(tmp_path) == {"home/thesis.txt": "years of work"}


def test_write_directory_refuses_a_file(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file")
    with pytest.raises(ValueError, match="out is a file; a directory is to be written there"):
        write(tmp_path / "out", "new")
    assert contents(tmp_path) == {"out": "a file"}


@pytest.mark.usefixtures("usual_umask")
@pytest.mark.skipif(os.name != "posix", reason="permissions are those of POSIX")
def test_write_directory_gives_the_usual_permissions(tmp_path: Path) -> None:
    write(tmp_path / "out", "new")
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "out" / "mark").stat().st_mode & 0o777 == 0o644
    assert os.umask(0o022) == 0o022  # looking at the mask has not changed it


def test_write_directory_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "mark").write_text("old")
    (tmp_path / "link").symlink_to("real")
    with write_directory(tmp_path / "link", files={"mark"}) as draft:
        (draft / "mark").write_text("new")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "real"]
    assert (tmp_path / "link" / "mark").read_text() == "new"
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real" / "mark").read_text() == "new"


def test_write_directory_refuses_to_drop_added_files(tmp_path: Path) -> None:
    write(tmp_path / "out", "old")
    (tmp_path / "out" / "thesis.txt").write_text("years of work")
    with pytest.raises(ValueError, match="out has other files in it, such as 'thesis.txt'"):
        write(tmp_path / "out", "new")
    assert contents(tmp_path) == {"out/mark": "old", "out/thesis.txt": "years of work"}


def test_write_directory_is_on_the_disk_before_and_after_the_rename(tmp_path: Path, synced: list[int]) -> None:
    write(tmp_path / "out", "new")
    assert synced == [inode(tmp_path / "out" / "mark"), inode(tmp_path / "out"), inode(tmp_path)]


def test_write_directory_gives_each_writer_a_draft(tmp_path: Path) -> None:
    with (
        write_directory(tmp_path / "out", files={"mark"}) as one,
        write_directory(tmp_path / "out", files={"mark"}) as two,
    ):
        (one / "mark").write_text("one")
        (two / "mark").write_text("two")
    assert contents(tmp_path) == {"out/mark": "one"}  # which was complete last


# Files


def test_write_file_makes_and_replaces(tmp_path: Path) -> None:
    for text in ("old", "naïve 日本\n"):
        write_file(tmp_path / "a.txt", text)
        assert (tmp_path / "a.txt").read_bytes() == text.encode("utf8")
        assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_write_file_keeps_the_old_if_writing_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_file(tmp_path / "a.txt", "old")
    with pytest.raises(UnicodeEncodeError, match="surrogates not allowed"):
        write_file(tmp_path / "a.txt", "x" * 100_000 + "\ud800")
    assert contents(tmp_path) == {"a.txt": "old"}

    def fail_to_replace(path: Path, target: Path) -> None:
        assert path.read_text() == "new"  # it was complete
        raise OSError("cannot rename")

    monkeypatch.setattr(Path, "replace", fail_to_replace)
    for name in ("a.txt", "b.txt"):
        with pytest.raises(OSError, match="cannot rename"):
            write_file(tmp_path / name, "new")
    assert contents(tmp_path) == {"a.txt": "old"}


@pytest.mark.usefixtures("usual_umask")
@pytest.mark.skipif(os.name != "posix", reason="permissions are those of POSIX")
def test_write_file_gives_the_usual_permissions(tmp_path: Path) -> None:
    write_file(tmp_path / "a.txt", "new")
    assert (tmp_path / "a.txt").stat().st_mode & 0o777 == 0o644


def test_write_file_makes_missing_parents(tmp_path: Path) -> None:
    write_file(tmp_path / "some" / "where" / "a.txt", "new")
    assert contents(tmp_path) == {"some/where/a.txt": "new"}


def test_write_file_below_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a file")
    with pytest.raises(OSError, match=r"a\.txt/b\.txt could not be written: .*(File exists|Not a directory)"):
        write_file(tmp_path / "a.txt" / "b.txt", "new")
    assert contents(tmp_path) == {"a.txt": "a file"}


def test_write_file_is_on_the_disk_before_and_after_the_rename(tmp_path: Path, synced: list[int]) -> None:
    write_file(tmp_path / "a.txt", "new")
    assert synced == [inode(tmp_path / "a.txt"), inode(tmp_path)]


def test_write_file_where_directories_cannot_be_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fsync = os.fsync

    def refuse_directories(handle: int) -> None:
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "Invalid argument")
        fsync(handle)

    monkeypatch.setattr(os, "fsync", refuse_directories)
    write_file(tmp_path / "a.txt", "new")
    assert contents(tmp_path) == {"a.txt": "new"}


def test_write_file_keeps_the_old_if_the_disk_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_file(tmp_path / "a.txt", "old")

    def fail(handle: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(
        OSError, match=r"a\.txt could not be written: .*Input/output error\. Is the disk full, or is writing not"
    ):
        write_file(tmp_path / "a.txt", "new")
    assert contents(tmp_path) == {"a.txt": "old"}


def test_open_file_gives_each_writer_a_draft(tmp_path: Path) -> None:
    with open_file(tmp_path / "a.txt") as one, open_file(tmp_path / "a.txt") as two:
        one.write("one")
        two.write("and two")
    assert contents(tmp_path) == {"a.txt": "one"}  # which was complete last


def test_draft_file_yields_a_path(tmp_path: Path) -> None:
    with draft_file(tmp_path / "a.bin") as draft:
        draft.write_bytes(b"new")
        assert draft.parent == tmp_path
        assert not (tmp_path / "a.bin").exists()
    assert contents(tmp_path) == {"a.bin": "new"}


def test_write_file_through_a_link(tmp_path: Path) -> None:
    write_file(tmp_path / "real.txt", "old")
    (tmp_path / "link.txt").symlink_to("real.txt")
    write_file(tmp_path / "link.txt", "new")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text() == "new"


def test_explain_write_errors_explains_once(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a file")
    with (
        pytest.raises(
            OSError, match=r"^\S+a\.txt/b could not be written: [^:]*: [^:]*\. Is the disk full, .*permitted\?$"
        ),
        write_directory(tmp_path / "out", files={"mark"}),
    ):
        write_file(tmp_path / "a.txt" / "b", "new")
    assert contents(tmp_path) == {"a.txt": "a file"}


def test_explain_write_errors_puts_the_path_into_the_message(tmp_path: Path) -> None:
    with (
        pytest.raises(OSError, match=r"^some/where could not be written: .*No such file"),
        explain_write_errors(Path("some/where")),
    ):
        (tmp_path / "nowhere" / "a.txt").write_text("new")
