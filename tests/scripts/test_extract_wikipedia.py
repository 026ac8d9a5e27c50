"""From an export of a wiki to plain text."""

import bz2
import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import pytest

from scripts.extract_wikipedia import extract_paragraphs, extract_text, extract_wikipedia

from .script_runner import run_in_one_line

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "assets" / "wikipedia_sample" / "en.xml"

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


def test_paragraphs_are_split_at_block_markup() -> None:
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


@pytest.mark.parametrize("lang", ["de", "zh"])
def test_samples_in_other_languages(lang: str, tmp_path: Path) -> None:
    output = tmp_path / "text.txt"
    run_in_one_line(extract_wikipedia, SAMPLE.with_name(f"{lang}.xml"), output, "--lang", lang)
    text = output.read_text(encoding="utf8")
    assert not set("{}[]|*=#_<>") & set(text)
    assert not re.search(r"\ben:|Kategorie|分类|jpg|拼音|石頭|（", text)
    articles = text.split("\n\n")
    metadata = json.loads(output.with_suffix(".json").read_text(encoding="utf8"))
    assert metadata == {
        "dump": f"{lang}.xml",
        "site": {"de": "Beispiel", "zh": "样本"}[lang],
        "database": f"sample{lang}wiki",
        "url": f"https://{lang}.example.org/wiki/Main",
        "lang": lang,
        "newest": "2024-05-25",
        "articles": len(articles),
        "paragraphs": 2 * len(articles),
        "redirects": 2,
        "disambiguation_pages": 4,
        "pages_without_prose": 0,
    }
    assert len(articles) == 13
    first = {
        "de": "Eine Mühle ist ein Haus, in dem Korn zu Mehl gemahlen wird. Das Wasser des Baches treibt ein großes Rad, und "
        "das Rad dreht den Stein.",
        "zh": "水磨是用水力把粮食磨成面粉的工具。河水推动木轮，木轮带动石磨。",
    }
    assert articles[0].splitlines()[0] == first[lang]


@pytest.mark.parametrize(
    ("wikitext", "text"),
    [
        ("它是用-{zh-hans:石头;zh-hant:石頭}-造的一座桥。", "它是用石头造的一座桥。"),
        ("-{H|zh-cn:软件;zh-tw:軟體}-这是一个-{A|zh-cn:软件;zh-tw:軟體}-的名字。", "这是一个软件的名字。"),
        ("他姓-{余}-，不姓余，也不姓于，-{T|zh:余}-大家知道。", "他姓余，不姓余，也不姓于，大家知道。"),
        ("水磨（{{拼音|a}}，{{b}}）是用水力的工具。", "水磨是用水力的工具。"),
        ("水磨（{{拼音|a}}、又名水碾）是工具{{b}}，。", "水磨（又名水碾）是工具。"),
        ("[[档案:水磨.JPG|thumb|一张照片。真好看。]]水磨是用水力的工具。", "水磨是用水力的工具。"),
        ("水磨是用水力的工具。\n[[分類:建築]] [[分類:工具]]\n[[ja:水車]]", "水磨是用水力的工具。"),
        (
            "水磨是用水力的工具。[[星际旅行：航海家号|它]]不是，[[a:b]]也不是。",
            "水磨是用水力的工具。它不是，a:b也不是。",
        ),
        ("__目录__水磨是用水力的工具。", "水磨是用水力的工具。"),
        ("太短了。", ""),
        ("这一行很长，但是在任何地方都没有结束", ""),
    ],
)
def test_chinese_markup(wikitext: str, text: str) -> None:
    assert extract_paragraphs(wikitext) == ([text] if text else [])


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


def test_extract_wikipedia_as_a_command(tmp_path: Path) -> None:
    output = run_in_one_line(extract_wikipedia, SAMPLE, tmp_path / "new" / "text.txt", "--limit", "7")
    assert "7 articles of 27 paragraphs" in output
    assert "Left out: 1 redirects, 0 disambiguation pages" in output
    output = run_in_one_line(extract_wikipedia, SAMPLE, tmp_path / "new" / "text.txt", "--lang", "de")
    assert "The text is in the language 'en', as" in output
    missing, text = tmp_path / "none.xml", tmp_path / "text.txt"
    assert "There is no file" in run_in_one_line(extract_wikipedia, missing, text, code=1)
    assert not (tmp_path / "text.txt").exists()
