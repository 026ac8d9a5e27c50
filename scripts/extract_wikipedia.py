"""Extract plain text from a Wikipedia export in any language: one paragraph per line, and an empty line between articles."""

import html
import json
import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer
from tqdm import tqdm
from wasabi import msg

from spacy_elmo.corpora.mediawiki import (
    ARTICLE,
    CATEGORY,
    DEFAULT_SITE,
    FILE,
    Page,
    Site,
    find_disambiguation_templates,
    is_disambiguation,
    read_pages,
    read_site,
)
from spacy_elmo.files.atomic import open_file, write_file

try:
    from mwparserfromhell import parse
    from mwparserfromhell.nodes import ExternalLink, Heading, HTMLEntity, Node, Tag, Text, Wikilink
    from mwparserfromhell.wikicode import Wikicode
except ImportError:
    msg.fail("Reading wikitext needs mwparserfromhell", "pip install mwparserfromhell", exits=1)

SHORTEST = 30  # bytes of a paragraph, 10 characters of Chinese; anything shorter is a remnant of markup

# How tags are treated. The contents of all other tags are kept.
INLINE = frozenset({"ref", "math", "chem", "ce", "score", "hiero", "indicator", "templatestyles", "style"})
BLOCKS = frozenset(
    {"table", "gallery", "ul", "ol", "dl", "li", "dd", "dt", "hr", "references", "pre", "poem", "source", "timeline"}
    | {"syntaxhighlight", "imagemap", "graph", "mapframe", "templatedata", "inputbox", "categorytree"}
)
PARAGRAPHS = frozenset({"p", "div", "blockquote", "center"})
LIST_ITEMS = frozenset({"li", "dd", "dt"})

SWITCH = re.compile(r"__[^\W_a-z][^\Wa-z]*__")  # such as __NOTOC__ or __目录__
QUOTES = re.compile("'{2,}")
NO_PROSE = ("*", "#", ":", ";", "|", "!", "{")  # the start of a line in a list or a broken table
BROKEN = re.compile(r"\{\{|\}\}|\[\[|\]\]|\{\||\|\}|</?[a-zA-Z][^<>]*>|<!--")
SENTENCE_END = re.compile(r"""[.!?…।؟]["'”’»)\]]*(?:\s|$)|[。！？｡]""")  # Chinese has no spaces
# A link to a file, whatever the namespace is called: exports do not list all names.
MEDIA = re.compile(
    r":.+\.(?:jpe?g|png|gif|svg|tiff?|webp|og[agv]|webm|mp[34]|wav|flac|midi?|pdf|djvu)\s*$", re.IGNORECASE
)
# A link to another namespace or language that has a line of its own: a category, or the same article elsewhere.
LONE_LINK = re.compile(r"^[ \t]*(?:\[\[[^\[\]|:\n]+:[^\[\]\n]*\]\][ \t]*)+$", re.MULTILINE)
# Text in several variants, such as -{zh-hans:计算机;zh-hant:電腦}-, after flags, such as -{H|...}-.
VARIANTS = re.compile(r"-\{(?:([A-Za-z;-]*)\|)?([^{}]*)\}-")
# Remnants around a template that was removed. `f()` is not one of them: it has no space before the parentheses.
SCARS = [
    (re.compile(r"(?<=[(（])[\s,;:，；：、]+|[\s,;:，；：、]+(?=[)）])"), ""),
    (re.compile(r"(?:^|\s)(?:\(\)|\[\])|（）"), ""),
    (re.compile(r"\s+(?=[,.](?:\s|$))"), ""),
    (re.compile(r",(?:\s*,)+"), ","),
    (re.compile(r"[，、](?=[，。])"), ""),
]


def extract_wikipedia(
    dump: Path, output: Path, lang: str | None = None, limit: Annotated[int | None, typer.Option(min=1)] = None
) -> None:
    """Write the prose of all articles, and beside it, with the suffix .json, what is known about it.

    dump (Path): A MediaWiki export, such as pages-articles.xml.bz2: XML, optionally compressed by bzip2 or gzip.
    output (Path): The text file to write.
    lang (str | None): The language that is expected. If the export says another one, there is a warning.
    limit (int | None): Stop after this many articles.
    """
    try:
        metadata = extract_text(dump, output, limit=limit)
        write_file(output.with_suffix(".json"), json.dumps(metadata, indent=2, ensure_ascii=False) + "\n")
    except (OSError, ValueError) as error:
        msg.fail(f"Could not extract the text of {dump}", str(error), exits=1)
    msg.good(f"{output}: {metadata['articles']:,} articles of {metadata['paragraphs']:,} paragraphs")
    left_out = ("redirects", "disambiguation_pages", "pages_without_prose")
    msg.text("Left out: " + ", ".join(f"{metadata[name]:,} {name.replace('_', ' ')}" for name in left_out))
    found = metadata["lang"].partition("-")[0]
    if lang and found and found != lang:
        msg.warn(f"The text is in the language {found!r}, as {dump} says, and not in {lang!r}")


def extract_text(dump: Path, output: Path, *, limit: int | None = None) -> dict[str, Any]:
    """Write the prose of all articles. If it fails, no file is written.

    dump (Path): The export.
    output (Path): The text file to write.
    limit (int | None): The maximum number of articles.
    RETURNS (dict[str, Any]): The export, its site, its newest date, and the numbers of articles, paragraphs and other pages.
    """
    site = read_site(dump)
    counts: Counter[str] = Counter()
    newest = ""
    with open_file(output) as file:
        for page, paragraphs in islice(read_articles(dump, site, counts), limit):
            file.write("\n" * bool(counts["articles"]) + "".join(f"{paragraph}\n" for paragraph in paragraphs))
            counts["articles"] += 1
            counts["paragraphs"] += len(paragraphs)
            newest = max(newest, page.date)
        if not counts["articles"]:
            raise ValueError(f"There is no article with a paragraph of prose in {dump}.")
    names = ("articles", "paragraphs", "redirects", "disambiguation_pages", "pages_without_prose")
    described = {"dump": dump.name, "site": site.name, "database": site.database, "url": site.url, "lang": site.lang}
    return {**described, "newest": newest, **{name: counts[name] for name in names}}


def read_articles(dump: Path, site: Site, counts: Counter[str]) -> Iterator[tuple[Page, list[str]]]:
    """Read the articles with prose.

    dump (Path): The export.
    site (Site): What the export says about its wiki.
    counts (Counter[str]): Gets the numbers of pages in the namespace of articles that are left out.
    YIELDS (tuple[Page, list[str]]): The page, and its paragraphs.
    """
    with tqdm(total=2 * dump.stat().st_size, unit="B", unit_scale=True, desc="Reading pages", disable=None) as bar:
        templates = find_disambiguation_templates(dump, site, lambda n_bytes: bar.update(n_bytes - bar.n))
        first = dump.stat().st_size
        for page in read_pages(dump, site, lambda n_bytes: bar.update(first + n_bytes - bar.n)):
            if page.namespace != ARTICLE:
                continue
            if page.is_redirect:
                counts["redirects"] += 1
            elif is_disambiguation(page, templates):
                counts["disambiguation_pages"] += 1
            elif paragraphs := extract_paragraphs(page.text, site):
                yield page, paragraphs
            else:
                counts["pages_without_prose"] += 1


# From wikitext to paragraphs


def extract_paragraphs(wikitext: str, site: Site = DEFAULT_SITE) -> list[str]:
    """Extract the paragraphs of prose from an article.

    wikitext (str): The article.
    site (Site): What the export says about its wiki.
    RETURNS (list[str]): The paragraphs, each without a line break.
    """
    # Style tags stay in the text: the parser confuses an apostrophe after italics with their markup.
    wikitext = VARIANTS.sub(_choose_variant, LONE_LINK.sub("", wikitext))
    text = SWITCH.sub("", _flatten(parse(wikitext, skip_style_tags=True), site))
    blocks: list[list[str]] = [[]]
    for line in text.split("\n"):
        line = line.strip()
        if not line or line.startswith(NO_PROSE):
            blocks.append([])
        else:
            blocks[-1].append(_strip_style(line))
    paragraphs = [_mend(" ".join(lines)) for lines in blocks]
    return [paragraph for paragraph in paragraphs if _is_prose(paragraph)]


def _choose_variant(match: re.Match[str]) -> str:
    """Choose the first variant, or nothing if the flags say that the text is hidden or a title."""
    if set((match[1] or "").upper().split(";")) & {"H", "T"}:
        return ""
    first = match[2].split(";")[0]
    code, colon, text = first.partition(":")
    return text.strip() if colon and re.fullmatch(r"\s*[a-z]{2,3}(?:-[a-z]+)?\s*", code) else match[2]


def _flatten(code: Wikicode, site: Site) -> str:
    return "".join(_flatten_node(node, site) for node in code.nodes)


def _flatten_node(node: Node, site: Site) -> str:
    if isinstance(node, Text):
        return node.value
    if isinstance(node, HTMLEntity):
        return html.unescape(str(node))
    if isinstance(node, Heading):
        return "\n\n"
    if isinstance(node, Wikilink):
        title = _flatten(node.title, site).strip()
        if site.namespace_of(title) in (FILE, CATEGORY) or MEDIA.search(title):
            return ""
        return title.removeprefix(":") if node.text is None else _flatten(node.text, site)
    if isinstance(node, ExternalLink):
        return "" if node.title is None else _flatten(node.title, site)
    if isinstance(node, Tag):
        return _flatten_tag(node, site)
    return ""  # templates, their arguments, comments


def _flatten_tag(tag: Tag, site: Site) -> str:
    name = str(tag.tag).strip().lower()
    if name in LIST_ITEMS and tag.wiki_markup:
        return str(tag.wiki_markup)  # only the marker: its line is removed later
    if name == "br":
        return "\n"
    if name in INLINE:
        return ""
    if name in BLOCKS:
        return "\n\n"
    contents = "" if tag.contents is None else _flatten(tag.contents, site)
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
    if len(paragraph.encode("utf8", "ignore")) < SHORTEST or BROKEN.search(paragraph):
        return False
    return SENTENCE_END.search(paragraph) is not None


if __name__ == "__main__":
    typer.run(extract_wikipedia)
