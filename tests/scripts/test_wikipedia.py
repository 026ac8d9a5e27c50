"""From an export of a wiki to text for dev, test and training, and from a model to what the package carries."""

import bz2
import gzip
import os
import shutil
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import pytest
import typer
from typer.testing import CliRunner

from scripts.bundle_model import bundle_model
from scripts.extract_wikipedia import extract_paragraphs, extract_text, extract_wikipedia, read_pages
from scripts.split_articles import choose_part, read_articles, split_articles, split_files
from spacy_elmo.bilm.weights import CONFIG, TENSORS
from spacy_elmo.pretraining.language_model import LanguageModel
from spacy_elmo.pretraining.model_files import SOFTMAX, VOCABULARY, load_language_model, save_language_model
from spacy_elmo.pretraining.softmax import Softmax
from spacy_elmo.pretraining.vocabulary import count_words

from ..helpers import random_bilm

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "assets" / "wikipedia_sample" / "dump.xml"

PROSE = "A bridge is a road over a river, or over another road."
OTHER = "Its oldest kind is a tree that has fallen over."


def make_page(title: str, text: str, *, ns: str = "<ns>0</ns>", more: str = "") -> str:
    text = f'<text xml:space="preserve">{escape(text)}</text>'
    return f"<page><title>{title}</title>{ns}<id>1</id>{more}<revision><id>2</id>{text}</revision></page>"


def write_dump(path: Path, *pages: str, version: str = "0.11", names: str = "") -> Path:
    siteinfo = f"<siteinfo><namespaces>{names}</namespaces></siteinfo>"
    opening = f'<mediawiki xmlns="http://www.mediawiki.org/xml/export-{version}/" version="{version}">'
    path.write_text(f"{opening}{siteinfo}{''.join(pages)}</mediawiki>", encoding="utf8")
    return path


def extract(dump: Path, **options: int) -> str:
    output = dump.with_name("text.txt")
    extract_text(dump, output, **options)
    return output.read_text(encoding="utf8")


# From wikitext to paragraphs


@pytest.mark.parametrize(
    ("wikitext", "text"),
    [
        ("'''Ada''' wrote ''the first program'' in '''''1843'''''.", "Ada wrote the first program in 1843."),
        ("This is ''Emma'''s first chapter, and a long one.", "This is Emma's first chapter, and a long one."),
        ("He knew that L'''amour'' is a book of some kind.", "He knew that L'amour is a book of some kind."),
        ("It's '''bold''' and it's ''italic'', isn't it, Bob?", "It's bold and it's italic, isn't it, Bob?"),
        ("A [[bridge]] of [[stone|cut stones]] over [[river]]s.", "A bridge of cut stones over rivers."),
        ("See [[:Category:Liquids]], [[Water#Ice|ice]] and more.", "See Category:Liquids, ice and more."),
        (
            "A computer stores an [[image]] and a [[File|file]] as numbers.",
            "A computer stores an image and a file as numbers.",
        ),
        ("A link with ''[[Emma (book)|'''Emma''']]'' in two styles.", "A link with Emma in two styles."),
        ("More about it is on [http://example.org ''this'' page] [http://a.org].", "More about it is on this page."),
        (
            "A road<ref name=a>B [[c]]. {{d}}</ref> ends<ref name=a /> here, mostly, they say.",
            "A road ends here, mostly, they say.",
        ),
        ("Ada ({{lang|x|y}}; {{IPA|z}}) was a countess, it is said.", "Ada was a countess, it is said."),
        ("Ada ({{IPA|z}}; born 1815, {{age}}) was a countess.", "Ada (born 1815) was a countess."),
        ("Ada (once ({{a}})) was a countess, it is said.", "Ada (once) was a countess, it is said."),
        ("Ada {{a}}, {{b}}, and then Bob {{c}} wrote all of it {{d}}.", "Ada, and then Bob wrote all of it."),
        ("Calling f() or g(x) changes nothing at all, ever.", "Calling f() or g(x) changes nothing at all, ever."),
        ("Bread &amp; butter&nbsp;cost 5&#8211;6 &#x20AC; a day.", "Bread & butter cost 5–6 € a day."),
        ("If a < b and b > c, nobody knows <!-- yes -->more.", "If a < b and b > c, nobody knows more."),
        (
            "The sum <math>a<b</math> of H<sub>2</sub>O is <small>less</small> than that.",
            "The sum of H2O is less than that.",
        ),
        (
            "One line of a paragraph,\nand another one.<br />And more.",
            "One line of a paragraph, and another one. And more.",
        ),
        ("__NOTOC__The method __init__ is called by Python.", "The method __init__ is called by Python."),
        (
            "{{Box|a={{b|{{c}}\n|d=[[e|f]]}}\n}}\nThe box above it is to be left out.",
            "The box above it is to be left out.",
        ),
        ("<nowiki>[[So]]</nowiki> is not shown. It is broken.", ""),
    ],
)
def test_markup_inside_a_paragraph(wikitext: str, text: str) -> None:
    assert extract_paragraphs(wikitext) == ([text] if text else [])


@pytest.mark.parametrize(
    "markup",
    [
        "== A heading. It has a sentence in it. ==",
        "* An item of a list. It has two sentences.\n** And one below it. It has two as well.",
        "# An item of a list. It has two sentences.",
        "; A term : And what it means. It is explained.",
        ": An indented line. It has two sentences.",
        "<ul><li>An item in HTML. It has two sentences.</li></ul>",
        "{| class=wikitable\n! Head. It is one.\n|-\n| A cell. It has two sentences.\n{|\n| A table in it. So.\n|}\n|}",
        "<table><tr><td>A cell in HTML. It has two sentences.</td></tr></table>",
        "[[File:A.jpg|thumb|A caption with [[a|link]]. It has two sentences.]]",
        "[[image:A.jpg|A caption of an image. It has two sentences.]]",
        "[[Category:Bridges. Of all kinds. And many more]]",
        "<gallery>\nFile:A.jpg|A caption. It has two sentences.\n</gallery>",
        "<!-- A comment. It has two\n\nsentences of its own. -->",
        "<references>\n<ref name=a>A source. It has two sentences.</ref>\n</references>",
        "----",
        "Too short. Really.",
        "A line that is long enough but ends nowhere",
        "A broken {{template | that is never closed. It has two sentences.",
        "A broken [[link that is never closed. It has two sentences.",
        "A broken <ref name=a>note that is never closed. So.",
        "| the rest of a table that was broken. It has two sentences.",
    ],
)
def test_what_is_not_prose_is_dropped(markup: str) -> None:
    assert extract_paragraphs(markup) == []
    assert extract_paragraphs(f"{PROSE}\n\n{markup}\n\n{OTHER}") == [PROSE, OTHER]


def test_paragraphs_are_broken_where_they_are_shown_so() -> None:
    for between in ("\n\n", "\n== More ==\n", "\n* An item.\n", "\n----\n", "<ul><li>a</li></ul>", "</p><p>"):
        wikitext = f"<p>{PROSE}{between}{OTHER}</p>" if "<p>" in between else PROSE + between + OTHER
        assert extract_paragraphs(wikitext) == [PROSE, OTHER], between


# From an export to text


def test_only_articles_are_extracted(tmp_path: Path) -> None:
    dump = write_dump(
        tmp_path / "dump.xml",
        make_page("Bridge", f"{PROSE}\n\n{OTHER}"),
        make_page("Bridges", f"{PROSE}", more='<redirect title="Bridge" />'),
        make_page("Brigde", f"#redirect [[Bridge]]\n\n{PROSE}"),
        make_page("Talk:Bridge", PROSE, ns="<ns>1</ns>"),
        make_page("Bridge (disambiguation)", PROSE),
        make_page("Spring", f"{PROSE}\n{{{{Disambig}}}}"),
        make_page("Summer", f"{PROSE}\n{{{{human name disambiguation|a}}}}"),
        make_page("Empty", "{{stub}}"),
        make_page("Tree", f"{OTHER} {{{{disambiguation needed|date=May 2020}}}}"),
    )
    assert extract(dump) == f"{PROSE}\n{OTHER}\n\n{OTHER}\n"
    assert extract(dump, limit=1) == f"{PROSE}\n{OTHER}\n"


def test_names_of_namespaces_are_those_of_the_export(tmp_path: Path) -> None:
    names = '<namespace key="1">Diskussion</namespace><namespace key="6">Datei</namespace>'
    page = make_page("Brücke", f"[[Datei:A.jpg|A caption. It has two sentences.]]\n{PROSE}", ns="")
    talk = make_page("Diskussion:Brücke", OTHER, ns="")  # old exports do not say where a page is
    article = make_page("Diskussion", OTHER, ns="")
    dump = write_dump(tmp_path / "dump.xml", page, talk, article, version="0.3", names=names)
    assert extract(dump) == f"{PROSE}\n\n{OTHER}\n"


def test_the_last_revision_counts(tmp_path: Path) -> None:
    page = make_page("Bridge", PROSE, more=f"<revision><text>{OTHER}</text></revision>")
    assert extract(write_dump(tmp_path / "dump.xml", page)) == f"{PROSE}\n"


def test_sample_is_extracted_the_same_however_it_is_compressed(tmp_path: Path) -> None:
    data = SAMPLE.read_bytes()
    cut = len(data) // 2
    forms = {
        "dump.xml": data,
        "dump.xml.gz": gzip.compress(data),
        "dump.xml.bz2": bz2.compress(data),
        "multistream.xml.bz2": bz2.compress(data[:cut]) + bz2.compress(data[cut:]),
    }
    texts = set()
    for name, content in forms.items():
        (tmp_path / name).write_bytes(content)
        texts.add(extract(tmp_path / name))
    (text,) = texts
    articles = text.split("\n\n")
    assert len(articles) == 58
    assert articles[0] == (
        "A stone bridge is a bridge that is built of cut stones. Its weight holds it together: every stone of an arch leans "
        "on the next one.\n"
        "The oldest kind has one arch only. Longer ones have three or more, and pillars that stand in the water.\n"
        "First a frame of wood is put up. The stones are laid on it from both sides, and the last one, the keystone, closes "
        "the arch. Then the frame is taken away – and the bridge stands."
    )
    assert not set("{}[]|*=#_") & set(text)
    # The paragraphs that were wrapped into markup come out as they were.
    source = set((ROOT / "assets" / "sample" / "train.txt").read_text(encoding="utf8").splitlines())
    assert sum(line in source for line in text.splitlines()) == 200


def test_memory_does_not_grow_with_the_export(tmp_path: Path) -> None:
    peaks = []
    for n_pages in (30, 300):
        dump = write_dump(tmp_path / "dump.xml", *[make_page("Bridge", f"{PROSE} " * 1000)] * n_pages)
        tracemalloc.start()
        assert sum(1 for _ in read_pages(dump)) == n_pages
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0]


def cut_off(data: bytes) -> bytes:
    return data[: 2 * len(data) // 3]


@pytest.mark.parametrize(
    ("name", "damage", "message"),
    [
        ("a.xml", cut_off, r"damaged after \d+ pages, the last of which is '.+': .* cut off\? It has [\d,]+ bytes"),
        ("a.xml.gz", lambda data: cut_off(gzip.compress(data)), r"after \d+ pages, .*: Compressed file ended before"),
        # One block of bzip2 is larger than the sample.
        ("a.xml.bz2", lambda data: cut_off(bz2.compress(data)), "not a MediaWiki export, or a damaged one: Compressed"),
        (
            "b.xml.bz2",
            lambda data: bz2.compress(data[:50_000]) + cut_off(bz2.compress(data[50_000:])),
            r"after \d+ pages, .*: Compressed file ended before the end",
        ),
        ("c.xml.bz2", lambda data: bz2.compress(data[:50_000]), r"after \d+ pages, .*: no element found"),
        ("d.xml", lambda data: data[:300], "damaged before its first page"),
        ("e.xml", lambda _: b"<html><body>404</body></html>", "it begins with <html>, not <mediawiki>"),
        ("f.xml.bz2", lambda _: b"Not found", "is not a MediaWiki export, or a damaged one: syntax error"),
        ("g.xml", lambda _: b"", "is not a MediaWiki export, or a damaged one: no element found"),
        ("h.xml", lambda _: b"<mediawiki></mediawiki>", "There is no article with a paragraph of prose in .*h.xml"),
    ],
)
def test_bad_exports_are_refused(tmp_path: Path, name: str, damage: Callable[[bytes], bytes], message: str) -> None:
    dump, output = tmp_path / name, tmp_path / "text.txt"
    dump.write_bytes(damage(SAMPLE.read_bytes()))
    output.write_text("old")
    with pytest.raises(ValueError, match=message):
        extract_text(dump, output)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([name, "text.txt"])
    assert output.read_text() == "old"


def test_an_export_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dump, really_open = write_dump(tmp_path / "dump.xml", make_page("Bridge", PROSE)), Path.open

    def refuse(path: Path, *arguments: Any, **settings: Any) -> Any:
        if path == dump:
            raise PermissionError(13, "Permission denied")
        return really_open(path, *arguments, **settings)

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(ValueError, match=r"dump\.xml cannot be read: .*Permission denied"):
        extract_text(dump, tmp_path / "text.txt")


def call(script: Callable[..., None], *arguments: str | Path) -> tuple[int, str]:
    """Run a script's command, and say its exit code and what it printed, on one line."""
    app = typer.Typer()
    app.command()(script)
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return result.exit_code, " ".join(result.output.split())


def test_extract_wikipedia_as_a_command(tmp_path: Path) -> None:
    code, output = call(extract_wikipedia, SAMPLE, tmp_path / "new" / "text.txt", "--limit", "7")
    assert (code, "7 articles of 27 paragraphs" in output) == (0, True), output
    code, output = call(extract_wikipedia, tmp_path / "none.xml", tmp_path / "text.txt")
    assert code == 1
    assert "There is no file" in output
    assert not (tmp_path / "text.txt").exists()


# Articles to train on, and articles that are held out


def write_articles(path: Path, n_articles: int) -> list[str]:
    articles = [f"Article {i} of {path.name}.\nIts second line." for i in range(n_articles)]
    text = "\n\n\n".join(articles)  # it does not matter how many empty lines there are
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return articles


@pytest.mark.parametrize("every", [3, 4, 5, 7, 25, 125, 250])
def test_every_article_is_in_one_part_in_order(tmp_path: Path, every: int) -> None:
    first = write_articles(tmp_path / "a.txt", 260)
    second = write_articles(tmp_path / "b.txt.gz", 2 * every + 1)
    counts = split_files([tmp_path / "a.txt", tmp_path / "b.txt.gz"], tmp_path / "out", every=every)
    expected: dict[str, list[str]] = {"train": [], "dev": [], "test": []}
    for articles in (first, second):
        for number, article in enumerate(articles):
            expected[choose_part(number, every)].append(article)
    for part, articles in expected.items():
        found = ["\n".join(lines) for lines in read_articles(tmp_path / "out" / f"{part}.txt")]
        assert found == articles
        assert counts[part] == len(articles)
    parts = [choose_part(number, every) for number in range(every)]
    assert (parts.count("dev"), parts.count("test")) == (1, 1)


def test_articles_of_the_bundled_model_are_held_out() -> None:
    held_out = {number: choose_part(number, 250) for number in range(500) if choose_part(number, 250) != "train"}
    assert held_out == {7: "dev", 132: "test", 257: "dev", 382: "test"}


@pytest.mark.parametrize(
    ("n_articles", "every", "message"),
    [
        (0, 250, "There are no articles in .*a.txt: nothing but empty lines"),
        (7, 250, "too few articles, 7, for a dev and a test part. Use --every 7 or less"),
        (100, 250, "too few articles, 100, for a test part. Use --every 100 or less"),
        (2, 3, "too few articles, 2, for a test part. At least 3 are needed"),
    ],
)
def test_too_few_articles(tmp_path: Path, n_articles: int, every: int, message: str) -> None:
    write_articles(tmp_path / "a.txt", n_articles)
    with pytest.raises(ValueError, match=message):
        split_files([tmp_path / "a.txt"], tmp_path / "out", every=every)
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", None, "a.txt cannot be read: .*No such file"),
        ("a.txt", b"caf\xe9", "a.txt is not UTF-8"),
        ("a.txt.gz", b"plain", "a.txt.gz cannot be read: Not a gzipped file"),
        ("a.txt.gz", gzip.compress(b"one\n\n" * 999)[:-20], "a.txt.gz cannot be read: Compressed file ended"),
    ],
)
def test_texts_that_cannot_be_read(tmp_path: Path, name: str, content: bytes | None, message: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        split_files([tmp_path / name], tmp_path / "out", every=3)
    assert not (tmp_path / "out").exists()


def test_articles_are_not_split_over_themselves(tmp_path: Path) -> None:
    write_articles(tmp_path / "train.txt", 9)
    before = (tmp_path / "train.txt").read_bytes()
    with pytest.raises(ValueError, match=r"train\.txt is in .*, which is to be replaced"):
        split_files([tmp_path / "train.txt"], tmp_path, every=3)
    assert (tmp_path / "train.txt").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["train.txt"]


def test_split_articles_as_a_command(tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt"):
        write_articles(tmp_path / name, 9)
    arguments = (tmp_path / "a.txt", tmp_path / "b.txt", tmp_path / "out")
    code, output = call(split_articles, *arguments, "--every", "9")
    assert (code, "14 train, 2 dev, 2 test articles" in output) == (0, True), output
    code, output = call(split_articles, *arguments)
    assert (code, "Use --every 9 or less" in output) == (1, True), output
    code, output = call(split_articles, *arguments, "--every", "2")
    assert code == 2  # nothing would be left to train on


# What the package carries


def save_model(directory: Path, seed: int) -> Path:
    bilm = random_bilm(seed)
    vocabulary = count_words([["a", "b"]], max_size=10)
    softmax = Softmax(len(vocabulary), bilm.config.projection).initialize(seed, vocabulary.counts)
    save_language_model(LanguageModel(bilm, softmax), vocabulary, directory)
    return directory


def test_bundle_model_replaces_the_model_and_keeps_its_card(tmp_path: Path) -> None:
    output = tmp_path / "bundle"
    bundle_model(save_model(tmp_path / "old", 0), output)
    (output / "README.md").write_text("a card")
    before = (output / TENSORS).read_bytes()
    bundle_model(save_model(tmp_path / "new", 1), output)
    assert (output / TENSORS).read_bytes() != before
    load_language_model(output)
    assert {path.name for path in output.iterdir()} == {CONFIG, TENSORS, SOFTMAX, VOCABULARY, "README.md"}
    assert (output / "README.md").read_text() == "a card"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bundle", "new", "old"]


def test_bundle_model_keeps_the_files_of_others(tmp_path: Path) -> None:
    output = tmp_path / "bundle"
    output.mkdir()
    (output / "README.md").write_text("a card")
    (output / "thesis.txt").write_text("years of work")
    with pytest.raises(SystemExit):
        bundle_model(save_model(tmp_path / "new", 1), output)
    assert {path.name: path.read_text() for path in output.iterdir()} == {
        "README.md": "a card",
        "thesis.txt": "years of work",
    }


KILLED = """
import os, shutil, sys
from pathlib import Path
from scripts.bundle_model import bundle_model

stop = int(sys.argv[3])
n_calls = 0

def killing(function):
    def wrapped(*args, **kwargs):
        global n_calls
        n_calls += 1
        if n_calls > stop:
            os._exit(9)
        return function(*args, **kwargs)
    return wrapped

# All that changes a name or a file behind the draft.
Path.rename = killing(Path.rename)
shutil.copy2 = killing(shutil.copy2)
shutil.rmtree = killing(shutil.rmtree)
bundle_model(Path(sys.argv[1]), Path(sys.argv[2]))
"""


@pytest.mark.slow
def test_bundle_model_loses_nothing_when_it_is_killed(tmp_path: Path) -> None:
    old, new, output = save_model(tmp_path / "old", 0), save_model(tmp_path / "new", 1), tmp_path / "bundle"
    models = {}
    for source in (old, new):
        bundle_model(source, output)
        models[(output / TENSORS).read_bytes()] = source
    for stop in range(4):
        shutil.rmtree(output)
        bundle_model(old, output)
        (output / "README.md").write_text("a card")
        command = [sys.executable, "-W", "ignore", "-c", KILLED, str(new), str(output), str(stop)]
        result = subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})
        assert result.returncode == 9
        bundle_model(new, output)  # first puts back what had stepped aside
        assert models[(output / TENSORS).read_bytes()] == new
        assert (output / "README.md").read_text() == "a card"
