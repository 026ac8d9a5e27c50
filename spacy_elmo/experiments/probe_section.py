"""A section about linear probes: table 6 of the paper."""

from collections.abc import Sequence

from ..charts.dot_plot import DOTS_CAPTION, DotPlot, draw_dot_plot
from .formatting import format_count, format_layer, format_list, format_number, format_sample
from .page import Block, Code, Figure, Paragraph, Section, Table
from .paper import LAYERS, TAGS
from .results import Result
from .sample import Sample

QUESTION = "What does each layer know of grammar?"
NAMES = {
    "tag": "tag",
    "pos": "part of speech",
    "dep": "relation to its head",
    "ent_type": "entity type",
    "morph": "morphology",
}
TAG_ATTRIBUTES = ("tag", "pos")  # what table 6 of the paper is about


def make_probe_section(results: Sequence[Result]) -> Section:
    """Show how much a linear classifier can read from each layer.

    results (Sequence[Result]): Results of `spacy elmo probe`, one for each attribute.
    RETURNS (Section): The section.
    """
    blocks: list[Block] = [Paragraph(_find_best(result), "result") for result in results]
    blocks.append(
        Paragraph(
            "A probe is a linear classifier that sees only a token's vector. What it gets right must be in the vector, and easy to "
            "read. Words that the training data do not have show whether it has learned more than a list of words."
        )
    )
    for result in results:
        blocks += [_make_table(result), _draw(result)]
    blocks += [Paragraph(LAYERS, "paper"), Code("\n".join(result["command"] for result in results))]
    return Section(QUESTION, blocks)


def _name(result: Result) -> str:
    attribute: str = result["attribute"]
    return NAMES.get(attribute, attribute)


def _find_best(result: Result) -> str:
    layers = [found for found in result["probes"] if len(found["layers"]) == 1]
    best = max(layers, key=lambda found: found["all"]["mean"])
    others = [f"{found['all']['mean']:.1f}% for {format_layer(found['name'])}" for found in layers if found is not best]
    guess = max(result["baselines"], key=lambda found: found["all"])
    return (
        f"Of the single layers of {result['weights']}, {format_layer(best['name'])} knows most of a token's {_name(result)}: "
        f"{best['all']['mean']:.1f}% are right, against {format_list(others)}. The best guess without a vector, ‘{guess['name']}’, has "
        f"{guess['all']:.1f}%."
    )


def _make_table(result: Result) -> Table:
    paper = TAGS if result["attribute"] in TAG_ATTRIBUTES else {}
    rows = [
        [found["name"], *(format_number(found[words], 1) for words in ("all", "unseen"))]
        for found in result["baselines"]
    ]
    for found in result["probes"]:
        rows.append([found["name"], *(format_sample(Sample(_seeds(found, words))) for words in ("all", "unseen"))])
    tokens = result["tokens"]
    caption = (
        f"{_name(result)}, accuracy in per cent: trained on {format_count(tokens['train'], 'token')}, tested on "
        f"{tokens['test']:,}, of which {result['unseen']:,} are words that the training data do not have"
    )
    header = ["Read from", "All words", "New words"]
    if paper:
        caption += ". The last column is table 6 of the paper: tags of the Penn Treebank"
        header.append("Paper")
        for row in rows:
            row.append(format_number(paper.get(row[0]), 1))
    return Table(caption[:1].upper() + caption[1:], header, rows)


def _draw(result: Result) -> Figure:
    rows = [(found["name"], [_seeds(found, "all"), _seeds(found, "unseen")]) for found in result["probes"]]
    title = f"{_name(result)}, accuracy"
    plot = DotPlot(title[:1].upper() + title[1:], "per cent", ["all words", "new words"], rows)
    alt = f"The accuracy of {len(rows)} probes; the table has the numbers."
    return Figure(f"probe-{result['attribute']}", DOTS_CAPTION, draw_dot_plot(plot, alt=alt))


def _seeds(found: Result, words: str) -> list[float]:
    return [value for value in found[words]["seeds"] if value is not None]
