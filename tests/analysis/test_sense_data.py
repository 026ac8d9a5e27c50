"""Texts with annotated senses, in both formats, and what is wrong with some."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from spacy_elmo.analysis.sense_data import Instance, SenseSentence, read_senses, set_name

PLAY: dict[str, Any] = {"start": 1, "end": 2, "lemma": "Play", "pos": "VERB", "keys": ["play%2:33:00::"]}

XML = """<?xml version="1.0" encoding="UTF-8" ?>
<corpus lang="en"><text id="d0">
<sentence id="d0.s0">
<wf lemma="they" pos="PRON">They</wf>
<instance id="d0.s0.t0" lemma="take_place" pos="VERB">took place</instance>
<wf lemma="&amp;" pos="CONJ">&amp;</wf>
<instance id="d0.s0.t1" lemma="end" pos="VERB">ended</instance>
</sentence>
<sentence id="d0.s1"></sentence>
<sentence id="d0.s2"><wf lemma="so" pos="ADV">So</wf></sentence>
</text></corpus>
"""
KEYS = "d0.s0.t0 take_place%2:30:00::\nd0.s0.t1 end%2:42:00:: end%2:30:01::\n"


def write_jsonl(path: Path, *sentences: object) -> Path:
    path.write_text("\n".join(map(json.dumps, sentences)) + "\n", encoding="utf8")
    return path


def write_xml(directory: Path, xml: str = XML, keys: str = KEYS) -> Path:
    (directory / "one.gold.key.txt").write_text(keys, encoding="utf8")
    path = directory / "one.data.xml"
    path.write_text(xml, encoding="utf8")
    return path


def test_json_lines(tmp_path: Path) -> None:
    sentence = {"tokens": ["They", "play", "chess"], "instances": [PLAY | {"text": "play"}]}
    path = write_jsonl(tmp_path / "a.jsonl", sentence, {"tokens": ["So"]})
    expected = [
        SenseSentence(["They", "play", "chess"], [Instance(1, 2, ("play", "VERB"), ["play%2:33:00::"])]),
        SenseSentence(["So"], []),
    ]
    assert list(read_senses(path)) == expected
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(path.read_bytes()))
    assert list(read_senses(tmp_path / "b.jsonl.gz")) == expected


def test_xml_with_keys(tmp_path: Path) -> None:
    first, second = read_senses(write_xml(tmp_path))
    assert first.tokens == ["They", "took", "place", "&", "ended"]
    assert first.instances == [
        Instance(1, 3, ("take_place", "VERB"), ["take_place%2:30:00::"]),
        Instance(4, 5, ("end", "VERB"), ["end%2:42:00::", "end%2:30:01::"]),
    ]
    assert second == (["So"], [])


def test_names_of_data() -> None:
    assert [set_name(Path(name)) for name in ("a/x.jsonl", "x.jsonl.gz", "x.data.xml")] == ["x", "x", "x"]


@pytest.mark.parametrize(
    ("sentence", "message"),
    [
        ({"tokens": []}, r'a.jsonl, line 1: expected an object with "tokens", a list of words, got'),
        ({"tokens": ["a", " "]}, r'line 1: expected an object with "tokens"'),
        (["a"], r'line 1: expected an object with "tokens"'),
        ({"tokens": ["a"], "instances": {}}, r'line 1: "instances" should be a list'),
        (
            {"tokens": ["a", "b"], "instances": [{"start": 0}]},
            "an instance should have start, end, lemma, pos, keys, got",
        ),
        (
            {"tokens": ["a", "b"], "instances": [PLAY | {"keys": []}]},
            'the "keys" of an instance should be a list of senses',
        ),
        ({"tokens": ["a"], "instances": [PLAY]}, "is no span of its sentence, which has 1 tokens"),
        (
            {"tokens": ["They", "win", "it"], "instances": [PLAY | {"text": "play"}]},
            "line 1: the instance 'play' does not match its sentence: tokens 1 to 2 are 'win'",
        ),
        ({"tokens": ["a"]}, "a.jsonl has no annotated sense"),
    ],
)
def test_lines_that_cannot_be_used(tmp_path: Path, sentence: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        list(read_senses(write_jsonl(tmp_path / "a.jsonl", sentence)))


def test_files_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("\n{", encoding="utf8")
    with pytest.raises(ValueError, match=r"a.jsonl, line 2: not JSON"):
        list(read_senses(tmp_path / "a.jsonl"))
    (tmp_path / "a.jsonl").write_text("", encoding="utf8")
    with pytest.raises(ValueError, match=r"a.jsonl has no annotated sense"):
        list(read_senses(tmp_path / "a.jsonl"))
    with pytest.raises(ValueError, match=r"a.txt should be a file of senses: its name should end in .jsonl"):
        list(read_senses(tmp_path / "a.txt"))
    with pytest.raises(ValueError, match=r"nothing.jsonl cannot be read"):
        list(read_senses(tmp_path / "nothing.jsonl"))


@pytest.mark.parametrize(
    ("xml", "keys", "message"),
    [
        (XML[:200], KEYS, "one.data.xml is not valid XML"),
        (XML, KEYS.splitlines()[0], "the instance 'd0.s0.t1' has no line in the file of keys"),
        (XML, f"{KEYS}d1.s0.t0 a%1:00:00::", "1 of 3 keys belong to no instance of .*such as that of 'd1.s0.t0'"),
        (XML, f"{KEYS}d1.s0.t0", "one.gold.key.txt, line 3: expected the id of an instance and its keys, got"),
        (
            XML.replace(">ended<", "><"),
            KEYS,
            "an instance should have an id, a lemma, a pos and a text, got .*d0.s0.t1",
        ),
        (XML.replace(' lemma="end"', ""), KEYS, "an instance should have an id, a lemma, a pos and a text"),
    ],
)
def test_xml_that_cannot_be_used(tmp_path: Path, xml: str, keys: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        list(read_senses(write_xml(tmp_path, xml, keys)))


def test_xml_without_keys(tmp_path: Path) -> None:
    path = write_xml(tmp_path)
    (tmp_path / "one.gold.key.txt").unlink()
    with pytest.raises(ValueError, match=r"There is no file .*one.gold.key.txt with the keys of the instances"):
        list(read_senses(path))
