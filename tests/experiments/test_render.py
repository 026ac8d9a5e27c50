"""Pages: well-formed HTML and Markdown, which show every text as it is."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_elmo.charts.line_chart import Line, LineChart, draw_line_charts
from spacy_elmo.experiments.page import Code, Figure, Paragraph, Section, Table
from spacy_elmo.experiments.render import to_html, to_markdown

from .html_reader import HTMLReader

EVIL = "<b>&\"'</b></td><script>alert(1)</script>"


def figure(name: str = "curve") -> Figure:
    return Figure(
        name,
        "A caption.",
        draw_line_charts([LineChart("Loss", "steps", [Line("train", [(0, 1), (1, 2)])])], alt="falls"),
    )


PAGE = Section(
    "Runs & scores",
    [Paragraph("It is higher.", "result"), Paragraph("One seed.", "note")],
    [
        Section("Scores", [Table("All of them", ["Run", "F"], [["Baseline", "40.1"], ["ELMo", "46.3"]]), figure()]),
        Section("Again", [Code("python -m spacy elmo compare a b")], [Section("Deeper", [Paragraph("Here.")])]),
    ],
)


def test_html_has_all_blocks_in_order() -> None:
    page = HTMLReader(to_html(PAGE))
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


def test_one_word_of_a_text_is_marked() -> None:
    table = Table("Uses", ["We [play] <b>."], [["The [bank] (1) and [2]"]], "texts")
    assert HTMLReader(to_html(Section("Uses", [table]))).texts_in("mark") == ["play", "bank"]


def test_html_is_one_file_that_works_for_all() -> None:
    text = to_html(PAGE)
    page = HTMLReader(text)
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
    read = HTMLReader(to_html(page))
    assert not {"script", "b"} & {tag for tag, _ in read.seen}
    shown = [text for _, text in read.texts] + [str(value) for _, values in read.seen for value in values.values()]
    assert EVIL in shown


@given(texts=st.lists(st.text(st.characters(exclude_categories=["Cs", "Cc"])), min_size=3, max_size=3))
def test_any_text_is_shown(texts: list[str]) -> None:
    title, cell, caption = texts
    page = HTMLReader(to_html(Section(title, [Table(caption, ["a", "b"], [["c", cell]])])))
    for tag, text in (("title", title), ("h1", title), ("caption", caption), ("td", cell)):
        assert page.texts_in(tag) == ([text.strip()] if text.strip() else [])


def test_markdown_has_all_blocks_in_order() -> None:
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
