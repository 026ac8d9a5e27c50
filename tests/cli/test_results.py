"""What commands do with --output if it cannot be written: their results may have taken hours."""

from pathlib import Path

import pytest
import spacy
from spacy.tokens import Doc, DocBin

from ..command_line import run

SENSES = Path(__file__).parents[2] / "assets" / "senses_sample"

# The last line of what each of them prints.
PRINTED = {
    "contextuality": "2 sentences, 8 tokens, 0 words in enough sentences",
    "probe": "8 tokens to train on, 8 to test on",
    "senses": "352 uses in the training data",
    "neighbours": "They [play] chess .",
    "evaluate": "Text was read as raw text in the language 'en'",
}


@pytest.fixture
def arguments(weights: str, tmp_path: Path) -> dict[str, list[str | Path]]:
    """The arguments of the commands, without --output."""
    text, docs = tmp_path / "text.txt", tmp_path / "docs.spacy"
    lines = ["They play chess .", "He saw it ."]
    text.write_text("\n".join(lines), encoding="utf8")
    vocab = spacy.blank("en").vocab
    DocBin(docs=[Doc(vocab, words=line.split(), tags=list("ABAB")) for line in lines]).to_disk(docs)
    return {
        "contextuality": [weights, text, "--tokenized"],
        "probe": [weights, docs, docs, docs, "--seeds", "1", "--epochs", "1"],
        "senses": [weights, SENSES / "train.jsonl", SENSES / "test.jsonl"],
        "neighbours": [text, "We [play].", "--weights", weights],
        "evaluate": ["en_elmo_sm", text],
    }


@pytest.mark.parametrize("command", PRINTED)
def test_results_are_printed_before_they_are_written(
    command: str, arguments: dict[str, list[str | Path]], tmp_path: Path
) -> None:
    output = tmp_path / "text.txt" / "results.json"
    printed = run(command, *arguments[command], "--output", output, code=1)
    assert PRINTED[command] in printed
    assert f"{output} could not be written" in printed
    assert printed.index(PRINTED[command]) < printed.index("Could not write the results")


@pytest.mark.parametrize("command", PRINTED)
def test_a_directory_is_refused_at_once(command: str, arguments: dict[str, list[str | Path]], tmp_path: Path) -> None:
    (tmp_path / "text.txt").unlink()  # so that nothing else can be what is wrong first
    printed = run(command, *arguments[command], "--output", tmp_path, code=1)
    assert f"{tmp_path} is a directory, and the results are a file. Choose another name." in printed
    assert PRINTED[command] not in printed
