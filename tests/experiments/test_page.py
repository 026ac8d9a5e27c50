"""Pages: well-formed HTML and Markdown, in which every text is shown as it is."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_elmo.charts.plots import Chart, Line, draw_charts
from spacy_elmo.experiments.page import (
    Code,
    Figure,
    Paragraph,
    Section,
    Table,
    figures_of,
    from_json,
    to_html,
    to_json,
    to_markdown,
)

EVIL = "<b>&\"'</b></td><script>alert(1)</script>"
VOID = {"meta", "br", "img", "link", "hr"}


class Reader(HTMLParser):
    """Reads a page, and fails if a tag is not closed or closed twice."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and data.strip():
            self.texts.append((self.open[-1], data.strip()))

    def tags(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.seen if tag == name]

    def texts_in(self, tag: str) -> list[str]:
        return [text for name, text in self.texts if name == tag]


def figure(name: str = "curve") -> Figure:
    return Figure(
        name, "A caption.", draw_charts([Chart("Loss", "steps", [Line("train", [(0, 1), (1, 2)])])], alt="falls")
    )


PAGE = Section(
    "Runs & scores",
    [Paragraph("It is higher.", "result"), Paragraph("One seed.", "note")],
    [
        Section("Scores", [Table("All of them", ["Run", "F"], [["Baseline", "40.1"], ["ELMo", "46.3"]]), figure()]),
        Section("Again", [Code("python -m spacy elmo compare a b")], [Section("Deeper", [Paragraph("Here.")])]),
    ],
)


def test_html_has_everything_in_its_place() -> None:
    page = Reader(to_html(PAGE))
    assert page.texts_in("title") == page.texts_in("h1") == ["Runs & scores"]
    assert page.texts_in("h2") == ["Scores", "Again"]
    assert page.texts_in("h3") == ["Deeper"]
    assert page.texts_in("td") == ["40.1", "46.3"]
    assert page.texts_in("th") == ["Run", "F", "Baseline", "ELMo"]
    assert [th["scope"] for th in page.tags("th")] == ["col", "col", "row", "row"]
    assert page.texts_in("caption") == ["All of them"]
    assert page.texts_in("code") == ["python -m spacy elmo compare a b"]
    assert [p["class"] for p in page.tags("p")] == ["result", "note", "text"]
    assert page.tags("html") == [{"lang": "en"}]


def test_html_is_one_file_that_works_for_all() -> None:
    text = to_html(PAGE)
    page = Reader(text)
    assert not {tag for tag, _ in page.seen} & {"script", "link", "img", "iframe"}
    assert not re.findall(r"(?:src|href)=\"(?!#)|@import|url\(", text)
    (svg,) = page.tags("svg")
    assert svg["role"] == "img"
    assert svg["aria-label"] == "falls"
    # Each link leads somewhere, and nothing has the same name twice.
    names = [attributes["id"] for _, attributes in page.seen if "id" in attributes]
    assert len(set(names)) == len(names)
    assert [f"#{name}" for name in ("part-1", "part-2")] == [a["href"] for a in page.tags("a")]
    assert {"part-1", "part-2"} <= set(names)
    for rule in ("prefers-color-scheme: dark", "@media print", "max-width"):
        assert rule in text


@pytest.mark.parametrize(
    "page",
    [
        Section(EVIL, [Paragraph(EVIL)]),
        Section("", [], [Section(EVIL), Section(EVIL)]),
        Section("", [Table(EVIL, [EVIL, EVIL], [[EVIL, EVIL]])]),
        Section("", [Code(EVIL)]),
        Section("", [Figure("x", EVIL, "<svg></svg>")]),
        Section("", [Paragraph("x", EVIL)]),
    ],
)
def test_html_is_escaped(page: Section) -> None:
    read = Reader(to_html(page))
    assert not {"script", "b"} & {tag for tag, _ in read.seen}
    shown = [text for _, text in read.texts] + [str(value) for _, values in read.seen for value in values.values()]
    assert EVIL in shown


def test_markdown_has_everything_in_its_place() -> None:
    assert to_markdown(PAGE) == (
        "# Runs \\& scores\n\n**It is higher.**\n\n> One seed.\n\n"
        "## Scores\n\nAll of them\n\n| Run | F |\n| --- | ---: |\n| Baseline | 40.1 |\n| ELMo | 46.3 |\n\n"
        "![A caption.](curve.svg)\n\n"
        "## Again\n\n```bash\npython -m spacy elmo compare a b\n```\n\n### Deeper\n\nHere.\n"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<b>&", "\\<b\\>\\&"),
        ("a | b", "a \\| b"),
        ("*x* _y_ `z` [u](v)", "\\*x\\* \\_y\\_ \\`z\\` \\[u\\](v)"),
        ("ents_f", "ents_f"),
        ("__init__", "\\_\\_init\\_\\_"),
        ("C #", "C \\#"),
        ("two\nlines", "two lines"),
        ("# no heading", "\\# no heading"),
        ("- no list", "\\- no list"),
        ("1. no list", "1\\. no list"),
        ("12) no list", "12\\) no list"),
        ("1.5 is a number", "1\\.5 is a number"),
        ("a \\ b", "a \\\\ b"),
    ],
)
def test_markdown_is_escaped(text: str, expected: str) -> None:
    assert to_markdown(Section("x", [Paragraph(text)])) == f"# x\n\n{expected}\n"


def test_markdown_cells_stay_in_their_rows() -> None:
    text = to_markdown(Section("x", [Table("t", ["a|b", "c"], [["d\ne", "+1|2"]])]))
    assert text.splitlines()[-3:] == ["| a\\|b | c |", "| --- | ---: |", "| d e | +1\\|2 |"]


def test_markdown_code_may_have_fences() -> None:
    assert "````bash\n```\n````" in to_markdown(Section("x", [Code("```")]))


def test_json_there_and_back(tmp_path: Path) -> None:
    for found in figures_of(PAGE):
        (tmp_path / f"{found.name}.svg").write_text(found.svg, encoding="utf8")
    text = to_json(PAGE)
    assert "<svg" not in text
    assert to_html(from_json(text, tmp_path)) == to_html(PAGE)
    assert json.loads(text)["sections"][0]["blocks"][1] == {"type": "Figure", "name": "curve", "caption": "A caption."}


def test_json_does_not_read_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "secret.svg").write_text("<svg/>", encoding="utf8")
    (tmp_path / "page").mkdir()
    text = to_json(Section("x", [Figure("../secret", "c", "")]))
    with pytest.raises(FileNotFoundError):
        from_json(text, tmp_path / "page")


@given(texts=st.lists(st.text(st.characters(exclude_categories=["Cs", "Cc"])), min_size=3, max_size=3))
def test_any_text_is_shown(texts: list[str]) -> None:
    title, cell, caption = texts
    page = Reader(to_html(Section(title, [Table(caption, ["a", "b"], [["c", cell]])])))
    assert page.texts_in("td") == ([cell.strip()] if cell.strip() else [])
