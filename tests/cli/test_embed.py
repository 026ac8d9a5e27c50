"""`spacy elmo embed`, as typed."""

import sys
from pathlib import Path

import pytest

from ..command_line import run
from ..embedding.corpora import TEXTS, read_bytes, read_table, write_lines


def test_embed_and_finish(weights: str, tmp_path: Path) -> None:
    corpus = write_lines(tmp_path / "a.jsonl", *[{"text": text, "label": "x"} for text in TEXTS])
    command = ("embed", corpus, tmp_path / "out", "-w", weights, "-u", "sentence", "--shard-size", "300", "-n", "1")
    output = run(*command)
    assert "Documents: 30, characters: 2,005, shards: 8" in output
    assert " 505 tokens in " in output
    assert f"{tmp_path / 'out'} has all vectors" in output
    assert read_table(tmp_path / "out").column_names == ["id", "sentence", "text", "label", "vector"]
    before = read_bytes(tmp_path / "out")
    (tmp_path / "out" / "shard-000002.parquet").unlink()
    assert "Finished already: 7" in run(*command)
    assert read_bytes(tmp_path / "out") == before


def test_parts_and_plan(weights: str, tmp_path: Path) -> None:
    corpus = write_lines(tmp_path / "a.txt", *TEXTS)
    command = ("embed", corpus, tmp_path / "out", "-w", weights, "--shard-size", "300", "-n", "1")
    run(*command, "--plan-only")
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"_plan.json"}
    output = run(*command, "--part", "2/3")
    assert "Shards of this part: 3" in output
    assert "has all vectors of part 2/3" in output
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"_plan.json", *(f"shard-00000{i}.parquet" for i in (1, 4, 7))}


def test_bad_rows(weights: str, tmp_path: Path) -> None:
    corpus = write_lines(tmp_path / "a.jsonl", {"text": "Good."}, "oops", {"id": 3})
    output = run("embed", corpus, tmp_path / "out", "-w", weights, code=1)
    assert "a.jsonl: 2 a.jsonl, line 2: not JSON" in output
    assert "a.jsonl, line 3: expected a text as 'text', it has 'id'" in output
    assert "leave them out with --skip-bad-rows" in output
    assert not (tmp_path / "out").exists()
    output = run("embed", corpus, tmp_path / "out", "-w", weights, "--skip-bad-rows")
    assert "Bad rows that are left out: 2" in output
    assert "a.jsonl, line 2: not JSON" in output
    assert read_table(tmp_path / "out").num_rows == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--part", "3"], "--part must be like 3/100, got '3'"),
        (["--engine", "spark"], "--engine must be one of local, ray, got 'spark'"),
        (
            ["--layers", "7"],
            "layers must be mix, mean, top, all or an index from 0 (the token layer) to 2 (the top), got 7",
        ),
        (["--unit", "word"], "unit must be one of document, sentence, token, got 'word'"),
        (
            ["--ray-address", "127.0.0.1:1"],
            "--ray-address is for --engine ray, got --engine local. Add --engine ray, or leave out --ray-address.",
        ),
        (
            ["--engine", "ray", "--ray-address", "auto", "--workers", "2"],
            "The Ray cluster at auto has its own number of processes. Leave out --workers.",
        ),
        (["--engine", "ray", "--ray-address", "127.0.0.1:1"], "Ray does not answer at 127.0.0.1:1"),
    ],
)
def test_bad_options(weights: str, tmp_path: Path, options: list[str], message: str) -> None:
    corpus = write_lines(tmp_path / "a.txt", *TEXTS)
    assert message in run("embed", corpus, tmp_path / "out", "-w", weights, *options, code=1)


def test_failed_shards_are_named(weights: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = write_lines(tmp_path / "a.txt", *TEXTS)
    command = ("embed", corpus, tmp_path / "out", "-w", weights, "-n", "1")

    def fail(*arguments: object) -> int:
        raise OSError("the disk is full")

    monkeypatch.setattr("spacy_elmo.embedding.workers.embed_shard", fail)
    output = run(*command, code=1)
    assert "1 of 1 shards failed" in output
    assert "shard-000000.parquet: the disk is full The same command tries them again." in output


def test_stopped(weights: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*arguments: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("spacy_elmo.embedding.workers.embed_shard", stop)
    corpus = write_lines(tmp_path / "a.txt", *TEXTS)
    output = run("embed", corpus, tmp_path / "out", "-w", weights, "-n", "1", code=130)
    assert "The same command finishes the work." in output


def test_missing_pyarrow_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    output = run("embed", write_lines(tmp_path / "a.txt", *TEXTS), tmp_path / "out", code=1)
    assert "needs pyarrow here" in output
    assert "`pip install pyarrow`, or as an extra: `pip install 'spacy-elmo[embed]'`" in output
