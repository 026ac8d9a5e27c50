"""The results that commands write as JSON, for a page."""

import json
from pathlib import Path
from typing import Any

Result = dict[str, Any]

REQUIRED = {
    "grid": ("question", "variants"),
    "neighbours": ("weights", "layers", "uses"),
    "probe": ("weights", "attribute", "tokens", "unseen", "baselines", "probes"),
    "senses": ("weights", "train", "tests", "baselines", "layers"),
    "contextuality": ("weights", "sentences", "tokens", "words", "layers"),
}
COMMANDS = {kind: f"spacy elmo {kind} --output" for kind in REQUIRED} | {"grid": "spacy elmo trials --grid"}


def read_result(path: Path) -> Result:
    """Read what a command has written.

    path (Path): A JSON file.
    RETURNS (Result): Its content. The "kind" is a key of `REQUIRED`.
    """
    try:
        result: Result = json.loads(path.read_text(encoding="utf8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} cannot be read: {error}. Write it again with the command that makes it.") from error
    kind = result.get("kind") if isinstance(result, dict) else None
    if kind not in REQUIRED:
        commands = ", ".join(f"`{command}`" for command in COMMANDS.values())
        raise ValueError(
            f"{path} is not a result for this page: it has the kind {kind!r}. These write results: {commands}."
        )
    missing = [name for name in ("command", *REQUIRED[kind]) if name not in result]
    if missing:
        raise ValueError(f"{path} has no {missing[0]!r}. Write it again with `{COMMANDS[kind]}`.")
    return result
