"""`spacy elmo neighbours`, as typed."""

import json
from pathlib import Path

import pytest

from ..command_line import run


def test_neighbours(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("They play chess . He saw the play .\n\nCats sleep .\n", encoding="utf8")
    output = run("neighbours", tmp_path / "text.txt", "We [play] cards.", "A [play] ended.", "-n", "2", "--layer", "0")
    assert output.count("token layer 1.000") == 4  # the token layer knows the word and no context
    assert "We [play] cards." in output
    assert "They [play] chess ." in output
    output = run("neighbours", tmp_path / "text.txt", "We [play] cards.", "-n", "3")
    assert "1.000" not in output
    assert output.index("They [play] chess .") < output.index("He saw the [play] .")
    assert "Cats" not in run("neighbours", tmp_path / "text.txt", "We [play].", "-n", "9", "--limit", "1")


def test_neighbours_as_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text("They play chess .\n", encoding="utf8")
    run("neighbours", "text.txt", "We [play].", "-n", "1", "--layer", "0", "--layer", "2", "--output", "found.json")
    result = json.loads(Path("found.json").read_text(encoding="utf8"))
    (use,) = result.pop("uses")
    assert result == {
        "kind": "neighbours",
        "command": "python -m spacy elmo neighbours text.txt 'We [play].' --n 1 --limit 0 --lang en --layer 0 --layer 2 --output "
        "found.json",
        "weights": "en_elmo_sm",
        "layers": ["token layer", "LSTM layer 2"],
    }
    assert use["sentence"] == "We [play]."
    ((token_layer,), (lstm_layer,)) = use["neighbours"]
    assert token_layer == {"similarity": pytest.approx(1.0, abs=1e-5), "text": "They [play] chess ."}
    assert lstm_layer["text"] == "They [play] chess ."
    assert 0.2 < lstm_layer["similarity"] < 0.99


def test_recorded_command_repeats_the_run(weights: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = tmp_path / "text.txt"
    text.write_text("数 学\n", encoding="utf8")
    options = ["--lang", "zh", "--segmenter", "char", "--tokenized", "--weights", weights, "--output", "found.json"]
    run("neighbours", text, "/[数]学", "-n", "1", *options)
    assert json.loads(Path("found.json").read_text(encoding="utf8"))["command"] == (
        "python -m spacy elmo neighbours text.txt '/[数]学' --n 1 --limit 0 --lang zh --segmenter char --tokenized --weights "
        f"{Path(weights).name} --output found.json"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["We play cards."], "one word in square brackets"),
        (["We [play] [cards]."], "one word in square brackets"),
        (["We [play cards]."], "'play cards' in square brackets is not one token"),
        (["We [pl]ay cards."], "'pl' in square brackets is not one token"),
        (["We [play].", "--layer", "3"], "no layer 3: the layers are 0 to 2"),
        (["We [play].", "--lang", "nolang"], "nolang"),
        (["We [play].", "--weights", "nothing"], "no weights directory"),
    ],
)
def test_neighbours_report_errors(tmp_path: Path, arguments: list[str], message: str) -> None:
    (tmp_path / "text.txt").write_text("They play chess .\n", encoding="utf8")
    assert message in run("neighbours", tmp_path / "text.txt", *arguments, code=1)


def test_neighbours_in_an_empty_text(tmp_path: Path) -> None:
    assert "nothing.txt" in run("neighbours", tmp_path / "nothing.txt", "We [play].", code=1)
    (tmp_path / "empty.txt").write_text("\n", encoding="utf8")
    assert "no sentence to search" in run("neighbours", tmp_path / "empty.txt", "We [play].", code=1)
