"""Extract plain text from a Wikipedia export: one paragraph per line, and an empty line between articles."""

import bz2
import gzip
import html
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Annotated, cast
from xml.etree.ElementTree import Element, ParseError, iterparse

import typer
from tqdm import tqdm
from wasabi import msg

from spacy_elmo.files.atomic import open_file

try:
    from mwparserfromhell import parse
    from mwparserfromhell.nodes import ExternalLink, Heading, HTMLEntity, Node, Tag, Text, Wikilink
    from mwparserfromhell.wikicode import Wikicode
except ImportError:
    msg.fail("Reading wikitext needs mwparserfromhell", "pip install mwparserfromhell", exits=1)

SHORTEST = 30  # characters of a paragraph; anything shorter is a remnant of markup

# Namespaces by their keys, which are the same in all languages. An export lists its names for them; these always work.
ARTICLE, FILE, CATEGORY = 0, 6, 14
NAMESPACES = {"file": FILE, "image": FILE, "category": CATEGORY}

# How tags are treated. The contents of all other tags are kept.
INLINE = frozenset({"ref", "math", "chem", "ce", "score", "hiero", "indicator", "templatestyles", "style"})
BLOCKS = frozenset(
    {"table", "gallery", "ul", "ol", "dl", "li", "dd", "dt", "hr", "references", "pre", "poem", "source", "timeline"}
    | {"syntaxhighlight", "imagemap", "graph", "mapframe", "templatedata", "inputbox", "categorytree"}
)
PARAGRAPHS = frozenset({"p", "div", "blockquote", "center"})
LIST_ITEMS = frozenset({"li", "dd", "dt"})

REDIRECT = re.compile(r"\s*#redirect\b", re.IGNORECASE)
DISAMBIGUATION = re.compile(
    r"\{\{\s*(?:(?:[\w -]+ )?disambig(?:uation)?(?:[ -](?:page|cleanup))?|dab|disamb|hndis|geodis|mathdab)\s*(?:\||\}\})"
    r"|__DISAMBIG__",
    re.IGNORECASE,
)
SWITCH = re.compile("__[A-Z_]+__")  # such as __NOTOC__
QUOTES = re.compile("'{2,}")
NO_PROSE = ("*", "#", ":", ";", "|", "!", "{")  # the start of a line in a list or a broken table
BROKEN = re.compile(r"\{\{|\}\}|\[\[|\]\]|\{\||\|\}|</?[a-zA-Z][^<>]*>|<!--")
SENTENCE_END = re.compile(r"""[.!?…。！？।؟]["'”’»)\]]*(?:\s|$)""")
# Remnants around a template that was removed. `f()` is not one of them: it has no space before the parentheses.
SCARS = [
    (re.compile(r"(?<=\()[\s,;:]+|[\s,;:]+(?=\))"), ""),
    (re.compile(r"(?:^|\s)(?:\(\)|\[\])"), ""),
    (re.compile(r"\s+(?=[,.](?:\s|$))"), ""),
    (re.compile(r",(?:\s*,)+"), ","),
]


@dataclass(frozen=True)
class Page:
    """A page of an export.

    title (str): Its title.
    text (str): Its wikitext.
    is_article (bool): Whether it is in the namespace of articles, and no redirect.
    namespaces (dict[str, int]): The export's names of namespaces, in lower case, with their keys.
    """

    title: str
    text: str
    is_article: bool
    namespaces: dict[str, int]


def extract_wikipedia(dump: Path, output: Path, limit: Annotated[int | None, typer.Option(min=1)] = None) -> None:
    """Write the prose of all articles.

    dump (Path): A MediaWiki export, such as pages-articles.xml.bz2: XML, optionally compressed by bzip2 or gzip.
    output (Path): The text file to write.
    limit (int | None): Stop after this many articles.
    """
    try:
        n_articles, n_paragraphs = extract_text(dump, output, limit=limit)
    except (OSError, ValueError) as error:
        msg.fail(f"Could not extract the text of {dump}", str(error), exits=1)
    msg.good(f"{output}: {n_articles:,} articles of {n_paragraphs:,} paragraphs")


def extract_text(dump: Path, output: Path, *, limit: int | None = None) -> tuple[int, int]:
    """Write the prose of all articles. If it fails, no file is written.

    dump (Path): The export.
    output (Path): The text file to write.
    limit (int | None): The maximum number of articles.
    RETURNS (tuple[int, int]): The numbers of articles and of paragraphs.
    """
    n_articles = n_paragraphs = 0
    with open_file(output) as file:
        for paragraphs in islice(read_articles(dump), limit):
            file.write("\n" * bool(n_articles) + "".join(f"{paragraph}\n" for paragraph in paragraphs))
            n_articles += 1
            n_paragraphs += len(paragraphs)
        if not n_articles:
            raise ValueError(f"There is no article with a paragraph of prose in {dump}.")
    return n_articles, n_paragraphs


def read_articles(dump: Path) -> Iterator[list[str]]:
    """Read the paragraphs of each article that has any.

    dump (Path): The export.
    YIELDS (list[str]): The paragraphs.
    """
    for page in read_pages(dump):
        if page.is_article and not is_disambiguation(page):
            paragraphs = extract_paragraphs(page.text, page.namespaces)
            if paragraphs:
                yield paragraphs


def is_disambiguation(page: Page) -> bool:
    """RETURNS (bool): Whether a page is a disambiguation page, judged by English names of templates."""
    return page.title.endswith("(disambiguation)") or DISAMBIGUATION.search(page.text) is not None


# From a file to pages


def read_pages(dump: Path) -> Iterator[Page]:
    """Read the pages of an export, with only one page in memory at a time.

    dump (Path): The export.
    YIELDS (Page): The last revision of a page.
    """
    if not dump.is_file():
        raise ValueError(f"There is no file {dump}.")
    try:
        file = dump.open("rb")
    except OSError as error:
        raise ValueError(f"{dump} cannot be read: {error}.") from None
    namespaces = dict(NAMESPACES)
    root: Element | None = None
    n_pages, last = 0, ""
    with (
        file,
        tqdm(total=dump.stat().st_size, unit="B", unit_scale=True, desc="Reading pages", disable=None) as bar,
    ):
        try:
            for event, element in iterparse(_decompress(file), events=("start", "end")):
                name = element.tag.rpartition("}")[2]  # without the namespace, which changes with each version
                if root is None:
                    if name != "mediawiki":
                        raise ValueError(f"{dump} is not a MediaWiki export: it begins with <{name}>, not <mediawiki>.")
                    root = element
                elif event == "end" and name == "namespace" and element.text:
                    namespaces[element.text.lower()] = int(element.get("key", ARTICLE))
                elif event == "end" and name == "page":
                    page = _make_page(element, namespaces)
                    root.clear()
                    n_pages, last = n_pages + 1, page.title
                    bar.update(file.tell() - bar.n)
                    yield page
        except (ParseError, EOFError, OSError, zlib.error) as error:
            if root is None:
                raise ValueError(f"{dump} is not a MediaWiki export, or a damaged one: {error}.") from None
            where = f"after {n_pages:,} pages, the last of which is {last!r}" if n_pages else "before its first page"
            raise ValueError(
                f"{dump} breaks off or is damaged {where}: {error}. Was the download cut off? It has "
                f"{dump.stat().st_size:,} bytes; compare that with the server's, and fetch it again."
            ) from None


def _decompress(file: IO[bytes]) -> IO[bytes]:
    start = file.read(3)
    file.seek(0)
    if start == b"BZh":
        return cast(IO[bytes], bz2.open(file))
    if start[:2] == b"\x1f\x8b":
        return cast(IO[bytes], gzip.open(file))
    return file


def _make_page(element: Element, namespaces: dict[str, int]) -> Page:
    title = element.findtext("{*}title") or ""
    text = ([""] + [part.text or "" for part in element.iterfind("{*}revision/{*}text")])[-1]
    # Exports before 2011 have no <ns>.
    key = element.findtext("{*}ns") or _find_namespace(title, namespaces)
    is_redirect = element.find("{*}redirect") is not None or REDIRECT.match(text) is not None
    return Page(title, text, is_article=int(key) == ARTICLE and not is_redirect, namespaces=namespaces)


def _find_namespace(title: str, namespaces: dict[str, int]) -> int:
    name, colon, _ = title.lower().partition(":")
    return namespaces.get(name.strip(), ARTICLE) if colon else ARTICLE


# From wikitext to paragraphs


def extract_paragraphs(wikitext: str, namespaces: dict[str, int] = NAMESPACES) -> list[str]:
    """Extract the paragraphs of prose from an article.

    wikitext (str): The article.
    namespaces (dict[str, int]): The names of namespaces, in lower case, with their keys.
    RETURNS (list[str]): The paragraphs, each without a line break.
    """
    # Style tags stay in the text: the parser confuses an apostrophe after italics with their markup.
    text = SWITCH.sub("", _flatten(parse(wikitext, skip_style_tags=True), namespaces))
    blocks: list[list[str]] = [[]]
    for line in text.split("\n"):
        line = line.strip()
        if not line or line.startswith(NO_PROSE):
            blocks.append([])
        else:
            blocks[-1].append(_strip_style(line))
    paragraphs = [_mend(" ".join(lines)) for lines in blocks]
    return [paragraph for paragraph in paragraphs if _is_prose(paragraph)]


def _flatten(code: Wikicode, namespaces: dict[str, int]) -> str:
    return "".join(_flatten_node(node, namespaces) for node in code.nodes)


def _flatten_node(node: Node, namespaces: dict[str, int]) -> str:
    if isinstance(node, Text):
        return node.value
    if isinstance(node, HTMLEntity):
        return html.unescape(str(node))
    if isinstance(node, Heading):
        return "\n\n"
    if isinstance(node, Wikilink):
        title = _flatten(node.title, namespaces).strip()
        if _find_namespace(title, namespaces) in (FILE, CATEGORY):
            return ""
        return title.removeprefix(":") if node.text is None else _flatten(node.text, namespaces)
    if isinstance(node, ExternalLink):
        return "" if node.title is None else _flatten(node.title, namespaces)
    if isinstance(node, Tag):
        return _flatten_tag(node, namespaces)
    return ""  # templates, their arguments, comments


def _flatten_tag(tag: Tag, namespaces: dict[str, int]) -> str:
    name = str(tag.tag).strip().lower()
    if name in LIST_ITEMS and tag.wiki_markup:
        return str(tag.wiki_markup)  # only the marker: its line is removed later
    if name == "br":
        return "\n"
    if name in INLINE:
        return ""
    if name in BLOCKS:
        return "\n\n"
    contents = "" if tag.contents is None else _flatten(tag.contents, namespaces)
    return f"\n\n{contents}\n\n" if name in PARAGRAPHS else contents


def _strip_style(line: str) -> str:
    """Remove the apostrophes of bold and italics by MediaWiki's rules, and keep those of the text."""
    lengths = [len(run) for run in QUOTES.findall(line)]
    n_italic = sum(length == 2 or length >= 5 for length in lengths)
    n_bold = sum(length >= 3 for length in lengths)
    is_odd = n_italic % 2 == 1 and n_bold % 2 == 1

    def strip(match: re.Match[str]) -> str:
        nonlocal is_odd
        length = len(match.group())
        if length == 3 and is_odd and line[match.start() - 1 : match.start()].strip():
            is_odd = False  # "''Emma'''s end": italics end, and then there is an apostrophe
            return "'"
        return "'" * (1 if length == 4 else max(0, length - 5))

    return QUOTES.sub(strip, line)


def _mend(paragraph: str) -> str:
    paragraph = " ".join(paragraph.split())
    before = None
    while paragraph != before:  # parentheses may be nested
        before = paragraph
        for scar, mended in SCARS:
            paragraph = scar.sub(mended, paragraph)
    return paragraph.strip()


def _is_prose(paragraph: str) -> bool:
    if len(paragraph) < SHORTEST or BROKEN.search(paragraph):
        return False
    return SENTENCE_END.search(paragraph) is not None


if __name__ == "__main__":
    typer.run(extract_wikipedia)
