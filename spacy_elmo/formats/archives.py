"""ZIP files, as models are published in the NLPL repository."""

import shutil
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PureWindowsPath

# Far above any model, and low enough that a hostile file does not fill the disk.
MOST_BYTES = 2**34


@contextmanager
def unpacked(paths: Sequence[Path]) -> Iterator[list[Path]]:
    """Unpack a ZIP file into a temporary directory, and remove that afterwards. Other paths stay as they are.

    paths (Sequence[Path]): The files or the directory of a model, or one ZIP file that has them.
    YIELDS (list[Path]): The paths, or the directory in the ZIP file that has the files.
    """
    if len(paths) != 1 or not zipfile.is_zipfile(paths[0]):
        yield list(paths)
        return
    with tempfile.TemporaryDirectory(prefix="spacy-elmo-", ignore_cleanup_errors=True) as temporary:
        try:
            _unpack(paths[0], Path(temporary))
            yield [_find_root(Path(temporary))]
        except ValueError as error:
            # The user knows the ZIP file, and not where it was unpacked.
            raise ValueError(str(error).replace(temporary, str(paths[0]))) from None


def _unpack(path: Path, target: Path) -> None:
    try:
        with zipfile.ZipFile(path) as archive:
            members = [member for member in archive.infolist() if not member.is_dir()]
            for member in members:
                name = PureWindowsPath(member.filename)  # knows slashes, backslashes and drives
                if name.anchor or ".." in name.parts:
                    raise ValueError(
                        f"{path} has a file that leads out of it, {member.filename!r:.200}: it was not unpacked."
                    )
            n_bytes = sum(member.file_size for member in members)
            if n_bytes > MOST_BYTES:
                raise ValueError(f"{path} would be {n_bytes / 2**30:,.0f} GB unpacked, which is not a model's size.")
            for member in members:
                file = target.joinpath(*PureWindowsPath(member.filename).parts)
                file.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(member) as packed, file.open("wb") as unpacked_file:
                    shutil.copyfileobj(packed, unpacked_file)
    except ValueError:
        raise
    except Exception as error:  # a damaged file, a password or a full disk: zipfile and its codecs raise many kinds
        raise ValueError(
            f"{path} cannot be unpacked: {error!s:.1000}. Was it downloaded whole, and is there space for it in "
            f"{target.parent}?"
        ) from None


def _find_root(directory: Path) -> Path:
    """Find the directory with the files: an archive may have them in a folder."""
    entries = list(directory.iterdir())
    while len(entries) == 1 and entries[0].is_dir():
        directory = entries[0]
        entries = list(directory.iterdir())
    return directory
