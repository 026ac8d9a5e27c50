"""The supported formats of biLM weights: one line in `FORMATS`, and one module of this package, for each.

The module of a format has these functions:

- `recognizes(paths)`: Whether the paths look like weights in this format. It opens no large file.
- `read(paths)`: Reads the weights. RETURNS (BiLM).
- `write(bilm, directory)`: Writes the weights into a directory. A format that can only be read has none. One with several
  precisions takes `precision`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..bilm.model import BiLM


@dataclass(frozen=True)
class Format:
    """A format of weights. Its module, with torch and h5py, is imported when it is first used.

    module (str): The name of the module in this package.
    files (str): The files that it reads, for messages.
    can_write (bool): Whether weights can be written in this format.
    has_initial_state (bool): Whether the format stores the initial state of the LSTMs.
    has_lang (bool): Whether the format stores the language of the model.
    precisions (tuple): The precisions in which it can store weights.
    """

    module: str
    files: str
    can_write: bool = True
    has_initial_state: bool = False
    has_lang: bool = False
    precisions: tuple[str, ...] = ("float32",)

    def recognizes(self, paths: Sequence[Path]) -> bool:
        """RETURNS (bool): Whether the paths look like weights in this format."""
        return bool(self._functions().recognizes(paths))

    def read(self, paths: Sequence[Path]) -> "BiLM":
        """Read weights.

        paths (Sequence[Path]): The files or the directory.
        RETURNS (BiLM): The model.
        """
        bilm: BiLM = self._functions().read(paths)
        return bilm

    def write(self, bilm: "BiLM", directory: Path, *, precision: str = "float32") -> None:
        """Write weights, all files or none.

        bilm (BiLM): The model, in float32.
        directory (Path): The directory to write. An existing one is replaced only if it has nothing but such weights.
        precision (str): The precision to store them in.
        """
        if precision not in self.precisions:
            raise ValueError(
                f"This format cannot store weights in {precision!r}. Its precisions are: {', '.join(self.precisions)}."
            )
        options = {} if len(self.precisions) == 1 else {"precision": precision}
        self._functions().write(bilm, directory, **options)

    def _functions(self) -> Any:
        return import_module(f"{__name__}.{self.module}")


# A directory of ELMoForManyLangs has a config.json as well, so its files are looked for first.
FORMATS = {
    "elmoformanylangs": Format(
        "elmoformanylangs", "a directory with token_embedder.pkl and encoder.pkl", can_write=False
    ),
    "spacy-elmo": Format(
        "weights_directory",
        "a directory with config.json",
        has_initial_state=True,
        has_lang=True,
        precisions=("float32", "float16", "int8"),
    ),
    "bilm-tf": Format("bilm_tf", "options.json and weights.hdf5"),
}


def get_format(name: str, *, to_write: bool = False) -> Format:
    """Look up a format by its name.

    name (str): The name, such as "bilm-tf".
    to_write (bool): Whether the format must be one that can be written.
    RETURNS (Format): The format.
    """
    supported = [other for other, found in FORMATS.items() if found.can_write or not to_write]
    if name not in supported:
        raise ValueError(
            f"Unsupported format to {'write' if to_write else 'read'}: {name!r}. Supported: {', '.join(supported)}."
        )
    return FORMATS[name]


def detect_format(paths: Sequence[Path]) -> Format:
    """Find out the format of weights.

    paths (Sequence[Path]): The files or the directory.
    RETURNS (Format): The first format that recognizes them.
    """
    if missing := [str(path) for path in paths if not path.exists()]:
        raise ValueError(f"There is no file or directory at {', '.join(missing)} (seen from {Path.cwd()}).")
    for found in FORMATS.values():
        if found.recognizes(paths):
            return found
    supported = "; ".join(f"{name} ({found.files})" for name, found in FORMATS.items())
    raise ValueError(
        f"No supported format fits {', '.join(map(str, paths))}. Supported: {supported}; or a ZIP file of these."
    )
