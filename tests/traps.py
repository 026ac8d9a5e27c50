"""Objects that show whether a file was unpickled."""

import os
from pathlib import Path
from typing import Any


class Trap:
    """An object that leaves a file behind when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)
