"""Models in ZIP files, and ZIP files that are damaged or hostile."""

import tempfile
import zipfile
from pathlib import Path

import pytest

from spacy_elmo.formats import archives
from spacy_elmo.formats.archives import unpacked


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory in which temporary directories are made."""
    path = tmp_path / "temporary"
    path.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(path))
    return path


def make_zip(path: Path, *names: str, method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name in names:
            archive.writestr(name, f"I am {name}. " * 20)
    return path


@pytest.mark.parametrize("folder", ["", "de.model/", "a/b/", "./"])
def test_the_files_are_found(tmp_path: Path, temporary: Path, folder: str) -> None:
    path = make_zip(tmp_path / "model.zip", f"{folder}one.txt", f"{folder}two.txt", f"{folder}more/three.txt")
    with unpacked([path]) as [root]:
        assert root.is_relative_to(temporary)
        assert sorted(file.name for file in root.iterdir()) == ["more", "one.txt", "two.txt"]
        assert (root / "one.txt").read_text().startswith(f"I am {folder}one.txt. I am")
    assert list(temporary.iterdir()) == []


def test_other_paths_stay_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no ZIP file")
    for paths in ([tmp_path], [tmp_path / "file"], [tmp_path / "nowhere"], [tmp_path / "file", tmp_path / "file"]):
        with unpacked(paths) as found:
            assert found == paths


@pytest.mark.parametrize(
    "name", ["../out.txt", "a/../../out.txt", "/out.txt", "\\out.txt", "..\\out.txt", "C:\\out.txt", "a/.."]
)
def test_paths_that_lead_out_are_refused(tmp_path: Path, temporary: Path, name: str) -> None:
    path = make_zip(tmp_path / "model.zip", "one.txt", name)
    before = sorted(tmp_path.rglob("*"))
    with (
        pytest.raises(ValueError, match=r"model.zip has a file that leads out of it, .*: it was not unpacked"),
        unpacked([path]),
    ):
        pass
    assert sorted(tmp_path.rglob("*")) == before
    assert not Path("/out.txt").exists()


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_damaged_files(tmp_path: Path, temporary: Path, method: int) -> None:
    path = make_zip(tmp_path / "model.zip", "one.txt", method=method)
    data = bytearray(path.read_bytes())
    data[45:60] = bytes(15)
    path.write_bytes(bytes(data))
    with (
        pytest.raises(ValueError, match=r"model.zip cannot be unpacked: .*Was it downloaded whole, "),
        unpacked([path]),
    ):
        pass
    assert list(temporary.iterdir()) == []


def test_long_names_do_not_make_long_messages(tmp_path: Path) -> None:
    path = make_zip(tmp_path / "model.zip", "x" * 10_000)
    data = path.read_bytes()
    path.write_bytes(data.replace(b"x", b"y", 10_000))  # the name in the header, not the one in the directory
    with (
        pytest.raises(ValueError, match=r"model.zip cannot be unpacked: File name in directory 'xx") as caught,
        unpacked([path]),
    ):
        pass
    assert len(str(caught.value)) < 2000


def test_files_with_a_password(tmp_path: Path) -> None:
    path = make_zip(tmp_path / "model.zip", "one.txt")
    data = bytearray(path.read_bytes())
    data[6] |= 1  # the flag of encryption, in the header of the file and in the directory
    data[data.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(bytes(data))
    with pytest.raises(ValueError, match=r"model.zip cannot be unpacked: .*(encrypted|password)"), unpacked([path]):
        pass


def test_files_that_are_too_large(tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make_zip(tmp_path / "model.zip", "one.txt", "two.txt")
    monkeypatch.setattr(archives, "MOST_BYTES", 300)
    with (
        pytest.raises(ValueError, match=r"model.zip would be 0 GB unpacked, which is not a model's size"),
        unpacked([path]),
    ):
        pass
    assert list(temporary.iterdir()) == []


def test_errors_name_the_archive(tmp_path: Path, temporary: Path) -> None:
    path = make_zip(tmp_path / "model.zip", "one.txt")
    with (
        pytest.raises(ValueError, match=r"^.*model.zip/one.txt is not what it seems$") as error,
        unpacked([path]) as [root],
    ):
        raise ValueError(f"{root / 'one.txt'} is not what it seems")
    assert str(temporary) not in str(error.value)
