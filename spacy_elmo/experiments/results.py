"""The results that commands write as JSON, for a page."""

import json
from pathlib import Path
from typing import Any

Result = dict[str, Any]

REQUIRED: dict[str, dict[str, type]] = {
    "grid": {"question": str, "variants": list},
    "neighbours": {"weights": str, "layers": list, "uses": list},
    "probe": {"weights": str, "attribute": str, "tokens": dict, "unseen": int, "baselines": list, "probes": list},
    "senses": {"weights": str, "train": dict, "tests": list, "baselines": list, "layers": list},
    "contextuality": {"weights": str, "sentences": int, "tokens": int, "words": int, "layers": list},
}
COMMANDS = {kind: f"spacy elmo {kind} --output" for kind in REQUIRED} | {"grid": "spacy elmo trials --grid"}


def read_result(path: Path) -> Result:
    """Read what a command has written.

    path (Path): A JSON file.
    RETURNS (Result): Its content. The "kind" is a key of `REQUIRED`.
    """
    try:
        result: Result = json.loads(path.read_text(encoding="utf8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"{path} cannot be read: {error}. Write it again with the command that makes it.") from error
    kind = result.get("kind") if isinstance(result, dict) else None
    if not isinstance(kind, str) or kind not in REQUIRED:
        commands = ", ".join(f"`{command}`" for command in COMMANDS.values())
        raise ValueError(
            f"{path} is not a result for this page: it has the kind {kind!r}. These write results: {commands}."
        )
    for name, expected in {"command": str, **REQUIRED[kind]}.items():
        if name not in result:
            raise ValueError(f"{path} has no {name!r}. Write it again with `{COMMANDS[kind]}`.")
        if not isinstance(result[name], expected):
            raise ValueError(
                f"In {path}, {name!r} must be a {expected.__name__}, got {result[name]!r:.80}. Write it again with "
                f"`{COMMANDS[kind]}`."
            )
    if kind == "grid" and not _is_grid(result):
        raise ValueError(
            f"{path} is damaged: each variant needs a name and a title, paper_table is a number or null, and the explanation a "
            f"text. Write it again with `{COMMANDS[kind]}`."
        )
    return result


def _is_grid(result: Result) -> bool:
    return (
        isinstance(result.get("paper_table", ""), int | None)
        and isinstance(result.get("explanation", ""), str)
        and all(
            isinstance(variant, dict) and all(isinstance(variant.get(name), str) for name in ("name", "title"))
            for variant in result["variants"]
        )
    )
