"""Exports of wikis in any language: pages, and which of them are redirects or disambiguation pages."""

import tracemalloc
from pathlib import Path
from xml.sax.saxutils import escape

import pytest

from spacy_elmo.corpora.mediawiki import (
    ARTICLE,
    CATEGORY,
    DEFAULT_SITE,
    ENGLISH_TEMPLATES,
    FILE,
    TEMPLATE,
    Page,
    find_disambiguation_templates,
    is_disambiguation,
    read_pages,
    read_site,
)

SAMPLES = Path(__file__).parents[2] / "assets" / "wikipedia_sample"
NAMES = '<namespace key="6">Datei</namespace><namespace key="8">MediaWiki</namespace><namespace key="10">Vorlage</namespace>'


def make_page(title: str, text: str, ns: int = 0) -> str:
    return f"<page><title>{title}</title><ns>{ns}</ns><revision><text>{escape(text)}</text></revision></page>"


def write_dump(path: Path, *pages: str, names: str = NAMES) -> Path:
    siteinfo = f"<siteinfo><namespaces>{names}</namespaces></siteinfo>"
    path.write_text(f"<mediawiki>{siteinfo}{''.join(pages)}</mediawiki>", encoding="utf8")
    return path


def find_templates(dump: Path) -> frozenset[str]:
    return find_disambiguation_templates(dump, read_site(dump))


@pytest.mark.parametrize("lang", ["de", "en", "zh"])
def test_site_of_the_samples(lang: str) -> None:
    site = read_site(SAMPLES / f"{lang}.xml")
    names = {"de": ("Beispiel", "sampledewiki"), "en": ("Sample", "samplewiki"), "zh": ("样本", "samplezhwiki")}
    assert (site.name, site.database, site.lang) == (*names[lang], lang)
    assert site.namespace_of("Image:A.jpg") == FILE
    assert site.namespace_of("Datei : A.jpg") == (FILE if lang == "de" else ARTICLE)
    assert site.namespace_of("Kategorie:A") == (CATEGORY if lang == "de" else ARTICLE)
    assert site.namespace_of("Datei") == ARTICLE


def test_export_without_site_info(tmp_path: Path) -> None:
    (tmp_path / "dump.xml").write_text(f"<mediawiki>{make_page('A', 'B')}</mediawiki>", encoding="utf8")
    site = read_site(tmp_path / "dump.xml")
    assert site == DEFAULT_SITE
    assert [(page.title, page.text, page.date) for page in read_pages(tmp_path / "dump.xml", site)] == [("A", "B", "")]


@pytest.mark.parametrize(
    ("text", "is_redirect"),
    [
        ("#REDIRECT [[A]]", True),
        ("#redirect: [[A]]", True),
        (" #WEITERLEITUNG[[A#B|C]]", True),
        ("#重定向 [[水磨]]", True),
        ("#перенаправление [[А]]", True),
        ("# [[A]] is first in a list.", False),
        ("#[[A]]", False),
        ("A #redirect [[B]]", False),
    ],
)
def test_redirects_in_any_language(tmp_path: Path, text: str, is_redirect: bool) -> None:
    (page,) = read_pages(write_dump(tmp_path / "dump.xml", make_page("X", text)), DEFAULT_SITE)
    assert page.is_redirect == is_redirect


@pytest.mark.parametrize(
    ("lang", "templates", "titles"),
    [
        ("de", {"begriffsklärung", "bkl"}, ["Bank", "Ton", "Schloss", "Feder (Begriffsklärung)"]),
        ("zh", {"消歧义", "disambig"}, ["杜鹃", "东风", "长安", "包袱 (消歧义)"]),
    ],
)
def test_disambiguation_in_the_samples(lang: str, templates: set[str], titles: list[str]) -> None:
    dump = SAMPLES / f"{lang}.xml"
    site, found = read_site(dump), find_templates(dump)
    assert found == templates
    articles = [page for page in read_pages(dump, site) if page.namespace == ARTICLE and not page.is_redirect]
    assert [page.title for page in articles if is_disambiguation(page, found)] == titles
    assert len(articles) == 13 + len(titles)


def test_templates_are_found_by_what_they_do(tmp_path: Path) -> None:
    pages = {
        "Vorlage:Mehrdeutig": "<div>A</div>\n__DISAMBIG__",
        "Vorlage:Name": "<noinclude>B</noinclude> {{mehrdeutig|Name}}",
        "Vorlage:Nachname": "{{ name\n|x=1}} and more",
        "Vorlage:Kurz": "#WEITERLEITUNG [[Vorlage:Nachname]]",
        "Vorlage:Doku": "<noinclude>__DISAMBIG__</noinclude> <nowiki>__DISAMBIG__</nowiki> <!-- __DISAMBIG__ -->",
        "Vorlage:Hinweis": "Not like {{Mehrdeutig}}",  # it only mentions it
        "Vorlage:Inhalt": "__NOTOC__",
    }
    written = [make_page(title, text, ns=TEMPLATE) for title, text in pages.items()]
    dump = write_dump(tmp_path / "dump.xml", make_page("Artikel", "__DISAMBIG__"), *written)
    assert find_templates(dump) == {"mehrdeutig", "name", "nachname", "kurz"}


def test_templates_that_an_older_wiki_lists(tmp_path: Path) -> None:
    links = "* [[Vorlage:Klärung]]\n* [[Template:Dab|x]]\n* [[Artikel]]"
    dump = write_dump(tmp_path / "dump.xml", make_page("MediaWiki:Disambiguationspage", links, ns=8))
    assert find_templates(dump) == {"klärung", "dab"}


def test_english_templates_are_for_exports_that_have_none(tmp_path: Path) -> None:
    assert find_templates(write_dump(tmp_path / "dump.xml", make_page("A", "B"))) == ENGLISH_TEMPLATES


@pytest.mark.parametrize(
    ("title", "text", "expected"),
    [
        ("A", "B {{Klärung}}", True),
        ("A", "B {{ klärung_neu | x }}", True),
        ("A", "B {{Klärung\n|x=1}}", True),
        ("A", "B __DISAMBIG__", True),
        ("A", "B __HOMONYMIE__", True),
        ("A (Klärung)", "B", True),
        ("A（klärung）", "B", True),
        ("A (Fluss)", "B {{Klärungswerk}} {{Disambig}} {{#if:x|klärung}}", False),
        ("Klärung", "B klärung", False),
    ],
)
def test_disambiguation_pages(title: str, text: str, expected: bool) -> None:
    page = Page(title, text, ARTICLE, is_redirect=False, date="")
    assert is_disambiguation(page, frozenset({"klärung", "klärung neu"})) == expected


def test_memory_does_not_grow_with_the_export(tmp_path: Path) -> None:
    peaks = []
    for n_pages in (30, 300):
        dump = write_dump(tmp_path / "dump.xml", *[make_page("Bridge", "A long text. " * 3000)] * n_pages)
        tracemalloc.start()
        assert sum(1 for _ in read_pages(dump, DEFAULT_SITE)) == n_pages
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0]


def test_progress_ends_at_the_size_of_the_file(tmp_path: Path) -> None:
    dump = write_dump(tmp_path / "dump.xml", *[make_page("A", "B" * 1000)] * 200)
    positions: list[int] = []
    assert len(list(read_pages(dump, DEFAULT_SITE, positions.append))) == 200
    assert positions == sorted(positions)
    assert positions[-1] == dump.stat().st_size
