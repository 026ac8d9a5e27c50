"""The pages of a MediaWiki export, in any language: what is an article is decided by the export itself, not by English names."""

import bz2
import gzip
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast
from xml.etree.ElementTree import Element, ParseError, iterparse

# Namespaces by their keys, which are the same in all wikis. An export lists its names for them; these always work.
ARTICLE, FILE, MESSAGE, TEMPLATE, CATEGORY = 0, 6, 8, 10, 14
NAMESPACES = {"file": FILE, "image": FILE, "mediawiki": MESSAGE, "template": TEMPLATE, "category": CATEGORY}

# The word differs from language to language: #REDIRECT, #WEITERLEITUNG, #重定向.
REDIRECT = re.compile(r"\s*#\w+\s*:?\s*\[\[([^\]|#]+)")

# A page with one of these switches is a disambiguation page. The first works in all wikis, the others in some:
# https://github.com/wikimedia/mediawiki-extensions-Disambiguator, Disambiguator.i18n.magic.php
SWITCH = re.compile(
    "__(?:DISAMBIG|BEGRIFFSKLÄRUNG|DISAMBIGUACIÓN|DISAMBIGUACION|HOMONYMIE|HOMÓNIMOS|ROZCESTNÍK|TÄPSUSTUS"
    "|ПОЈАСНУВАЊЕ|توضيح|曖昧さ回避|消歧义|消歧義|동음이의)__"
)
DISAMBIGUATIONS_PAGE = "disambiguationspage"  # a message that lists templates, in exports before 2013
CALL = re.compile(r"\{\{\s*([^|{}#:<\n]+?)\s*(?:\||\}\}|\n)")
LINK = re.compile(r"\[\[([^\]|#]+)")
NOT_INCLUDED = re.compile(
    r"<noinclude>.*?(?:</noinclude>|$)|<nowiki>.*?</nowiki>|<!--.*?-->", re.DOTALL | re.IGNORECASE
)
PARENTHESES = re.compile(r"[(（]([^()（）]+)[)）]$")
# For exports without templates.
ENGLISH_TEMPLATES = frozenset(
    {"disambig", "disambiguation", "disambiguation page", "disamb", "dab", "hndis", "geodis", "mathdab"}
    | {"human name disambiguation", "disambiguation cleanup"}
)

Progress = Callable[[int], None]


@dataclass(frozen=True)
class Site:
    """What an export says about its wiki.

    name, database, url, lang (str): For example "Wikipedia", "dewiki", the address of the main page, and "de"; each may be empty.
    namespaces (dict[str, int]): The names of namespaces, in lower case, with their keys.
    """

    name: str
    database: str
    url: str
    lang: str
    namespaces: dict[str, int]

    def namespace_of(self, title: str) -> int:
        """RETURNS (int): The key of the namespace that a title names, or that of articles."""
        name, colon, _ = title.lower().partition(":")
        return self.namespaces.get(name.strip().replace("_", " "), ARTICLE) if colon else ARTICLE


@dataclass(frozen=True)
class Page:
    """A page of an export.

    title, text (str): Its title, and the wikitext of its last revision.
    namespace (int): The key of its namespace.
    is_redirect (bool): Whether it only leads to another page.
    date (str): The date of the revision, such as "2024-05-01", or nothing.
    """

    title: str
    text: str
    namespace: int
    is_redirect: bool
    date: str


DEFAULT_SITE = Site("", "", "", "", NAMESPACES)


def read_site(dump: Path) -> Site:
    """Read what an export says about its wiki.

    dump (Path): The export.
    RETURNS (Site): The site.
    """
    for element in _read_elements(dump, lambda n_bytes: None):
        if _name(element) != "siteinfo":
            break
        name, database, url = (element.findtext(f"{{*}}{tag}") or "" for tag in ("sitename", "dbname", "base"))
        names = {
            (namespace.text or "").lower(): int(namespace.get("key", ARTICLE))
            for namespace in element.iterfind("{*}namespaces/{*}namespace")
            if namespace.text
        }
        return Site(name, database, url, lang=element.get("lang", ""), namespaces={**NAMESPACES, **names})
    return DEFAULT_SITE


def read_pages(dump: Path, site: Site, progress: Progress = lambda n_bytes: None) -> Iterator[Page]:
    """Read the pages of an export, with only one page in memory at a time.

    dump (Path): The export: XML, optionally compressed by bzip2 or gzip.
    site (Site): What the export says about its wiki.
    progress (Progress): Called with the number of bytes of the file that are read.
    YIELDS (Page): A page.
    """
    for element in _read_elements(dump, progress):
        if _name(element) == "page":
            yield _make_page(element, site)


def find_disambiguation_templates(dump: Path, site: Site, progress: Progress = lambda n_bytes: None) -> frozenset[str]:
    """Find the templates that mark disambiguation pages: those that set the switch, those that an older wiki lists, and those
    that are another name or a wrapper of such a template.

    dump (Path): The export.
    site (Site): What the export says about its wiki.
    progress (Progress): Called with the number of bytes of the file that are read.
    RETURNS (frozenset[str]): Their names, normalized. If the export has none, the English ones.
    """
    found: set[str] = set()
    wraps: dict[str, str] = {}  # the template that a template begins with, or leads to
    for page in read_pages(dump, site, progress):
        name = normalize_name(page.title.partition(":")[2])
        if page.namespace == TEMPLATE:
            body = NOT_INCLUDED.sub("", page.text).strip()
            inner = REDIRECT.match(body) if page.is_redirect else CALL.match(body)
            if SWITCH.search(body):
                found.add(name)
            elif inner:
                wraps[name] = normalize_name(inner[1].rpartition(":")[2])
        elif page.namespace == MESSAGE and name == DISAMBIGUATIONS_PAGE:
            links = [link for link in LINK.findall(page.text) if site.namespace_of(link) == TEMPLATE]
            found |= {normalize_name(link.partition(":")[2]) for link in links}
    while more := {name for name, inner in wraps.items() if inner in found} - found:
        found |= more
    return frozenset(found) or ENGLISH_TEMPLATES


def is_disambiguation(page: Page, templates: frozenset[str]) -> bool:
    """RETURNS (bool): Whether a page is a disambiguation page: by its switch, its templates, or a title such as "Bank (disambiguation)"."""
    in_parentheses = PARENTHESES.search(page.title)
    return (
        SWITCH.search(page.text) is not None
        or (in_parentheses is not None and normalize_name(in_parentheses[1]) in templates)
        or any(normalize_name(name) in templates for name in CALL.findall(page.text))
    )


def normalize_name(name: str) -> str:
    """RETURNS (str): The name of a template in a form that can be compared."""
    return " ".join(name.replace("_", " ").lower().split())


def _read_elements(dump: Path, progress: Progress) -> Iterator[Element]:
    """Read <siteinfo>, with the language of the export, and each <page>."""
    if not dump.is_file():
        raise ValueError(f"There is no file {dump}.")
    try:
        file = dump.open("rb")
    except OSError as error:
        raise ValueError(f"{dump} cannot be read: {error}.") from None
    root: Element | None = None
    n_pages, last = 0, ""
    with file:
        try:
            for event, element in iterparse(_decompress(file), events=("start", "end")):
                if root is None:
                    if _name(element) != "mediawiki":
                        raise ValueError(
                            f"{dump} is not a MediaWiki export: it begins with <{_name(element)}>, not <mediawiki>."
                        )
                    root = element
                elif event == "end" and _name(element) in ("siteinfo", "page"):
                    if _name(element) == "siteinfo":
                        element.set("lang", root.get("{http://www.w3.org/XML/1998/namespace}lang", ""))
                    else:
                        n_pages, last = n_pages + 1, element.findtext("{*}title") or ""
                        progress(file.tell())
                    yield element
                    root.clear()
        except (ParseError, EOFError, OSError, zlib.error) as error:
            if root is None:
                raise ValueError(f"{dump} is not a MediaWiki export, or a damaged one: {error}.") from None
            where = f"after {n_pages:,} pages, the last of which is {last!r}" if n_pages else "before its first page"
            raise ValueError(
                f"{dump} breaks off or is damaged {where}: {error}. Was the download cut off? It has "
                f"{dump.stat().st_size:,} bytes; compare that with the server's, and fetch it again."
            ) from None


def _name(element: Element) -> str:
    return element.tag.rpartition("}")[2]  # without the namespace, which changes with each version


def _decompress(file: IO[bytes]) -> IO[bytes]:
    start = file.read(3)
    file.seek(0)
    if start == b"BZh":
        return cast(IO[bytes], bz2.open(file))
    if start[:2] == b"\x1f\x8b":
        return cast(IO[bytes], gzip.open(file))
    return file


def _make_page(element: Element, site: Site) -> Page:
    title = element.findtext("{*}title") or ""
    text = ([""] + [part.text or "" for part in element.iterfind("{*}revision/{*}text")])[-1]
    # Exports before 2011 have no <ns>.
    namespace = int(element.findtext("{*}ns") or site.namespace_of(title))
    is_redirect = element.find("{*}redirect") is not None or REDIRECT.match(text) is not None
    dates = [part.text or "" for part in element.iterfind("{*}revision/{*}timestamp")]
    return Page(title, text, namespace, is_redirect, date=(["", *dates])[-1][:10])
