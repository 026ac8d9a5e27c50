"""A section about nearest neighbours in context: table 4 of the paper."""

from collections.abc import Sequence

from ..analysis.marked_use import MARKED
from .formatting import format_count, format_layer, format_list
from .page import Block, Code, Paragraph, Section, Table
from .paper import NEIGHBOURS
from .results import Result

QUESTION = "Does a vector know the sense of a word?"


def make_neighbour_section(results: Sequence[Result]) -> Section:
    """Show the nearest neighbours of some uses of words side by side, layer by layer.

    results (Sequence[Result]): Results of `spacy elmo neighbours`.
    RETURNS (Section): The section.
    """
    blocks: list[Block] = [Paragraph(answer, "result") for result in results for answer in _compare_layers(result)]
    blocks.append(
        Paragraph(
            "A use of a word is the word in one sentence. Below each sentence are the uses of words in a text whose vectors are "
            "closest to that of the marked word, with the cosine of the angle between the two vectors: 1 is the same direction."
        )
    )
    for result in results:
        uses = result["uses"]
        for i, layer in enumerate(result["layers"]):
            columns = [[f"{found['similarity']:.3f} {found['text']}" for found in use["neighbours"][i]] for use in uses]
            caption = layer[:1].upper() + layer[1:]
            blocks.append(Table(caption, [use["sentence"] for use in uses], list(zip(*columns, strict=True)), "texts"))
    blocks += [Paragraph(NEIGHBOURS, "paper"), Code("\n".join(result["command"] for result in results))]
    return Section(QUESTION, blocks)


def _compare_layers(result: Result) -> list[str]:
    """Say for each word with several uses how many neighbours these have in common, layer by layer."""
    words: dict[str, list[Result]] = {}
    for use in result["uses"]:
        match = MARKED.search(use["sentence"])
        words.setdefault(match[1].lower() if match else "", []).append(use)
    answers = []
    for word, uses in words.items():
        if len(uses) < 2:
            continue
        counts = []
        for i, layer in enumerate(result["layers"]):
            first, *others = ({found["text"] for found in use["neighbours"][i]} for use in uses)
            counts.append(f"{len(first.intersection(*others))} of {len(first)} in {format_layer(layer)}")
        answers.append(
            f"“{word}” has {format_count(len(uses), 'use')} here. The number of nearest neighbours that they have in common is "
            f"{format_list(counts)}. A layer that knows no context has all of them in common."
        )
    return answers
