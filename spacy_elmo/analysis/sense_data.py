"""Texts with annotated word senses: JSON lines, and the XML of the evaluation framework of Raganato et al. (2017).

A line of JSON is a sentence. Its instances are spans of its tokens, counted as in spaCy:

    {"tokens": ["They", "play", "chess", "."],
     "instances": [{"start": 1, "end": 2, "text": "play", "lemma": "play", "pos": "VERB", "keys": ["play%2:33:00::"]}]}

"text" is optional. Where it is given, it must be the tokens of the instance, joined by spaces. "keys" are the senses that
are right, and can be any strings.

In the other format, the sentences are in NAME.data.xml and the keys in NAME.gold.key.txt beside it.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

from ..corpora.files import file_format, open_corpus_file
from ..corpora.lines import read_text_lines

XML_ENDING, KEY_ENDING = ".data.xml", ".gold.key.txt"

Entry = tuple[str, str]  # a lemma in lower case, and its part of speech


class Instance(NamedTuple):
    """An annotated use of a word or of several words.

    start, end (int): The span of its tokens.
    entry (Entry): Its entry in a dictionary: only senses of this entry are possible.
    keys (list[str]): The keys of its senses, at least one. Usually there is one.
    """

    start: int
    end: int
    entry: Entry
    keys: list[str]


class SenseSentence(NamedTuple):
    """A sentence.

    tokens (list[str]): Its tokens, at least one.
    instances (list[Instance]): Its annotated uses of words.
    """

    tokens: list[str]
    instances: list[Instance]


def read_senses(path: Path) -> Iterator[SenseSentence]:
    """Read the sentences of a file with annotated senses.

    path (Path): A .jsonl file, gzipped or not, or a .data.xml file with its .gold.key.txt file beside it.
    YIELDS (SenseSentence): The sentences.
    """
    if path.name.endswith(XML_ENDING):
        sentences = _read_xml(path, _read_keys(path.with_name(set_name(path) + KEY_ENDING)))
    elif file_format(path) == ".jsonl":
        sentences = _read_jsonl(path)
    else:
        raise ValueError(
            f"{path} should be a file of senses: its name should end in .jsonl, .jsonl.gz or {XML_ENDING}."
        )
    n_instances = 0
    for sentence in sentences:
        n_instances += len(sentence.instances)
        yield sentence
    if not n_instances:
        raise ValueError(f"{path} has no annotated sense.")


def set_name(path: Path) -> str:
    """RETURNS (str): What the data of a file are called: its name without the ending."""
    return path.name.removesuffix(".gz").removesuffix(".jsonl").removesuffix(XML_ENDING)


def _read_jsonl(path: Path) -> Iterator[SenseSentence]:
    for number, line, _ in read_text_lines(path):
        if line:
            yield _parse_sentence(line, f"{path}, line {number}")


def _parse_sentence(line: str, where: str) -> SenseSentence:
    try:
        data = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{where}: not JSON: {error}.") from None
    tokens = data.get("tokens") if isinstance(data, dict) else None
    if not tokens or not isinstance(tokens, list) or not all(isinstance(each, str) and each.strip() for each in tokens):
        raise ValueError(f'{where}: expected an object with "tokens", a list of words, got {line!r:.80}.')
    instances = data.get("instances", [])
    if not isinstance(instances, list):
        raise ValueError(f'{where}: "instances" should be a list, got {instances!r:.80}.')
    return SenseSentence(tokens, [_parse_instance(instance, tokens, where) for instance in instances])


def _parse_instance(data: Any, tokens: list[str], where: str) -> Instance:
    wanted: dict[str, type] = {"start": int, "end": int, "lemma": str, "pos": str, "keys": list}
    if not isinstance(data, dict) or not all(isinstance(data.get(name), kind) for name, kind in wanted.items()):
        raise ValueError(f"{where}: an instance should have {', '.join(wanted)}, got {data!r:.120}.")
    start, end, keys = data["start"], data["end"], data["keys"]
    if not keys or not all(isinstance(key, str) for key in keys):
        raise ValueError(f'{where}: the "keys" of an instance should be a list of senses, got {keys!r:.80}.')
    if not 0 <= start < end <= len(tokens):
        raise ValueError(
            f"{where}: the instance {data!r:.120} is no span of its sentence, which has {len(tokens)} tokens."
        )
    found = " ".join(tokens[start:end])
    if data.get("text", found) != found:
        raise ValueError(
            f"{where}: the instance {data['text']!r} does not match its sentence: tokens {start} to {end} are {found!r}."
        )
    return Instance(start, end, (data["lemma"].lower(), data["pos"]), keys)


def _read_keys(path: Path) -> dict[str, list[str]]:
    """RETURNS (dict[str, list[str]]): The keys of each instance, by its id."""
    if not path.is_file():
        raise ValueError(f"There is no file {path} with the keys of the instances.")
    rows = [(number, line.split()) for number, line, _ in read_text_lines(path) if line]
    for number, row in rows:
        if len(row) < 2:
            raise ValueError(f"{path}, line {number}: expected the id of an instance and its keys, got {row!r:.80}.")
    return {name: keys for _, (name, *keys) in rows}


def _read_xml(path: Path, keys: dict[str, list[str]]) -> Iterator[SenseSentence]:
    unused = set(keys)
    with open_corpus_file(path) as file:
        try:
            for _, element in ElementTree.iterparse(file):
                if element.tag == "sentence":
                    sentence = _parse_element(element, keys, str(path), unused)
                    if sentence.tokens:
                        yield sentence
                    element.clear()
        except ElementTree.ParseError as error:
            raise ValueError(f"{path} is not valid XML: {error}.") from None
    if unused:
        raise ValueError(
            f"{len(unused):,} of {len(keys):,} keys belong to no instance of {path}, such as that of {min(unused)!r}. Are the "
            "two files of the same data?"
        )


def _parse_element(
    element: ElementTree.Element, keys: dict[str, list[str]], where: str, unused: set[str]
) -> SenseSentence:
    tokens: list[str] = []
    instances: list[Instance] = []
    for child in element:
        start = len(tokens)
        tokens += (child.text or "").split()  # of several words, or none
        if child.tag != "instance":
            continue
        name, lemma, pos = (child.get(attribute) for attribute in ("id", "lemma", "pos"))
        if name is None or lemma is None or pos is None or len(tokens) == start:
            raise ValueError(
                f"{where}: an instance should have an id, a lemma, a pos and a text, got {child.attrib!r}."
            )
        if name not in keys:
            raise ValueError(
                f"{where}: the instance {name!r} has no line in the file of keys. Are the two of the same data?"
            )
        unused.discard(name)
        instances.append(Instance(start, len(tokens), (lemma.lower(), pos), keys[name]))
    return SenseSentence(tokens, instances)
