"""Plans: every row is in one shard, bad rows are found, and nothing but the input decides."""

from pathlib import Path
from typing import Any

import pytest
from spacy.vocab import Vocab

from spacy_elmo.corpora import lines
from spacy_elmo.embedding.plan import PLAN_FILE, Plan, read_plan
from spacy_elmo.embedding.scan import make_plan, read_shard
from spacy_elmo.embedding.settings import EmbeddingSettings

from .corpora import TEXTS, write_lines

MODEL = {"weights": "abc"}


def plan_of(corpus: Path, **settings: Any) -> Plan:
    return make_plan(corpus, EmbeddingSettings(**settings), MODEL, lambda n_bytes: None)


def read_ids(corpus: Path, plan: Plan, **settings: Any) -> list[list[str]]:
    return [
        [row.id for row in read_shard(corpus, shard, EmbeddingSettings(**settings), Vocab())] for shard in plan.shards
    ]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """A directory with a large file, many small ones, and empty lines between."""
    directory = tmp_path / "corpus"
    write_lines(directory / "a.txt", "", *TEXTS, "", "")
    for i in range(5):
        write_lines(directory / "small" / f"{i}.jsonl", {"text": "Small.", "id": f"small {i}"}, "")
    return directory


@pytest.mark.parametrize("shard_size", [1, 7, 100, 500, 10_000])
def test_every_row_is_in_one_shard(corpus: Path, shard_size: int) -> None:
    plan = plan_of(corpus, shard_size=shard_size)
    ids = read_ids(corpus, plan, shard_size=shard_size)
    assert sum(ids, []) == [*(f"a.txt:{i + 2}" for i in range(30)), *(f"small {i}" for i in range(5))]
    assert [len(each) for each in ids] == [shard.n_rows for shard in plan.shards]
    assert all(shard.n_chars <= shard_size or shard.n_rows == 1 for shard in plan.shards)
    assert sum(shard.n_chars for shard in plan.shards) == sum(map(len, TEXTS)) + 30


def test_small_files_share_a_shard(corpus: Path) -> None:
    last = plan_of(corpus, shard_size=500).shards[-1]
    assert {piece.file for piece in last.pieces} >= {f"small/{i}.jsonl" for i in range(5)}


def test_parts_of_a_long_line_can_be_in_different_shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MAX_BYTES", 10)
    corpus = write_lines(tmp_path / "a.txt", "one two three four five", "six")
    plan = plan_of(corpus, shard_size=10)
    rows = [row for shard in plan.shards for row in read_shard(corpus, shard, EmbeddingSettings(), Vocab())]
    assert [(row.id, row.content) for row in rows] == [
        ("a.txt:1", "one two"),
        ("a.txt:1+1", "three"),
        ("a.txt:1+2", "four five"),
        ("a.txt:2", "six"),
    ]
    assert len(plan.shards) == 4


def test_plan_depends_on_the_input_alone(corpus: Path, tmp_path: Path) -> None:
    plan = plan_of(corpus, shard_size=100)
    again = plan_of(corpus, shard_size=100)
    assert plan == again
    plan.to_disk(tmp_path / "x")
    again.to_disk(tmp_path / "y")
    assert (tmp_path / "x" / PLAN_FILE).read_bytes() == (tmp_path / "y" / PLAN_FILE).read_bytes()
    assert read_plan(tmp_path / "x") == plan
    write_lines(corpus / "a.txt", "", *TEXTS[:-1], TEXTS[-1].replace("Ada", "Bob"))
    assert plan_of(corpus, shard_size=100).fingerprint != plan.fingerprint


def test_bad_rows_are_reported_with_file_and_line(tmp_path: Path) -> None:
    corpus = write_lines(tmp_path / "a.jsonl", {"text": "Good."}, "oops", *[{"id": i} for i in range(6)])
    message = r"a.jsonl: 7\na.jsonl, line 2: not JSON.*\na.jsonl, line 3: expected a text as 'text', it has 'id'\n"
    with pytest.raises(ValueError, match=message):
        plan_of(corpus)
    plan = plan_of(corpus, skip_bad_rows=True)
    assert (plan.n_bad_rows, len(plan.bad_rows), plan.shards[0].n_rows) == (7, 5, 1)
    assert read_ids(corpus, plan, skip_bad_rows=True) == [["a.jsonl:1"]]


@pytest.mark.parametrize(
    ("lines", "settings", "message"),
    [
        (["", " "], {}, "a.jsonl has no text to embed.$"),
        (["oops"], {"skip_bad_rows": True}, "a.jsonl has no text to embed. Bad rows:\na.jsonl, line 1: not JSON"),
        ([{"text": "a", "vector": [1]}], {}, "has a field 'vector', and .* writes a column of that name"),
        ([{"text": "a", "token": 1}], {"unit": "token"}, "has a field 'token'"),
        ([{"text": "a", "vector": None}], {}, "has a field 'vector'"),
        ([{"text": "a", "b": 1}], {"fields": ("b", "c")}, "No row has a field 'c', as --fields asks for. Fields: b."),
        (
            [{"text": "a", "kye": 1}],
            {"id_field": "key"},
            "No row has an id in a field 'key', as --id-field asks for. Correct the name, or leave out --id-field",
        ),
        (
            [{"text": "a", "id": 1}, {"text": "b", "key": None}],
            {"id_field": "key"},
            "No row has an id in a field 'key', as --id-field asks for. Correct the name, or leave out --id-field",
        ),
        (
            [{"text": "a", "\ud800": 1}],
            {},
            r"a field '\\ud800', and a column cannot have that name: .* Rename the field",
        ),
    ],
)
def test_corpora_that_are_refused(tmp_path: Path, lines: list[Any], settings: dict[str, Any], message: str) -> None:
    corpus = write_lines(tmp_path / "a.jsonl", *lines)
    with pytest.raises(ValueError, match=message):
        plan_of(corpus, **settings)


def test_not_all_rows_need_an_id(tmp_path: Path) -> None:
    corpus = write_lines(tmp_path / "a.jsonl", {"text": "a"}, {"text": "b", "key": 7})
    assert read_ids(corpus, plan_of(corpus, id_field="key"), id_field="key") == [["a.jsonl:1", "7"]]
    assert read_ids(corpus, plan_of(corpus)) == [["a.jsonl:1", "a.jsonl:2"]]


def test_names_with_surrogates_may_be_left_out(tmp_path: Path) -> None:
    corpus = write_lines(tmp_path / "a.jsonl", {"text": "a", "\ud800": 1, "b": 2})
    assert plan_of(corpus, fields=("b",)).fields == {"b": "int64"}


def test_file_that_changes_while_it_is_planned(tmp_path: Path) -> None:
    corpus = write_lines(tmp_path / "a.txt", *TEXTS)
    with pytest.raises(ValueError, match="changed while it was read"):
        make_plan(corpus, EmbeddingSettings(), MODEL, lambda n_bytes: write_lines(corpus, *TEXTS, "more") and None)


def test_file_that_changes_after_it_was_planned(tmp_path: Path) -> None:
    corpus = write_lines(tmp_path / "a.txt", *TEXTS)
    plan = plan_of(corpus)
    write_lines(corpus, *TEXTS[:-1], TEXTS[-1].upper())
    with pytest.raises(ValueError, match="shard-000000.parquet is not the one that was planned: a.txt changed in"):
        read_ids(corpus, plan)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text.replace('"n_rows": 30', '"n_rows": 31'), "was changed after it was written"),
        (lambda text: text[:-5], "is not a plan that `spacy elmo embed` wrote"),
        (lambda text: "[]", "expected an object"),
        (lambda text: text.replace('"format_version": 1', '"format_version": 2'), "written by a newer version"),
    ],
)
def test_plan_that_is_damaged(tmp_path: Path, change: Any, message: str) -> None:
    plan_of(write_lines(tmp_path / "a.txt", *TEXTS)).to_disk(tmp_path)
    path = tmp_path / PLAN_FILE
    path.write_text(change(path.read_text(encoding="utf8")), encoding="utf8")
    with pytest.raises(ValueError, match=message):
        read_plan(tmp_path)
